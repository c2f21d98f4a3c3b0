"""Tables of word vectors as an exported tower stores them: as they are, or in int8."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from tf_smoothclir._compat.keras_api import tf_weights
from tf_smoothclir.towers.word_table import WordTableTower

EXACT = "float32"
_LARGEST = 127  # of int8; without -128, a row and its negative have the same precision


class ExportedTables(tf.Module):
    """Narrow tables that an exported tower reads; none if they stay as they are.

    Each row has a scale of its own, its largest number divided by 127. A row becomes
    float32 when it is read; everything after it stays as it is.
    """

    def __init__(self, tower: WordTableTower, table_type: str = EXACT):
        super().__init__(name="tables")
        self.type = table_type
        self._values, self._scales = {}, {}
        if table_type == EXACT:
            return
        for name, table in tower.tables().items():
            values, scales = _quantized(table.numpy())
            self._values[name] = tf.Variable(values.astype(table_type), trainable=False)
            self._scales[name] = tf.Variable(scales, trainable=False)

    def weights_of(self, tower: WordTableTower) -> list[tf.Variable]:
        """All variables that the vectors depend on."""
        stored = [*self._values.values(), *self._scales.values()]
        replaced = {id(tower.tables()[name]) for name in self._values}
        return stored + [weight for weight in tf_weights(tower) if id(weight) not in replaced]

    def arrays(self, tower: WordTableTower) -> dict[str, np.ndarray]:
        """The tables by name, and of int8 ones the scales as `<name>_scales`."""
        tables = {**tower.tables(), **self._values}
        tables.update((f"{name}_scales", scales) for name, scales in self._scales.items())
        return {name: table.numpy() for name, table in tables.items()}

    def read_by(self, tower: WordTableTower) -> contextlib.AbstractContextManager:
        """A context in which functions of the tower are traced that read these tables."""
        return tower.reading_rows_by(self._rows) if self._values else tower.reading_in_place()

    def read_in(self, tower: WordTableTower, function: Callable) -> Callable:
        """A function of the tower's tokens that reads these tables."""

        def reading(tokens):
            with self.read_by(tower):
                return function(tokens)

        return reading

    def _rows(self, name: str, numbers: tf.Tensor) -> tf.Tensor:
        rows = tf.cast(tf.gather(self._values[name], numbers), tf.float32)
        return rows * tf.gather(self._scales[name], numbers)


def _quantized(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Integers from -127 to 127, and the scales, `[rows, 1]`, that give values back."""
    scales = np.abs(values).max(axis=1, keepdims=True) / np.float32(_LARGEST)
    return np.rint(values / np.where(scales > 0, scales, 1)), scales
