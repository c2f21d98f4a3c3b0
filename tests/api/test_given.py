"""What people give: each form becomes the same records, anything else an error that says more."""

import numpy as np
import pytest

from tf_smoothclir.api import given as module
from tf_smoothclir.api.given import judgments_of, strings, texts_of
from tf_smoothclir.data.sources.source import Judgment, Text
from tf_smoothclir.utils.errors import InputError

TEXTS = [Text("7", "", "ein Apfel"), Text("d8", "", "")]
JUDGMENTS = [Judgment("q1", "7", 2), Judgment("q1", "d8", 0)]


class Frame:
    """As much of a data frame as is used; neither pandas nor polars need be there."""

    def __init__(self, **columns):
        self._columns = columns
        self.columns = list(columns)

    def __getitem__(self, name):
        return self._columns[name]


@pytest.mark.parametrize("form", [list, tuple, iter])
def test_other_columns_of_texts_are_kept_in_every_form(form):
    rows = [{"id": "7", "text": "a", "year": 1}, {"id": "d8", "text": "b"}]
    texts, others = module.texts_and_others(form(rows), "documents")
    assert [text.id for text in texts] == ["7", "d8"]
    assert others == [{"year": 1}, {}]
    assert module.texts_and_others(form([("7", "a")]), "documents")[1] == [{}]


@pytest.mark.parametrize(
    "given", [{1: "test"}, [("1", "test")], Frame(query_id=[1], split=["test"])]
)
def test_splits_are_taken_in_every_form(given):
    assert module.splits_of(given) == {"1": "test"}


def test_a_query_has_one_split_and_a_column_one_name():
    for given in ([("1", "test"), (1, "train")], {1: "test", "1": "test"}):
        with pytest.raises(InputError, match=r"splits\[1\]: query '1' already has a split at spl"):
            module.splits_of(given)
    frame = Frame(id=["1", "2", "3"], text=["a", "b", "c"], year=[1, 2, 3])
    frame.columns.append("year")  # as pandas has it, where frame["year"] is a frame
    with pytest.raises(InputError, match=r"documents: 2 columns have the name 'year'\. Rename"):
        texts_of(frame, "documents")
    assert judgments_of({"q": {*"edcba"}}) == [Judgment("q", d, 1) for d in "abcde"]


@pytest.mark.parametrize(
    ("given", "texts"),
    [
        ({np.int64(7): "ein Apfel", "d8": ""}, TEXTS),
        (Frame(text=["ein Apfel", ""], other=[1, 2], id=[7, "d8"]), TEXTS),
        (Frame(id=["1"], text=["Apfel"], title=["Obst"]), [Text("1", "Obst", "Apfel")]),
        (["a", " "], [Text("0", "", "a"), Text("1", "", " ")]),  # ids are positions
        (np.array(["a"]), [Text("0", "", "a")]),
        ([{"qid": 7.0, "Query": "ein Apfel"}, {"id": "d8", "text": "", "title": np.nan}], TEXTS),
        ([(7, "ein Apfel"), ["d8", ""]], TEXTS),
    ],
)
def test_texts(given, texts):
    assert texts_of(given, "documents") == texts


@pytest.mark.parametrize(
    "given",
    [
        (row for row in [["q1", "7", 2.0], ("q1", "d8", np.int32(0))]),
        {"q1": {7: 2, "d8": 0}},
        Frame(query_id=["q1", "q1"], document_id=[7, "d8"], grade=[2.0, 0.0]),
        [("q1", "7", 2, 1.0), ("q1", "d8", 0, None)],
        Frame(qid=["q1", "q1"], docid=[7.0, "d8"], **{"corpus-ID": [7, "d8"], "label": [2, False]}),
    ],
)
def test_judgments(given):
    assert judgments_of(given) == JUDGMENTS


def test_frames_of_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": ["7", "d8"], "text": ["ein Apfel", ""]})
    assert texts_of(frame, "documents") == TEXTS
    assert texts_of(frame.set_index("id")["text"], "documents") == TEXTS
    assert texts_of(frame.set_index("id"), "documents") == TEXTS
    assert "id" in set(module.columns_in(frame.set_index("id")))
    assert judgments_of(pandas.DataFrame(JUDGMENTS)) == JUDGMENTS
    by_pair = pandas.DataFrame(JUDGMENTS).set_index(["query_id", "document_id"])
    assert judgments_of(by_pair) == JUDGMENTS
    ones = [one._replace(grade=1) for one in JUDGMENTS]
    assert judgments_of(pandas.DataFrame(JUDGMENTS)[["query_id", "document_id"]]) == ones
    assert judgments_of({"q1": [7, "d8"]}) == judgments_of([("q1", 7), ("q1", "d8", True)]) == ones
    titles = pandas.array([pandas.NA, None], dtype="string")
    assert texts_of(frame.assign(title=titles), "documents") == TEXTS
    frame.loc[1, "text"] = None
    with pytest.raises(InputError, match=r"documents\[1\]: the text of d8 is missing"):
        texts_of(frame, "documents")
    assert strings(pandas.Series(["a", "b"]), "texts") == ["a", "b"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("a text", "queries='a text': it is a single string. Give a list of strings"),
        (b"bytes", "it is bytes"),
        (7, "it is 7, an int"),
        ([], "queries: it is empty"),
        (["a", " "], r"queries\[1\]: the text of query 1 is empty"),
        (["a", 7], r"queries\[1\]: the text of 1 is 7, not a string. Give a string there"),
        ({"a b": "text"}, r"queries\[0\]: id 'a b' is empty or contains white space"),
        ({1.5: "text"}, "id is 1.5, not a string or a whole number"),
        ({True: "text"}, "id is True"),
        ({"q": "\ud800"}, "half of a surrogate pair"),
    ],
)
def test_other_texts_are_errors(given, message):
    with pytest.raises(InputError, match=message):
        texts_of(given, "queries")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([("q1",)], r"judgments\[0\]: it is \('q1',\), a tuple, not 2 or 3 values"),
        (["q1d"], r"judgments\[0\]: it is 'q1d', a str, not 2 or 3 values"),
        ([("q1", "d1", 0.5)], "the grade is 0.5, not a whole number"),
        ([("q1", "d1", 1, -1)], r"judgments\[0\]: the weight is -1, not a number above 0"),
        ([("q1", "d1", None)], "the grade is missing. Give whole numbers"),
        ({"q1": "d1"}, r"judgments\['q1'\]: it is 'd1', a str, not a dictionary or a list"),
        (Frame(query_id=["q"], doc=["d"], grade=[1]), "no column 'document_id'"),
    ],
)
def test_other_judgments_are_errors(given, message):
    with pytest.raises(InputError, match=message):
        judgments_of(given)


def test_a_list_of_strings_and_a_whole_number_are_nothing_else():
    for given in ("one", {"a": "b"}, Frame(text=["a"]), 3, [3]):
        with pytest.raises(InputError, match=r"list of strings|Give a string there"):
            strings(given, "texts")
    for given in (0, True, 2.0):
        with pytest.raises(InputError, match="Give a whole number from 1 on"):
            module.whole_number(given, "k")
