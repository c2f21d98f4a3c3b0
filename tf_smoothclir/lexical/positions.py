"""Profiles of positions: the weight of a word of a document by its position."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class PositionProfile:
    """Weights that fall from the opening of a text: 1 + height exp(-position / decay)."""

    # Words of a title stand before the text, at positions below 0, and weigh `title` each. How much
    # the opening counts, which often says what a query says, is chosen on validation queries.

    height: float = 0.0  # what the first position has above the rest; 0 for a flat profile
    decay: float = 1.0  # positions after which that has fallen to 1/e
    title: float = 0.1  # enough to be found by

    def __call__(self, positions: np.ndarray) -> np.ndarray:
        """The weight of each position in the same shape."""
        weights = 1 + self.height * np.exp(-np.maximum(positions, 0) / self.decay)
        return np.where(np.asarray(positions) < 0, self.title, weights)

    def __str__(self):
        title = f", words of titles {self.title:g}" if self.title != FLAT.title else ""
        if self.is_flat:
            return f"all positions alike{title}"
        return f"positions weigh 1 + {self.height:g} exp(-position / {self.decay:g}){title}"

    @property
    def is_flat(self) -> bool:
        """Whether all positions count alike."""
        return self.height == 0


FLAT = PositionProfile()
# What validation chooses from besides: a height with the first decay, then a decay with the best
# height. `PositionProfile(100, 15)` was the best on mdn-en-de.
HEIGHTS, DECAYS = (3.0, 20.0, 100.0), (15.0, 8.0, 40.0)
# Weights of words of titles that validation chooses from, rising.
TITLE_WEIGHTS = (1.0, 10.0)
