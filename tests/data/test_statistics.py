from __future__ import annotations

import dataclasses
import json

import pytest

from tf_smoothclir.data.sources.source import Judgment, Source, Text
from tf_smoothclir.data.sources.wikiclir_files import WikiClirDirectory
from tf_smoothclir.data.statistics import PERCENTILES, TABLE_1, collection_statistics

# The rows of both tables of counts in the README of the sets.
REAL_SETS = [
    "| `mdn-en-de` | 12,563 | 14,592 | 3.45 | 13% | 1 / 2 / 4, 8 / 26 / 199 | 17.9 / 17"
    " | 130.5 / 133 | 5,060 | 30,322 | 7,539 / 2,512 / 2,512 |",
    "| `bible-en-fr` | 25,000 | 30,442 | 4.59 | 8% | 2 / 4 / 6, 10 / 18 / 42 | 24.3 / 23"
    " | 24.9 / 23 | 7,869 | 13,928 | 15,000 / 5,000 / 5,000 |",
    "| `bible-en-tl` | 25,000 | 31,102 | 4.63 | 8% | 2 / 4 / 6, 10 / 18 / 42 | 24.3 / 23"
    " | 26.5 / 25 | 7,900 | 13,386 | 15,000 / 5,000 / 5,000 |",
]


class Tiny(Source):
    name, query_language, document_language = "tiny", "en", "fr"

    def __init__(self, judgments, splits=None):
        self._judgments, self._split_of = judgments, splits

    def queries(self):
        yield from (Text("a", "", "One two"), Text("b", "", "two"), Text("c", "", ""))
        yield Text("d", "", "three,four\u00a0five TWO")

    def documents(self):
        yield Text("1", "title words do not count", "été Été hiver")

    def judgments(self):
        return iter([Judgment(*judgment) for judgment in self._judgments])

    def splits(self):
        return self._split_of

    def place(self, stream, index):
        raise NotImplementedError

    def fingerprint(self):
        raise NotImplementedError


@pytest.mark.parametrize("row", REAL_SETS, ids=lambda row: row.split("`")[1])
def test_real_sets_have_the_counts_of_their_readme(real_data, row):
    directory = real_data(row.split("`")[1])
    source = WikiClirDirectory(directory, directory.name[-2:])
    found = collection_statistics(source)
    low, middle, high, most, nearly_all, largest = found.partly_relevant_percentiles
    assert [cell.strip() for cell in row.strip("|").split("|")][1:10] == [
        f"{found.queries:,}",
        f"{found.documents:,}",
        f"{found.partly_relevant_mean:.2f}",
        f"{found.without_partly_relevant:.0%}",
        f"{low} / {middle} / {high}, {most} / {nearly_all} / {largest}",
        f"{found.query_length_mean:.1f} / {found.query_length_median}",
        f"{found.document_length_mean:.1f} / {found.document_length_median}",
        f"{found.query_vocabulary:,}",
        f"{found.document_vocabulary:,}",
    ]


def test_every_number_of_a_tiny_set():
    judgments = [("a", "1", 2), ("a", "2", 1), ("a", "3", 1), ("b", "1", 1), ("b", "2", 0)]
    splits = {"a": "train", "b": "train", "c": "validation", "d": "test"}
    statistics = collection_statistics(Tiny(judgments, splits))
    assert statistics.to_dict() == {
        "name": "tiny",
        "queries": 4,
        "documents": 1,
        "partly_relevant_mean": (2 + 1 + 0 + 0) / 4,
        "without_partly_relevant": 2 / 4,
        "partly_relevant_percentiles": (0, 0, 1, 2, 2, 2),
        "query_length_mean": (2 + 1 + 0 + 3) / 4,
        "query_length_median": 1,
        "document_length_mean": 3.0,
        "document_length_median": 3,
        "query_vocabulary": 1,  # "two", three times
        "document_vocabulary": 1,  # "été"
        "splits": {"train": 2, "validation": 1, "test": 1},
    }
    assert json.loads(json.dumps(statistics.to_dict()))["queries"] == 4


@pytest.mark.parametrize(
    ("grades", "mean"), [((1, 1), 0.0), ((1, 0), 0.0), ((2, 1), 0.25), ((4, 3), 0.25)]
)
def test_the_highest_grade_is_not_partly_relevant(grades, mean):
    judgments = [("a", str(number), grade) for number, grade in enumerate(grades)]
    assert collection_statistics(Tiny(judgments)).partly_relevant_mean == mean


def test_table_1_is_that_of_the_paper():
    statistics = collection_statistics(Tiny([("a", "1", 2), ("b", "1", 1)]))
    statistics = dataclasses.replace(statistics, queries=25000, documents=1894000)
    assert TABLE_1 == ("Language", "#Query", "#SR/Q", "#Documents")
    assert statistics.table_1("fr") == ["fr", "25,000", "0.2", "1,894,000"]  # 1 / 4


def test_details_name_every_other_statistic():
    statistics = collection_statistics(Tiny([("a", "1", 2)]))
    rows = dict(statistics.details())
    assert rows["queries without SR"] == "100.0%"
    assert rows["words of a query, mean"] == "1.5"  # (2 + 1 + 0 + 3) / 4
    assert rows["train / validation / test queries"] == "none"
    assert rows["SR/Q, percentiles 25 / 50 / 75 / 90 / 99 / 100"] == " / ".join("0" * 6)
    assert len(PERCENTILES) == 6
