"""Sets in BEIR's layout: texts with titles, splits by the names of parts, errors with places."""

from __future__ import annotations

import json

import pytest

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.beir_directory import BeirDirectory
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import Judgment, Text
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError

HEADER = "query-id\tcorpus-id\tscore\n"
CORPUS = [
    {"_id": "d1", "title": "L'eau", "text": "un liquide", "metadata": {"url": "x"}},
    {"_id": 2, "title": "", "text": "une pierre"},
    {"_id": "d3", "text": ""},
]


@pytest.fixture
def make(tmp_path):
    def make_files(parts, queries=10, corpus=CORPUS):
        (tmp_path / "qrels").mkdir()
        lines = "".join(f"{json.dumps(record)}\n" for record in corpus)
        (tmp_path / "corpus.jsonl").write_text(lines, encoding="utf-8")
        lines = "".join(f'{{"_id": "q{i}", "text": "water {i}"}}\n' for i in range(queries))
        (tmp_path / "queries.jsonl").write_text(lines, encoding="utf-8")
        for name, content in parts.items():
            (tmp_path / "qrels" / f"{name}.tsv").write_text(content, encoding="utf-8")
        return tmp_path

    return make_files


def judged(*queries):
    return HEADER + "".join(f"q{query}\td1\t2\n" for query in queries)


def test_a_document_is_its_title_and_its_text(make):
    source = source_of(DataSettings(data_dir=str(make({"test": judged(0)}, queries=1))))
    assert isinstance(source, BeirDirectory)
    assert list(source.documents()) == [
        Text("d1", "", "L'eau un liquide"),
        Text("2", "", "une pierre"),
        Text("d3", "", ""),
    ]
    assert list(source.queries()) == [Text("q0", "", "water 0")]
    assert list(source.judgments()) == [Judgment("q0", "d1", 2)]


def test_parts_are_splits(make):
    source = BeirDirectory(make({"train": judged(0, 1), "dev": judged(2), "test": judged(3)}), "fr")
    assert source.splits() == {"q0": "train", "q1": "train", "q2": "validation", "q3": "test"}
    found = RetrievalSet.load(source)
    assert found.queries_in("validation").tolist() == [2]
    assert found.queries_in("test").tolist() == [3]


def test_without_dev_a_fifth_of_the_training_queries_validates(make):
    source = BeirDirectory(make({"train": judged(*range(1, 10)), "test": judged(0)}), "fr")
    splits = list(source.splits().values())
    # 9 // 5 = 1 of the training queries; the published test query stays what it is.
    assert sorted(splits) == ["test"] + 8 * ["train"] + ["validation"]
    assert source.splits()["q0"] == "test"
    assert source.splits() == source.splits()


def test_without_test_dev_is_the_test(make):
    source = BeirDirectory(make({"train": judged(*range(5)), "dev": judged(5, 6)}), "fr")
    assert [source.splits()[query] for query in ("q5", "q6")] == ["test", "test"]
    assert list(source.splits().values()).count("validation") == 1


def test_a_part_alone(make):
    source = BeirDirectory(make({"test": judged(0, 1)}), "fr")
    assert source.splits() == {"q0": "test", "q1": "test"}  # BEIR's figures are over all of them
    with pytest.raises(InputError, match="no query of the train split"):
        RetrievalSet.load(source).queries_in("train")


def test_training_judgments_alone_are_split_by_seed(make):
    source = BeirDirectory(make({"train": judged(*range(10))}), "fr")
    assert source.splits() is None
    assert len(RetrievalSet.load(source).queries_in("test")) == 2  # 3:1:1


def test_fingerprint_follows_every_file(make):
    directory = make({"train": judged(0), "test": judged(1)})
    prints = {BeirDirectory(directory, "fr").fingerprint()}
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/train.tsv", "qrels/test.tsv"):
        with open(directory / name, "a", encoding="utf-8") as file:
            file.write("\n")
        prints.add(BeirDirectory(directory, "fr").fingerprint())
    assert len(prints) == 5


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({}, "it has no qrels/"),
        ({"extra": judged(0)}, r"extra\.tsv: its name is no part of a set. Name it one of train"),
        ({"test": "q0\td1\t1\n"}, r"test\.tsv:1: the first line is a judgment. Begin with"),
        ({"test": judged(0) + "q1\td1\n"}, r"test\.tsv:3: 2 tab-separated columns instead of 3"),
        ({"test": judged(0) + "q1\td1\tx\n"}, r"test\.tsv:3: grade 'x' is not an integer"),
        (
            {"train": judged(0), "test": HEADER + "q0\t2\t1\n"},
            "query 'q0' has judgments for test and for train",
        ),
        ({"train": judged(0), "test": judged(1, 99)}, r"test\.tsv:3: .*q99"),
    ],
)
def test_defects_are_named(make, parts, message):
    directory = make(parts)
    with pytest.raises(InputError, match=message):
        RetrievalSet.load(BeirDirectory(directory, "fr"))


def test_a_text_without_an_id_is_named(make):
    directory = make({"test": judged(0)}, corpus=[{"id": "d1", "text": "x"}])
    with pytest.raises(InputError, match=r"corpus\.jsonl:1: the object has no '_id'; it has: id"):
        RetrievalSet.load(BeirDirectory(directory, "fr"))


def test_two_layouts_in_one_directory_are_refused(make):
    directory = make({"test": judged(0)})
    (directory / "documents.tsv").write_text("1\ta\n", encoding="utf-8")
    with pytest.raises(InputError, match="it contains two sets"):
        source_of(DataSettings(data_dir=str(directory)))
