"""Fusion of a lexical model with towers, a foreign encoder or both: their scores become points.

With the share s_p that a part p has, and the points of a document by it,

    score(q, d) = Σ_p a_p points_p(q, d).

There are two formulas. The weighted sum of standardised scores,

    Σ_p s_p score_p(q, d) / σ_p,

where σ_p is the standard deviation of the scores of a query over the collection, the mean over
validation queries. It is scaled so that lexical scores count as they are, as feedback expects:

    a_lexical = 1,  a_p = s_p / s_lexical σ_lexical / σ_p.

And reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009; there all weights are equal),
in which the best `DEPTH` documents of each part with a score above 0 have points for their ranks,
and others have none:

    points = 60 / (60 + rank),  a_p = s_p 15 σ_lexical.

A rank is 1 plus the number of documents with a higher score, so equal scores have equal points.
15 σ_lexical is about the score of the first document of a lexical ranking.

Feedback comes after either formula.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
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
_NO_SHARE = 1e-9  # what rounding leaves


@dataclasses.dataclass(frozen=True)
class Fusion:
    """Formula and weights of the sum of a lexical model, towers and a foreign encoder."""

    share: float  # of the towers, in [0, 1]
    lexical_deviation: float
    dense_deviation: float
    feedback: float = 0.0  # weight of feedback over the fused scores; 0 for none
    seconds: float = 0.0
    formula: str = SUM  # one of `FORMULAS`
    encoder_share: float = 0.0  # of the foreign encoder. The lexical model has what is left.
    encoder_deviation: float = 0.0

    def __post_init__(self):
        if self.formula not in FORMULAS:
            raise ValueError(f"formula must be one of {', '.join(FORMULAS)}, not {self.formula!r}")

    @property
    def shares(self) -> dict[str, float]:
        """Part -> its share, in the order in which points are added."""
        of_words = 1 - self.share - self.encoder_share
        of_words = of_words if of_words > _NO_SHARE else 0.0
        return {"lexical": of_words, "dense": self.share, "encoder": self.encoder_share}

    @property
    def parts(self) -> set[str]:
        """What has a share; feedback is by words, whatever share these have."""
        having = {part for part, share in self.shares.items() if share}
        return having | ({"lexical"} if self.feedback else set())

    def with_share(self, part: str, share: float) -> Fusion:
        """The fusion in which "dense" or "encoder" takes a share from all others alike."""
        shares = {name: before * (1 - share) for name, before in self.shares.items()}
        shares[part] = share
        return dataclasses.replace(self, share=shares["dense"], encoder_share=shares["encoder"])

    @property
    def by_ranks(self) -> bool:
        """Whether points depend on the other documents of the collection."""
        return self.formula == RECIPROCAL_RANK

    @property
    def of_pairs(self) -> Fusion:
        """The weighted sum, for a pair without a collection, which has no rank."""
        return dataclasses.replace(self, formula=SUM)

    @property
    def weights(self) -> dict[str, float]:
        """Part -> weight of its points, in the order in which they are added."""
        shares, scale = self.shares, self.lexical_deviation or 1.0
        if self.by_ranks:
            return {part: _FIRST_SCORE * scale * share for part, share in shares.items()}
        deviations = {"dense": self.dense_deviation, "encoder": self.encoder_deviation}
        whole = shares["lexical"] or 1.0
        weights = {
            part: scale / deviation * shares[part] / whole if deviation else 0.0
            for part, deviation in deviations.items()
        }
        of_words = 1.0 if shares["lexical"] or not any(weights.values()) else 0.0
        return {"lexical": of_words, **weights}

    def points(self, scores: np.ndarray) -> np.ndarray:
        """Points of documents from scores of a part, `[queries, documents]`, not weighted yet."""
        return reciprocal_ranks(scores) if self.by_ranks else scores

    def added(self, points: Mapping[str, np.ndarray]) -> np.ndarray:
        """The weighted sum of points of one shape, part -> float32, of parts with a weight."""
        weighted = (np.float32(a) * points[part] for part, a in self.weights.items() if a)
        return functools.reduce(np.add, weighted)

    def rows(self, parts: Mapping[str, ScoreRows]) -> ScoreRows:
        """Scorer by the formula, of part -> scorer; a part without weight is not asked."""
        asked = {part: parts[part] for part, weight in self.weights.items() if weight}
        return lambda query_rows: self.added(
            {part: self.points(rows(query_rows)) for part, rows in asked.items()}
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
        if self.encoder_share:
            formula = f", the encoder {self.encoder_share:.0%}{formula}"
        return f"vectors have {self.share:.0%} of the score{formula}, feedback {self.feedback:g}"


def reciprocal_ranks(scores: Sequence[np.ndarray]) -> np.ndarray:
    """The points of the documents of several rankings, from `[rankings, documents]` scores."""
    points = np.zeros(np.shape(scores), np.float32)
    for row, of_query in zip(points, scores):
        best = highest(of_query, min(DEPTH, len(of_query)))
        descending = -of_query[best]
        ranks = 1 + np.searchsorted(np.sort(descending), descending)
        row[best] = np.where(of_query[best] > 0, RANK_CONSTANT / (RANK_CONSTANT + ranks), 0)
    return points
