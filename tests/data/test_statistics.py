import dataclasses

import pytest

from tests.small_world import SmallWorld
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.data.statistics import collection_statistics

QUERIES = [("a", "One two"), ("b", "two"), ("c", ""), ("d", "three,four\u00a0five TWO")]


class Tiny(SmallWorld):
    def documents(self):
        yield Text("1", "title words do not count", "été Été hiver")


def test_every_number_of_a_tiny_set():
    judgments = [("a", "1", 2), ("a", "2", 1), ("a", "3", 1), ("b", "1", 1), ("b", "2", 0)]
    splits = {"a": "train", "b": "train", "c": "validation", "d": "test"}
    statistics = collection_statistics(Tiny(queries=QUERIES, judgments=judgments, splits=splits))
    assert statistics.to_dict() == {
        "name": "small-en-de",
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
    assert {"2 / 1 / 1", "50.0%", "1.5"} <= set(dict(statistics.details()).values())
    large = dataclasses.replace(statistics, queries=25000, documents=1894000)
    assert large.table_1("fr") == ["fr", "25,000", "0.8", "1,894,000"]  # 3 / 4


@pytest.mark.parametrize(
    ("grades", "mean"), [((1, 1), 0.0), ((1, 0), 0.0), ((2, 1), 0.25), ((4, 3), 0.25)]
)
def test_the_highest_grade_is_not_partly_relevant(grades, mean):
    judgments = [("a", str(number), grade) for number, grade in enumerate(grades)]
    statistics = collection_statistics(Tiny(queries=QUERIES, judgments=judgments, splits=None))
    assert statistics.partly_relevant_mean == mean
