"""Statistics of a retrieval set: Table 1 of the paper and more."""

import functools
import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.source import SPLITS, Text
from tf_smoothclir.encoder.tokenizer import is_unspaced, words_of

_WORD = re.compile(r"\w+")
PERCENTILES = (25, 50, 75, 90, 99, 100)
TABLE_1 = ("Language", "Queries", "Partly relevant documents per query", "Documents")


def collection_statistics(retrieval_set: RetrievalSet) -> dict[str, Any]:
    """Counts a set, streaming its texts once; judgments that were skipped do not count."""
    # "Partly relevant" (the paper's SR): from grade 1 to below the highest. A percentile is the
    # smallest value that at least that share does not exceed. Lengths count what white space
    # separates, and each character of a script without spaces. Without queries, all is 0.
    source, grades = retrieval_set.source, retrieval_set.grades
    query_lengths, query_vocabulary = _count_texts(source.queries())
    document_lengths, document_vocabulary = _count_texts(source.documents())
    rows = retrieval_set.query_rows[(grades > 0) & (grades < grades.max(initial=0))]
    partly_relevant = np.bincount(rows, minlength=len(query_lengths))
    splits = source.splits()
    return {
        "name": source.name,
        "queries": len(query_lengths),
        "documents": len(document_lengths),
        "partly_relevant_mean": _mean(partly_relevant),  # documents per query, the paper's SR/Q
        "without_partly_relevant": _mean(partly_relevant == 0),  # share of the queries, 0..1
        # Documents per query, at each of `PERCENTILES`.
        "partly_relevant_percentiles": [_percentile(partly_relevant, p) for p in PERCENTILES],
        "query_length_mean": _mean(query_lengths),
        "query_length_median": _percentile(query_lengths, 50),
        "document_length_mean": _mean(document_lengths),
        "document_length_median": _percentile(document_lengths, 50),
        "query_vocabulary": query_vocabulary,  # lower-cased words that occur at least twice
        "document_vocabulary": document_vocabulary,
        # Split -> queries; None if the set has none of its own.
        "splits": None if splits is None else dict(Counter(splits.values())),
    }


def table_1(counted: Mapping[str, Any], language: str) -> list[str]:
    """The cells of the columns `TABLE_1`, by `collection_statistics`."""
    mean = f"{counted['partly_relevant_mean']:.1f}"
    return [language, f"{counted['queries']:,}", mean, f"{counted['documents']:,}"]


def details(counted: Mapping[str, Any]) -> list[list[str]]:
    """Statistics besides those of Table 1: rows of a name and a value."""
    splits = "none"
    if counted["splits"] is not None:
        splits = " / ".join(f"{counted['splits'].get(split, 0):,}" for split in SPLITS)
    percentiles = " / ".join(f"{value:,}" for value in counted["partly_relevant_percentiles"])
    without, asked = f"{counted['without_partly_relevant']:.1%}", " / ".join(map(str, PERCENTILES))
    rows = [
        ["queries without partly relevant documents", without],
        [f"partly relevant documents, percentiles {asked}", percentiles],
    ]
    for role in ("query", "document"):
        rows.append([f"words of a {role}, mean", f"{counted[f'{role}_length_mean']:,.1f}"])
        rows.append([f"words of a {role}, median", f"{counted[f'{role}_length_median']:,}"])
    for role in ("query", "document"):
        rows.append([f"{role} vocabulary", f"{counted[f'{role}_vocabulary']:,}"])
    return [*rows, ["train / validation / test queries", splits]]


def _count_texts(texts: Iterable[Text]) -> tuple[np.ndarray, int]:
    """The length of each text, and the vocabulary size."""
    lengths, vocabulary = [], Counter()
    for text in texts:
        counted = [_counted(chunk) for chunk in text.text.split()]
        lengths.append(sum(length for length, _ in counted))
        for _, words in counted:
            vocabulary.update(words)
    return np.array(lengths, np.int64), sum(count > 1 for count in vocabulary.values())


@functools.lru_cache(1 << 16)
def _counted(chunk: str) -> tuple[int, list[str]]:
    """The length of what stands between white space, and its words for the vocabulary."""
    if chunk.isascii():
        return 1, _WORD.findall(chunk.lower())
    pieces = [match[0] for match in words_of(chunk)]
    words = [[piece] if is_unspaced(piece) else _marked_words(piece.lower()) for piece in pieces]
    return len(pieces), [*itertools.chain.from_iterable(words)]


def _marked_words(text: str) -> list[str]:
    """The matches of `_WORD`, which the vowel signs and accents of a word do not end."""
    kept = (c if _WORD.match(c) or unicodedata.category(c)[0] == "M" else " " for c in text)
    return [word for word in "".join(kept).split() if _WORD.search(word)]


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else 0.0


def _percentile(values: np.ndarray, percent: int) -> int:
    return int(np.percentile(values, percent, method="inverted_cdf")) if len(values) else 0
