"""What people give: texts and judgments in any form; losses, towers and callbacks of their own."""

import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

import tf_smoothclir as sc
from tests.api.own_objects import PowerLoss, Recorder, SumTower
from tests.cases import cases
from tf_smoothclir import AveragePoolingTower, InputError
from tf_smoothclir.api import given as module
from tf_smoothclir.api.given import judgments_of, strings, texts_of
from tf_smoothclir.data.sources.source import Judgment, Text
from tf_smoothclir.settings import given
from tf_smoothclir.text.tokens import Tokens
from tf_smoothclir.towers.given import GivenTower

TEXTS = [Text("7", "", "ein Apfel"), Text("d8", "", "")]
JUDGMENTS = [Judgment("q1", "7", 2), Judgment("q1", "d8", 0)]
QUERY = ["wordb worde"]
UNEQUAL = {"query_tower": SumTower(dim=4), "document_tower": SumTower(dim=8)}


class Frame:
    """As much of a data frame as is used; neither pandas nor polars need be there."""

    def __init__(self, **columns):
        self._columns = columns
        self.columns = list(columns)

    def __getitem__(self, name):
        return self._columns[name]


@cases("form", list, tuple, iter)
def test_other_columns_of_texts_are_kept_in_every_form(form):
    rows = [{"id": "7", "text": "a", "year": 1}, {"id": "d8", "text": "b"}]
    texts, others = module.texts_and_others(form(rows), "documents")
    assert [text.id for text in texts] == ["7", "d8"]
    assert others == [{"year": 1}, {}]
    assert module.texts_and_others(form([("7", "a")]), "documents")[1] == [{}]


@cases("given", {1: "test"}, [("1", "test")], Frame(query_id=[1], split=["test"]))
def test_splits_are_taken_in_every_form(given):
    assert module.splits_of(given) == {"1": "test"}


def test_a_query_has_one_split_and_a_column_one_name():
    for splits in ([("1", "test"), (1, "train")], {1: "test", "1": "test"}):
        with pytest.raises(InputError, match=r"splits\[1\]: query '1' already has a split at spl"):
            module.splits_of(splits)
    frame = Frame(id=["1", "2", "3"], text=["a", "b", "c"], year=[1, 2, 3])
    frame.columns.append("year")  # as pandas has it, where frame["year"] is a frame
    with pytest.raises(InputError, match=r"documents: 2 columns have the name 'year'\. Rename"):
        texts_of(frame, "documents")
    for form in ({"q": {*"edcba"}}, {("q", d) for d in "edcba"}):
        assert judgments_of(form) == [Judgment("q", d, 1) for d in "abcde"]


@cases(
    "given, texts",
    ({np.int64(7): "ein Apfel", "d8": ""}, TEXTS),
    (Frame(text=["ein Apfel", ""], other=[1, 2], id=[7, "d8"]), TEXTS),
    (Frame(id=["1"], text=["Apfel"], title=["Obst"]), [Text("1", "Obst", "Apfel")]),
    (["a", " "], [Text("0", "", "a"), Text("1", "", " ")]),  # ids are positions
    (np.array(["a"]), [Text("0", "", "a")]),
    ([{"qid": 7.0, "Query": "ein Apfel"}, {"id": "d8", "text": "", "title": np.nan}], TEXTS),
    ([(7, "ein Apfel"), ["d8", ""]], TEXTS),
)
def test_texts(given, texts):
    assert texts_of(given, "documents") == texts


@cases(
    "given",
    (row for row in [["q1", "7", 2.0], ("q1", "d8", np.int32(0))]),
    {"q1": {7: 2, "d8": 0}},
    Frame(query_id=["q1", "q1"], document_id=[7, "d8"], grade=[2.0, 0.0]),
    [("q1", "7", 2, 1.0), ("q1", "d8", 0, None)],
    Frame(qid=["q1", "q1"], docid=[7.0, "d8"], **{"corpus-ID": [7, "d8"], "label": [2, False]}),
)
def test_judgments(given):
    assert judgments_of(given) == JUDGMENTS


def test_frames_of_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": ["7", "d8"], "text": ["ein Apfel", ""]})
    for form in (frame, frame.set_index("id")["text"], frame.set_index("id")):
        assert texts_of(form, "documents") == TEXTS
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


@cases(
    "given, message",
    ("a text", "queries='a text': it is a single string. Give a list of strings"),
    (b"bytes", "it is bytes"),
    (7, "it is 7, an int"),
    ([], "queries: it is empty"),
    ({"a", "b"}, "queries: it is a set, whose order is by chance. Give a list of strings, a dic"),
    (["a", " "], r"queries\[1\]: the text of query 1 is empty"),
    (["a", 7], r"queries\[1\]: the text of 1 is 7, not a string. Give a string there"),
    ({"a b": "text"}, r"queries\[0\]: id 'a b' is empty or contains white space"),
    ({1.5: "text"}, "id is 1.5, not a string or a whole number"),
    ({True: "text"}, "id is True"),
    ({"q": "\ud800"}, "half of a surrogate pair"),
    ([{"id": 1, "text": "a", "x": {(1,): 2}}], r"queries\[0\]: its other columns .*keys must be"),
    ([{"id": 1, "text": "a", "x": ["\ud800"]}], "cannot be kept as JSON .*surrogates not allowed"),
)
def test_other_texts_are_errors(given, message):
    with pytest.raises(InputError, match=message):
        texts_of(given, "queries")


@cases(
    "given, message",
    ([("q1",)], r"judgments\[0\]: it is \('q1',\), a tuple, not 2 or 3 values"),
    (["q1d"], r"judgments\[0\]: it is 'q1d', a str, not 2 or 3 values"),
    ([("q1", "d1", 0.5)], "the grade is 0.5, not a whole number"),
    ([("q1", "d1", 1, -1)], r"judgments\[0\]: the weight is -1, not a number above 0"),
    ([("q1", "d1", None)], "the grade is missing. Give whole numbers"),
    ({"q1": "d1"}, r"judgments\['q1'\]: it is 'd1', a str, not a dictionary or a list"),
    (Frame(query_id=["q"], doc=["d"], grade=[1]), "no column 'document_id'"),
)
def test_other_judgments_are_errors(given, message):
    with pytest.raises(InputError, match=message):
        judgments_of(given)


def test_a_list_of_strings_and_a_whole_number_are_nothing_else():
    for one in ("one", {"a": "b"}, Frame(text=["a"]), 3, [3]):
        with pytest.raises(InputError, match=r"list of strings|Give a string there"):
            strings(one, "texts")
    for one in (0, True, 2.0):
        with pytest.raises(InputError, match="Give a whole number from 1 on"):
            module.whole_number(one, "k")


@pytest.fixture(scope="module")
def places(tiny_dir, tmp_path_factory):
    directory = tmp_path_factory.mktemp("given")
    return {"data": tiny_dir, "output_dir": directory / "run", "cache_dir": directory / "cache"}


def own_objects(power=1.5):
    towers = {"query_tower": SumTower(name="mine"), "document_tower": SumTower(dim=8)}
    return {"loss": PowerLoss(power), **towers, "epochs": 4, "negatives": 3, "preset": "fast"}


@pytest.fixture(scope="module")
def trained(places):
    """A model of own objects, and the callback that stopped it after two epochs of four."""
    recorder = Recorder(last=2)
    return sc.train(**own_objects(), callbacks=[recorder], **places), recorder


def test_callbacks_can_stop_a_run_that_keeps_objects_and_refuses_others(trained, places):
    model, recorder = trained
    assert recorder.calls == ["begin", (0, True, True), (1, True, True), "end"]
    assert model.details["training"]["epochs"] == 2
    run = places["output_dir"]
    settings = json.loads((run / "config.json").read_text())["settings"]["model"]
    assert (settings["loss"], settings["tower"], settings["dim"]) == ("given", "given", 8)
    loss = given.given_object(settings["objects"], "loss")
    assert (type(loss), loss.power) == (PowerLoss, 1.5)
    np.testing.assert_array_equal(sc.load(run).encode_queries(QUERY), model.encode_queries(QUERY))
    begun = (run / "metrics.json").stat().st_mtime_ns
    sc.train(**own_objects(), **places)
    assert (run / "metrics.json").stat().st_mtime_ns == begun
    with pytest.raises(InputError, match="--objects: "):
        sc.train(**own_objects(power=3.0), **places)


def test_export_index_and_search_take_them(trained, tmp_path, no_child_process):
    model, _ = trained
    model.export(tmp_path / "export")
    published = sc.load(tmp_path / "export")
    ids = [[hit.id for hit in one.search(QUERY, k=5)[0]] for one in (model, published)]
    assert ids[0] == ids[1]
    vectors, expected = published.encode_queries(QUERY), model.encode_queries(QUERY)
    np.testing.assert_allclose(vectors, expected, rtol=1e-5, atol=1e-6)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:  # both are in use
        for one, of_one in ((model, expected), (published, vectors)):
            found = pool.submit(one.encode_queries, QUERY).result()
            np.testing.assert_allclose(found, of_one, rtol=1e-5, atol=1e-6)


def test_a_class_that_is_not_known_is_not_imported(monkeypatch):
    written = given.objects_text(loss=PowerLoss(1.5)).replace("PowerLoss", "Stranger")
    monkeypatch.setattr(given, "_classes", {})
    sc.plugins.load([PowerLoss.__module__])  # as --plugin does: it has classes alone
    with pytest.raises(InputError, match=r"an object of antigravity\.Stranger, .*--plugin names"):
        given.given_object(written.replace("tests.api.own_objects", "antigravity"), "loss")


@cases(
    "arguments, message",
    ({"query_tower": "cnn"}, r"^train: query_tower: it is a str\. Give a Keras layer"),
    ({"query_tower": SumTower(dim=4), "tower": "cnn"}, "towers are given as objects too"),
    (UNEQUAL, r"different lengths \(query_tower: 4, document_tower: 8\)"),
    ({"query_tower": SumTower(dim=4), "tune": ["dim"]}, "--tune=dim --objects.* has its own"),
    ({"query_tower": keras.layers.GRU(4)}, r"^train: query_tower: it cannot read padded ids"),
    ({"query_tower": keras.layers.Embedding(9, 4)}, r"it returns 3 axes, \(1, 1, 4\)"),
    ({"loss": sc.SoftmaxLoss(), "preset": "fast"}, r"--loss.*: give --batching=lists"),
    ({"loss": sc.SoftmaxLoss}, r"loss: it is a class\. Give an object: SoftmaxLoss\(\)"),
    ({"loss": sc.SoftmaxLoss(), "temperature": 1.0}, r"given has 0\.1\. Leave one of the two out"),
    ({"loss": sc.SoftmaxLoss(), "preset": "lexical"}, "loss: no towers are trained"),
    ({"query_tower": SumTower(), "preset": "lexical"}, "query_tower: no towers are trained"),
    ({"tune": ["epsilon"], "epsilon": 0.3}, "epsilon: .*tune searches it"),
    ({"callbacks": Recorder(1)}, "callbacks: it is .* Give a list of Keras callbacks"),
    ({"folds": "5"}, "folds: it is '5', a str. Give a whole number from 0 on"),
    ({"callbacks": ["x"]}, r"callbacks: it is \['x'\], a list"),
)
def test_what_cannot_be_used_is_an_error_in_words(arguments, message, tmp_path):
    call = sc.tune if "tune" in arguments else sc.train
    with pytest.raises(InputError, match=message):
        call(output_dir=tmp_path / "run", epochs=1, **arguments)


def test_a_layer_reads_padded_ids_and_an_empty_text_is_the_zero_vector():
    tower = GivenTower(SumTower(words=5, dim=2), vocabulary_size=5)
    vectors = tower(Tokens.of(tf.constant([2, 3, 99, 4]), tf.constant([2, 0, 2])))
    rows = tower.layer.vectors(tf.constant([1, 2, 3, 4])).numpy()  # unknown, then three words
    expected = [np.tanh(rows[1] + rows[2]), [0, 0], np.tanh(rows[0] + rows[3])]
    np.testing.assert_allclose(vectors, expected, rtol=1e-5, atol=1e-7)
    assert tower(Tokens.of(tf.zeros([0], tf.int32), tf.constant([0]))).numpy().tolist() == [[0, 0]]
    with pytest.raises(InputError, match=r"(?s)up to 5 \(.* below vocabulary_size \(give a sma"):
        GivenTower(SumTower(words=5, dim=2), vocabulary_size=6)


def test_a_tower_of_this_package_gets_the_vocabulary_of_the_set():
    text = given.objects_text(query_tower=AveragePoolingTower(vocabulary_size=7, dim=3))
    settings = {"objects": text, "dim": 3, "token_weights": "none", "position_weights": "none"}
    for role, size in (("query", 20), ("document", 30)):
        tower = GivenTower.from_settings(settings, size, seed=1, name=f"{role}_tower")
        assert (type(tower), tower.vocabulary_size, tower.dim) == (AveragePoolingTower, size, 3)
