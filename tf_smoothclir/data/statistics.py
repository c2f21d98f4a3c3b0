"""Statistics of a retrieval set: Table 1 of the paper and more."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.source import SPLITS, Text

_WORD = re.compile(r"\w+")
PERCENTILES = (25, 50, 75, 90, 99, 100)
TABLE_1 = ("Language", "Queries", "Partly relevant documents per query", "Documents")


@dataclasses.dataclass(frozen=True)
class CollectionStatistics:
    """Counts of a retrieval set."""

    # "Partly relevant" (the paper's SR): from grade 1 to below the highest. A percentile is the
    # smallest value that at least that share does not exceed. Lengths count what white space
    # separates.

    name: str
    queries: int
    documents: int
    partly_relevant_mean: float  # documents per query, the paper's SR/Q
    without_partly_relevant: float  # share of the queries, 0..1
    partly_relevant_percentiles: tuple[int, ...]  # documents per query, at each of `PERCENTILES`
    query_length_mean: float
    query_length_median: int
    document_length_mean: float
    document_length_median: int
    query_vocabulary: int  # lower-cased words that occur at least twice
    document_vocabulary: int
    splits: dict[str, int] | None  # split -> queries; None if the set has none of its own

    def to_dict(self) -> dict[str, Any]:
        """The attributes as a dictionary for JSON."""
        return dataclasses.asdict(self)

    def table_1(self, language: str) -> list[str]:
        """The cells of the columns `TABLE_1`."""
        counts = f"{self.queries:,}", f"{self.partly_relevant_mean:.1f}", f"{self.documents:,}"
        return [language, *counts]

    def details(self) -> list[list[str]]:
        """Statistics besides those of Table 1: rows of a name and a value."""
        splits = "none"
        if self.splits is not None:
            splits = " / ".join(f"{self.splits.get(split, 0):,}" for split in SPLITS)
        percentiles = " / ".join(f"{value:,}" for value in self.partly_relevant_percentiles)
        of_queries = " / ".join(map(str, PERCENTILES))
        return [
            ["queries without partly relevant documents", f"{self.without_partly_relevant:.1%}"],
            [f"partly relevant documents, percentiles {of_queries}", percentiles],
            ["words of a query, mean", f"{self.query_length_mean:,.1f}"],
            ["words of a query, median", f"{self.query_length_median:,}"],
            ["words of a document, mean", f"{self.document_length_mean:,.1f}"],
            ["words of a document, median", f"{self.document_length_median:,}"],
            ["query vocabulary", f"{self.query_vocabulary:,}"],
            ["document vocabulary", f"{self.document_vocabulary:,}"],
            ["train / validation / test queries", splits],
        ]


def collection_statistics(retrieval_set: RetrievalSet) -> CollectionStatistics:
    """Counts a set, streaming its texts once; judgments that were skipped do not count."""
    source = retrieval_set.source
    queries, query_lengths, query_vocabulary = _count_texts(source.queries())
    documents, document_lengths, document_vocabulary = _count_texts(source.documents())
    partly_relevant = _partly_relevant(retrieval_set)
    splits = source.splits()
    return CollectionStatistics(
        name=source.name,
        queries=queries,
        documents=documents,
        partly_relevant_mean=_mean(partly_relevant),
        without_partly_relevant=partly_relevant[0] / queries if queries else 0.0,
        partly_relevant_percentiles=tuple(_percentile(partly_relevant, p) for p in PERCENTILES),
        query_length_mean=_mean(query_lengths),
        query_length_median=_percentile(query_lengths, 50),
        document_length_mean=_mean(document_lengths),
        document_length_median=_percentile(document_lengths, 50),
        query_vocabulary=query_vocabulary,
        document_vocabulary=document_vocabulary,
        splits=None if splits is None else dict(Counter(splits.values())),
    )


def _count_texts(texts: Iterable[Text]) -> tuple[int, Counter, int]:
    """The number of texts, length -> number of texts, and the vocabulary size."""
    lengths, words = Counter(), Counter()
    for text in texts:
        lengths[len(text.text.split())] += 1
        words.update(_WORD.findall(text.text.lower()))
    return sum(lengths.values()), lengths, sum(count > 1 for count in words.values())


def _partly_relevant(retrieval_set: RetrievalSet) -> Counter:
    """Number of partly relevant documents -> number of queries that have as many."""
    grades = retrieval_set.grades
    rows = retrieval_set.query_rows[(grades > 0) & (grades < grades.max(initial=0))]
    return Counter(np.bincount(rows, minlength=len(retrieval_set.query_ids)).tolist())


def _mean(histogram: Counter) -> float:
    total = sum(histogram.values())
    return sum(value * count for value, count in histogram.items()) / total if total else 0.0


def _percentile(histogram: Counter, percent: int) -> int:
    total, below = sum(histogram.values()), 0
    for value in sorted(histogram):
        below += histogram[value]
        if below * 100 >= percent * total:
            return value
    return 0
