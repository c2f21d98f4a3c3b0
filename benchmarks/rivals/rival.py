"""What a rival is: a system of another package that learns from the pairs of a set and ranks it."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from importlib import metadata, util

import numpy as np

from benchmarks.rivals.texts import RivalTexts
from tf_smoothclir.lexical.validation import Validation
from tf_smoothclir.protocols.scorer import ScoreRows

DEPTH = 10  # documents that answer a query when latency is measured


@dataclasses.dataclass(frozen=True)
class Ready:
    """A trained rival."""

    # From `[queries]` rows to the scores of all documents, `[queries, documents]` float32.
    rows: ScoreRows
    # From the words of a query, joined by spaces, to the rows of its `DEPTH` best documents, by
    # the package's own search: what a query costs.
    answer: Callable[[str], np.ndarray]
    seconds: float  # time spent on learning and indexing
    setting: str = ""  # what differs between variants, such as "k1 1.5, b 0.75"
    # Encodes the texts of documents; None where the words that our tokeniser found are indexed.
    encode: Callable[[list[str]], object] | None = None


@dataclasses.dataclass(frozen=True)
class Rival:
    """A system of another package."""

    title: str  # for tables
    recipe: str  # what it learns from and how, in a sentence, for the page
    packages: dict[str, str]  # distribution -> module, for each that it needs
    # Trains one variant after the other; validation chooses.
    variants: Callable[[RivalTexts], Iterator[Ready]]

    def missing(self) -> str:
        """Why it cannot run here; empty if it can."""
        absent = [name for name, module in self.packages.items() if util.find_spec(module) is None]
        return f"not installed; pip install {' '.join(absent)}" if absent else ""

    def versions(self) -> dict[str, str]:
        """The version of each of its packages."""
        return {name: metadata.version(name) for name in self.packages}


@dataclasses.dataclass(frozen=True)
class Chosen:
    """The variant of a rival that validation chose."""

    ready: Ready  # the variant
    # Setting -> mean of NDCG@5 and full MRR@10 on validation queries, of each variant.
    qualities: dict[str, float]
    tuned_seconds: float  # time spent on all variants, validation included


def best_variant(rival: Rival, texts: RivalTexts) -> Chosen:
    """Trains every variant of a rival and keeps the one that ranks validation queries best.

    The measure is that by which our own lexical models and hybrids choose.
    """
    begin = time.monotonic()
    validation, best, qualities = Validation(texts.retrieval_set), None, {}
    for ready in rival.variants(texts):
        quality = validation(ready.rows)
        if not qualities or quality > max(qualities.values()):
            best = ready
        qualities[ready.setting] = quality
    if best is None:
        raise ValueError(f"{rival.title} has no variant.")
    return Chosen(best, qualities, time.monotonic() - begin)


def best_documents(scores: np.ndarray) -> np.ndarray:
    """The `DEPTH` best of `[documents]` scores, in any order: what packages leave to us."""
    depth = min(DEPTH, len(scores))
    return np.argpartition(-scores, depth - 1)[:depth]


def unit_vectors(vectors: np.ndarray) -> np.ndarray:
    """`[texts, dimensions]` float32 vectors of length 1; a zero vector stays zero."""
    vectors = np.asarray(vectors, np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
