"""One ranking by a lexical model and two towers: a weighted sum of their scores, then feedback.

The weight is given as the share s that the towers have of a sum of standardised scores,

    (1 - s) lexical(q, d) / σ_lexical + s SCS(q, d) / σ_dense,

where σ is the standard deviation of the scores of a query over the collection, the mean over
validation queries. The sum is scaled so that lexical scores count as they are, as feedback expects:

    lexical(q, d) + w SCS(q, d),  w = s / (1 - s) σ_lexical / σ_dense.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from tf_smoothclir.lexical.retriever import ScoreRows
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.files import read_json, write_json
from tf_smoothclir.utils.records import record_from_json


@dataclasses.dataclass(frozen=True)
class Fusion:
    """How much the towers count beside the lexical model.

    Attributes:
        share: s, in [0, 1]: 0 ranks by the lexical model alone, 1 by the towers alone.
        lexical_deviation: σ of the lexical scores.
        dense_deviation: σ of the towers' scores.
        feedback: Weight of feedback over the sum; 0 for none.
        seconds: Time spent on choosing them.
    """

    share: float
    lexical_deviation: float
    dense_deviation: float
    feedback: float = 0.0
    seconds: float = 0.0

    @property
    def weights(self) -> tuple[float, float]:
        """What a lexical score and an SCS are multiplied by."""
        if self.share == 0 or self.dense_deviation == 0:
            return 1.0, 0.0
        scale = (self.lexical_deviation or 1.0) / self.dense_deviation
        if self.share == 1:
            return 0.0, scale
        return 1.0, scale * self.share / (1 - self.share)

    def fused(self, lexical: np.ndarray, dense: np.ndarray) -> np.ndarray:
        """Returns the weighted sum of scores of one shape, float32."""
        of_lexical, of_dense = map(np.float32, self.weights)
        return of_lexical * lexical + of_dense * dense

    def rows(self, lexical: ScoreRows, dense: ScoreRows) -> ScoreRows:
        """Returns what scores by the sum; a part that has no weight is not asked."""
        of_lexical, of_dense = self.weights
        if not of_dense:
            return lexical
        if not of_lexical:
            return lambda query_rows: np.float32(of_dense) * dense(query_rows)
        return lambda query_rows: self.fused(lexical(query_rows), dense(query_rows))

    def save(self, path: Path) -> None:
        """Writes a JSON file."""
        write_json(path, dataclasses.asdict(self))

    @classmethod
    def load(cls, path: Path) -> Fusion:
        """Reads what `save` wrote.

        Raises:
            InputError: The file has another content.
        """
        try:
            return record_from_json(cls, read_json(path))
        except ValueError as error:
            remedy = "Restore the file, or train again"
            raise input_error(path, str(error).rstrip("."), remedy) from error

    def __str__(self):
        return f"the towers have {self.share:.0%} of the score, feedback {self.feedback:g}"
