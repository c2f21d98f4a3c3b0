"""Sets in BEIR's layout: texts with titles, splits by the names of parts, errors with places."""

import json
from collections import Counter

import pytest

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.user_files import BeirDirectory
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError

HEADER = "query-id\tcorpus-id\tscore\n"
CORPUS = [
    {"_id": "d1", "title": "L'eau", "text": "un liquide", "metadata": {"url": "x"}},
    {"_id": 2, "title": "", "text": "une pierre"},
    {"_id": "d3", "text": ""},
]


@pytest.fixture
def open_set(make):
    def open_directory(parts):
        files = {f"qrels/{name}.tsv": content for name, content in parts.items()}
        files["corpus.jsonl"] = "".join(f"{json.dumps(record)}\n" for record in CORPUS)
        queries = [f'{{"_id": "q{i}", "text": "water {i}"}}\n' for i in range(10)]
        return BeirDirectory(make({**files, "queries.jsonl": "".join(queries)}), "fr")

    return open_directory


def judged(*queries):
    return HEADER + "".join(f"q{query}\td1\t2\n" for query in queries)


def test_a_document_is_its_title_and_its_text(open_set, make):
    open_set({"test": judged(0)})
    source = source_of(DataSettings(data_dir=str(make({}))))
    assert isinstance(source, BeirDirectory)
    texts = [("d1", "", "L'eau un liquide", ""), ("2", "", "une pierre", ""), ("d3", "", "", "")]
    assert list(source.documents()) == texts
    assert list(source.queries())[9] == ("q9", "", "water 9", "")
    assert list(source.judgments()) == [("q0", "d1", 2)]
    make({"documents.tsv": "1\ta\n"})
    with pytest.raises(InputError, match="it contains two sets"):
        source_of(DataSettings(data_dir=str(make({}))))


@pytest.mark.parametrize(
    ("parts", "in_test", "sizes"),
    [
        ({"train": judged(0, 1), "dev": judged(2), "test": judged(3)}, ["q3"], (2, 1, 1)),
        # Without dev, 9 // 5 = 1 of the training queries; the published test stays what it is.
        ({"train": judged(*range(1, 10)), "test": judged(0)}, ["q0"], (8, 1, 1)),
        ({"train": judged(*range(5)), "dev": judged(5, 6)}, ["q5", "q6"], (4, 1, 2)),
        ({"test": judged(0, 1)}, ["q0", "q1"], (0, 0, 2)),  # BEIR's figures are over all of them
    ],
)
def test_parts_are_splits(open_set, parts, in_test, sizes):
    source = open_set(parts)
    splits = source.splits()
    assert [query for query, split in splits.items() if split == "test"] == in_test
    counts = Counter(splits.values())
    assert (counts["train"], counts["validation"], counts["test"]) == sizes
    assert source.splits() == splits
    loaded = RetrievalSet.load(source)
    assert [loaded.query_ids[row] for row in loaded.queries_in("test")] == in_test


def test_training_judgments_alone_are_split_by_seed(open_set):
    source = open_set({"train": judged(*range(10))})
    assert source.splits() is None
    assert len(RetrievalSet.load(source).queries_in("test")) == 2  # 3:1:1


def test_judgments_that_do_not_fit_are_skipped_up_to_a_share_and_counted(open_set, make, caplog):
    test = judged(*range(10)) + "q1\td1\t1\nq2\td9\t1\nq99\td1\t2\n"
    open_set({"test": test})
    (make({}) / "qrels" / "test.tsv").rename(make({}) / "qrels" / "TEST.TSV")
    directory = str(make({}))
    loaded = RetrievalSet.load(source_of(DataSettings(data_dir=directory, max_skipped=0.3)))
    assert loaded.grades.tolist() == [2] * 10
    assert len(loaded.queries_in("test")) == 10
    number = "skipped 3 of 13 judgments (23.1%): 1 repeat another one, 2 name a query or document"
    assert number in caplog.text
    with pytest.raises(InputError, match=r"TEST\.tsv:12|TEST\.TSV:13: .*--max_skipped=0\.2 allows"):
        RetrievalSet.load(source_of(DataSettings(data_dir=directory, max_skipped=0.2)))


def test_fingerprint_follows_every_file(open_set, make):
    prints = {open_set({"train": judged(0), "test": judged(1)}).fingerprint()}
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/train.tsv", "qrels/test.tsv"):
        with open(make({}) / name, "a", encoding="utf-8") as file:
            file.write("\n")
        prints.add(BeirDirectory(make({}), "fr").fingerprint())
    assert len(prints) == 5


BOTH = {"train": judged(0), "test": HEADER + "q0\t2\t1\n"}


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({}, "it has no qrels/"),
        ({"extra": judged(0)}, r"extra\.tsv: its name is no part of a set. Name it one of train"),
        (BOTH, "query 'q0' has judgments for test and for train"),
        ({"train": judged(0), "test": judged(1, 99)}, r"test\.tsv:3: .*q99"),
    ],
)
def test_defects_are_named(open_set, parts, message):
    with pytest.raises(InputError, match=message):
        RetrievalSet.load(open_set(parts))
