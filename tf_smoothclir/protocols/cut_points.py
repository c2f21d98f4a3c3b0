"""Cut points between grades: scores of a retriever as predicted grades."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tf_smoothclir.storage.files import read_record, write_json


@dataclasses.dataclass(frozen=True)
class CutPoints:
    """Scores at which the predicted grade changes, K-1 rising numbers each; two may be equal.

    The grade of a hit is the lower one of two: that of its score, which says whether the first hit
    is any good, and that of its share of the score of the first hit, which says how much worse
    than the best a document is.

    Attributes:
        scores: For the score of a hit in a whole collection.
        shares: For the score of a hit divided by that of the first hit; empty for a scorer that
            ranks no collection.
        lists: For the score of a document of a candidate list, most of which are drawn at random
            and score lower than any hit.
    """

    scores: tuple[float, ...]
    shares: tuple[float, ...]
    lists: tuple[float, ...] = ()

    def of_hits(self, scores: np.ndarray) -> np.ndarray:
        """Returns grades of hits without TensorFlow, which takes longer than a search.

        Args:
            scores: `[..., hits]` float32, best first; the first hits of a ranking.

        Returns:
            int64, the shape of `scores`.
        """
        grades = _above(scores, self.scores)
        if not self.shares:
            return grades
        return np.minimum(grades, _above(hit_shares(scores), self.shares))

    def of_lists(self, scores: np.ndarray) -> np.ndarray:
        """Returns grades of documents of candidate lists, int64, the shape of `scores`."""
        return _above(scores, self.lists)


def hit_shares(scores: np.ndarray) -> np.ndarray:
    """Scores of hits divided by the first one, `[..., hits]`; 0 where that is not above 0."""
    first = np.maximum(scores[..., :1], 0)
    return np.divide(scores, first, out=np.zeros_like(scores), where=first > 0)


# Where nothing says which scores are good; JSON has no infinity.
_BEYOND = (float(np.finfo(np.float32).max),)
NEVER_RELEVANT = CutPoints(_BEYOND, _BEYOND)


def _above(scores: np.ndarray, cut_points: tuple[float, ...]) -> np.ndarray:
    points = np.asarray(cut_points, scores.dtype)
    return np.count_nonzero(scores[..., np.newaxis] > points, axis=-1)


@dataclasses.dataclass(frozen=True)
class _CutPointsFile:
    retrievers: dict[str, CutPoints]


def write_cut_points(path: Path, retrievers: Mapping[str, CutPoints]) -> None:
    """Writes a JSON file with the cut points of each retriever by its name."""
    write_json(path, dataclasses.asdict(_CutPointsFile(dict(retrievers))))


def read_cut_points(path: Path) -> dict[str, CutPoints]:
    """Reads what `write_cut_points` wrote.

    Raises:
        InputError: The file has another content.
    """
    remedy = "Restore the file, or train again"
    return read_record(path, _CutPointsFile, remedy).retrievers
