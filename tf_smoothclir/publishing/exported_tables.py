"""Tables of word vectors as an exported tower stores them: narrow, or fewer dimensions of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from tf_smoothclir._compat.keras_api import tf_weights
from tf_smoothclir.towers.word_table import WordTableTower

TABLE_TYPES = ("float32", "float16", "int8")
_LARGEST = 127  # of int8; -128 is left out, so that a row and its negative have the same bytes


@dataclasses.dataclass(frozen=True)
class TableSettings:
    """How the tables of an export are stored.

    Attributes:
        type: One of `TABLE_TYPES`. In int8, each row has a scale of its own, in float32.
        dim: How many dimensions of the vectors are kept, the first ones; 0 for all.
    """

    type: str = "float32"
    dim: int = 0


class ExportedTables(tf.Module):
    """What an exported tower reads instead of its tables; nothing if they stay as they are."""

    def __init__(self, tower: WordTableTower, settings: TableSettings):
        """Copies the tables of a tower, as far as they change.

        Args:
            tower: A built tower; with fewer dimensions, one whose vectors are functions of each
                dimension alone, as in `AveragePoolingTower`.
            settings: How they are stored.
        """
        super().__init__(name="tables")
        self._values, self._scales = {}, {}
        dim = settings.dim or tower.dim
        if settings.type == "float32" and dim == tower.dim:
            return
        for name, table in tower.tables().items():
            values = table.numpy()[:, :dim]
            if settings.type == "int8":
                values, scales = _quantized(values)
                self._scales[name] = tf.Variable(scales, trainable=False)
            self._values[name] = tf.Variable(values.astype(settings.type), trainable=False)

    def weights_of(self, tower: WordTableTower) -> list[tf.Variable]:
        """Returns all variables that the vectors depend on."""
        stored = [*self._values.values(), *self._scales.values()]
        replaced = {id(tower.tables()[name]) for name in self._values}
        return stored + [weight for weight in tf_weights(tower) if id(weight) not in replaced]

    def arrays(self, tower: WordTableTower) -> dict[str, np.ndarray]:
        """Returns the tables by name, and of int8 ones the scales as `<name>_scales`."""
        tables = {**tower.tables(), **self._values}
        tables.update((f"{name}_scales", scales) for name, scales in self._scales.items())
        return {name: table.numpy() for name, table in tables.items()}

    def read_in(self, tower: WordTableTower, function: Callable) -> Callable:
        """Returns a function of the tower that reads the stored tables instead of its own."""

        def reading(tokens):
            with tower.reading_rows_by(self._rows if self._values else None):
                return function(tokens)

        return reading

    def _rows(self, name: str, numbers: tf.Tensor) -> tf.Tensor:
        rows = tf.cast(tf.gather(self._values[name], numbers), tf.float32)
        if name in self._scales:
            rows *= tf.gather(self._scales[name], numbers)
        return rows


def _quantized(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns integers from -127 to 127, and the scales, `[rows, 1]`, that give values back."""
    scales = np.abs(values).max(axis=1, keepdims=True) / np.float32(_LARGEST)
    divisors = np.where(scales > 0, scales, 1)
    return np.rint(values / divisors), scales
