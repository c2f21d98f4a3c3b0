import dataclasses

import pytest

from tests.small_world import SmallWorld
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.data.statistics import TABLE_1, collection_statistics

QUERIES = [("a", "One two"), ("b", "two"), ("c", ""), ("d", "three,four\u00a0five TWO")]


class Tiny(SmallWorld):
    def documents(self):
        yield Text("1", "title words do not count", "été Été hiver")
        yield from (Text(id_, "", "") for id_ in "23")


def statistics_of(judgments, splits=None):
    source = Tiny(queries=QUERIES, judgments=judgments, splits=splits)
    source.max_skipped = 0.5
    return collection_statistics(RetrievalSet.load(source, num_grades=5))


def test_every_number_of_a_tiny_set():
    judgments = [("a", "1", 2), ("a", "2", 1), ("a", "3", 1), ("b", "1", 1), ("b", "2", 0)]
    judgments += [("a", "2", 1), ("b", "4", 1), ("z", "1", 3)]  # which are skipped
    splits = {"a": "train", "b": "train", "c": "validation", "d": "test"}
    statistics = statistics_of(judgments, splits)
    assert statistics.to_dict() == {
        "name": "small-en-de",
        "queries": 4,
        "documents": 3,
        "partly_relevant_mean": (2 + 1 + 0 + 0) / 4,
        "without_partly_relevant": 2 / 4,
        "partly_relevant_percentiles": (0, 0, 1, 2, 2, 2),
        "query_length_mean": (2 + 1 + 0 + 3) / 4,
        "query_length_median": 1,
        "document_length_mean": 1.0,
        "document_length_median": 0,
        "query_vocabulary": 1,  # "two", three times
        "document_vocabulary": 1,  # "été"
        "splits": {"train": 2, "validation": 1, "test": 1},
    }
    assert {"2 / 1 / 1", "50.0%", "1.5"} <= set(dict(statistics.details()).values())
    said = " ".join([*TABLE_1, *dict(statistics.details())])
    assert "artly relevant" in said
    assert "SR" not in said
    large = dataclasses.replace(statistics, queries=25000, documents=1894000)
    assert large.table_1("fr") == ["fr", "25,000", "0.8", "1,894,000"]  # 3 / 4


@pytest.mark.parametrize(
    ("grades", "mean"), [((1, 1), 0.0), ((1, 0), 0.0), ((2, 1), 0.25), ((4, 3), 0.25)]
)
def test_the_highest_grade_is_not_partly_relevant(grades, mean):
    judgments = [("a", str(number), grade) for number, grade in enumerate(grades, start=1)]
    assert statistics_of(judgments).partly_relevant_mean == mean
