"""Fusion of a lexical model and two towers: their scores become points, which are added.

With the share s that the towers have, and the points of a document by each half,

    score(q, d) = a_lexical points_lexical(q, d) + a_dense points_dense(q, d).

There are two formulas. The weighted sum of standardised scores,

    (1 - s) lexical(q, d) / σ_lexical + s SCS(q, d) / σ_dense,

where σ is the standard deviation of the scores of a query over the collection, the mean over
validation queries. It is scaled so that lexical scores count as they are, as feedback expects:

    a_lexical = 1,  a_dense = s / (1 - s) σ_lexical / σ_dense.

And reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009; there both weights are equal),
in which the best `DEPTH` documents of each half with a score above 0 have points for their ranks,
and others have none:

    points = 60 / (60 + rank),  a_lexical = (1 - s) 15 σ_lexical,  a_dense = s 15 σ_lexical.

A rank is 1 plus the number of documents with a higher score, so equal scores have equal points.
15 σ_lexical is about the score of the first document of a lexical ranking.

Feedback comes after either formula.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.lexical.postings import highest
from tf_smoothclir.protocols.scorer import ScoreRows
from tf_smoothclir.storage.files import read_json, write_json
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.records import record_from_json

SUM, RECIPROCAL_RANK = "sum", "reciprocal_rank"
FORMULAS = (SUM, RECIPROCAL_RANK)
DEPTH = 1000
RANK_CONSTANT = 60.0
_FIRST_SCORE = 15.0


@dataclasses.dataclass(frozen=True)
class Fusion:
    """Formula and weights of the sum of a lexical model and towers.

    Attributes:
        share: s, in [0, 1]: 0 ranks by the lexical model alone, 1 by the towers alone.
        feedback: Weight of feedback over the fused scores; 0 for none.
        formula: One of `FORMULAS`.
    """

    share: float
    lexical_deviation: float
    dense_deviation: float
    feedback: float = 0.0
    seconds: float = 0.0
    formula: str = SUM

    def __post_init__(self):
        if self.formula not in FORMULAS:
            raise ValueError(f"formula must be one of {', '.join(FORMULAS)}, not {self.formula!r}")

    @property
    def by_ranks(self) -> bool:
        """Whether points depend on the other documents of the collection."""
        return self.formula == RECIPROCAL_RANK

    @property
    def of_pairs(self) -> Fusion:
        """Scorer of a query and a document without a collection.

        Such a pair has no rank, so this is the weighted sum, with the same share.
        """
        return dataclasses.replace(self, formula=SUM)

    @property
    def weights(self) -> tuple[float, float]:
        """Weights of the points of the lexical model and of the towers."""
        if self.by_ranks:
            scale = _FIRST_SCORE * (self.lexical_deviation or 1.0)
            return scale * (1 - self.share), scale * self.share
        if self.share == 0 or self.dense_deviation == 0:
            return 1.0, 0.0
        scale = (self.lexical_deviation or 1.0) / self.dense_deviation
        if self.share == 1:
            return 0.0, scale
        return 1.0, scale * self.share / (1 - self.share)

    def points(self, scores: np.ndarray) -> np.ndarray:
        """Points of all documents from the scores of one half, before they are weighted.

        Args:
            scores: `[queries, documents]` float32.
        """
        return reciprocal_ranks(scores) if self.by_ranks else scores

    def added(self, lexical: np.ndarray, dense: np.ndarray) -> np.ndarray:
        """The weighted sum of points of one shape, float32."""
        of_lexical, of_dense = map(np.float32, self.weights)
        return of_lexical * lexical + of_dense * dense

    def rows(self, lexical: ScoreRows, dense: ScoreRows) -> ScoreRows:
        """Scorer by the formula; a part without weight is not asked."""
        parts = [(np.float32(a), part) for a, part in zip(self.weights, (lexical, dense)) if a]
        return lambda query_rows: functools.reduce(
            np.add, (weight * self.points(part(query_rows)) for weight, part in parts)
        )

    def save(self, path: Path) -> None:
        """Writes a JSON file."""
        write_json(path, dataclasses.asdict(self))

    @classmethod
    def load(cls, path: Path) -> Fusion:
        """Reads what `save` wrote."""
        try:
            return record_from_json(cls, read_json(path))
        except ValueError as error:
            remedy = "Restore the file, or train again"
            raise input_error(path, str(error).rstrip("."), remedy) from error

    def __str__(self):
        formula = ", by reciprocal ranks" if self.by_ranks else ""
        return f"vectors have {self.share:.0%} of the score{formula}, feedback {self.feedback:g}"


def reciprocal_ranks(scores: Sequence[np.ndarray]) -> np.ndarray:
    """The points of the documents of several rankings.

    Args:
        scores: `[rankings, documents]` float32.
    """
    found = np.zeros(np.shape(scores), np.float32)
    for row, own in zip(found, scores):
        best = highest(own, min(DEPTH, len(own)))
        descending = -own[best]
        ranks = 1 + np.searchsorted(np.sort(descending), descending)
        row[best] = np.where(own[best] > 0, RANK_CONSTANT / (RANK_CONSTANT + ranks), 0)
    return found
