"""The base of the package's optimizers, and their requirements on gradients."""

import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat.keras_api import RowOptimizer, tf_variable
from tf_smoothclir.optimizers.gradients import each_row_once


def check_replicas(optimizer: keras.optimizers.Optimizer) -> None:
    """Checks that the optimizer trains as many replicas as the strategy in scope has."""
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    if replicas > 1 and isinstance(optimizer, SparseOptimizer):
        raise ValueError(
            f"{type(optimizer).__name__} trains on one device, and the strategy in scope has "
            f"{replicas}: compile with an optimizer of Keras, such as 'adam', or train on one."
        )


class SparseOptimizer(RowOptimizer):
    """Base of optimizers whose cost follows the rows of a batch, not the size of the vocabulary.

    It stands before a Keras optimizer among the bases of a class, which defines `update_rows`.

    Attributes:
        names_all_rows: Whether a sparse gradient must name the rows of all tokens of the batch,
            those with a gradient of zero too, because the optimizer moves whatever is named.
            Without it, towers leave out rows that cannot change.
    """

    names_all_rows = False

    def __init__(self, *args, unique_rows: bool = False, **kwargs):
        """Creates the optimizer; with `unique_rows`, sparse gradients never name a row twice."""
        super().__init__(*args, **kwargs)
        self.unique_rows = unique_rows

    def update(self, gradient, variable, rate):
        """Updates the rows that a sparse gradient names, or all rows by a dense gradient."""
        if not self.unique_rows:
            gradient = each_row_once(gradient)
        self.update_rows(gradient, variable, rate)

    def update_rows(self, gradient, variable: tf.Variable, rate: tf.Tensor) -> None:
        """Updates a variable as `update` does; a sparse gradient names no row twice."""
        raise NotImplementedError

    def slot(self, slots: list, variable: tf.Variable) -> tf.Variable:
        """Returns the slot of `variable` from `slots`, which has one for each trained variable."""
        return tf_variable(slots[self.position(variable)])

    def get_config(self):
        """Returns the arguments of the constructor."""
        return {**super().get_config(), "unique_rows": self.unique_rows}
