"""Fusion of a lexical model with towers, a foreign encoder or both: a weighted sum of their scores.

With the share s_p that a part p has, and the standard deviation σ_p of the scores of a query over
the collection, the mean over validation queries,

    score(q, d) = Σ_p s_p score_p(q, d) / σ_p,

where those of vectors count once for each word of the query that the lexical model knows, at least
once: lexical scores are sums over these words, and vectors alone would otherwise rank short
queries. It is scaled so that lexical scores count as they are, as feedback, which comes after it,
expects:

    score(q, d) = Σ_p a_p score_p(q, d),  a_lexical = 1,  a_p = s_p / s_lexical σ_lexical / σ_p.
"""

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import numpy as np

from tf_smoothclir.protocols.scorer import ScoreRows
from tf_smoothclir.storage.files import read_record, write_json

_NO_SHARE = 1e-9  # what rounding leaves


@dataclasses.dataclass(frozen=True)
class Fusion:
    """Weights of the sum of a lexical model, towers and a foreign encoder."""

    share: float  # of the towers, in [0, 1]
    lexical_deviation: float
    dense_deviation: float
    feedback: float = 0.0  # weight of feedback over the fused scores; 0 for none
    seconds: float = 0.0
    encoder_share: float = 0.0  # of the foreign encoder. The lexical model has what is left.
    encoder_deviation: float = 0.0

    @property
    def shares(self) -> dict[str, float]:
        """Part -> its share, in the order in which scores are added."""
        of_words = 1 - self.share - self.encoder_share
        of_words = of_words if of_words > _NO_SHARE else 0.0
        return {"lexical": of_words, "dense": self.share, "encoder": self.encoder_share}

    @property
    def parts(self) -> set[str]:
        """What has a share; feedback is by words, whatever share these have."""
        having = {part for part, share in self.shares.items() if share}
        return having | ({"lexical"} if self.feedback else set())

    def with_share(self, part: str, share: float) -> Self:
        """The fusion in which "dense" or "encoder" takes a share from all others alike."""
        shares = {name: before * (1 - share) for name, before in self.shares.items()}
        shares[part] = share
        return dataclasses.replace(self, share=shares["dense"], encoder_share=shares["encoder"])

    @property
    def weights(self) -> dict[str, float]:
        """Part -> weight of its scores, in the order in which they are added."""
        shares, scale = self.shares, self.lexical_deviation or 1.0
        deviations = {"dense": self.dense_deviation, "encoder": self.encoder_deviation}
        whole = shares["lexical"] or 1.0
        weights = {
            part: scale / deviation * shares[part] / whole if deviation else 0.0
            for part, deviation in deviations.items()
        }
        of_words = 1.0 if shares["lexical"] or not any(weights.values()) else 0.0
        return {"lexical": of_words, **weights}

    def added(self, scores: Mapping[str, np.ndarray]) -> np.ndarray:
        """The weighted sum of scores of one shape, part -> float32, of parts with a weight."""
        weighted = (np.float32(a) * scores[part] for part, a in self.weights.items() if a)
        return functools.reduce(np.add, weighted)

    def rows(self, parts: Mapping[str, ScoreRows]) -> ScoreRows:
        """Scorer by the sum, of part -> scorer; a part without weight is not asked."""
        asked = {part: parts[part] for part, weight in self.weights.items() if weight}
        return lambda query_rows: self.added(
            {part: rows(query_rows) for part, rows in asked.items()}
        )

    def save(self, path: Path) -> None:
        """Writes a JSON file."""
        write_json(path, dataclasses.asdict(self))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Reads what `save` wrote."""
        return read_record(path, cls, "Restore the file, or train again")

    def __str__(self):
        encoder = f", the encoder {self.encoder_share:.0%}" if self.encoder_share else ""
        return f"vectors have {self.share:.0%} of the score{encoder}, feedback {self.feedback:g}"


def times_counted(known_words: np.ndarray | int) -> np.ndarray:
    """How often scores of vectors count, by the known words of queries; float32."""
    return np.maximum(1, known_words).astype(np.float32)
