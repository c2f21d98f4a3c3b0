"""Optimizers, most of them with a cost that depends on the rows of a batch alone."""

from tensorflow import keras

from tf_smoothclir.optimizers.adam import FusedAdam, LazyAdam
from tf_smoothclir.optimizers.sparse_optimizer import SparseOptimizer
from tf_smoothclir.optimizers.sparse_rmsprop import RowRMSprop, SparseRMSprop
from tf_smoothclir.settings.training import TrainingSettings

OPTIMIZERS = {
    "lazy_adam": LazyAdam,
    "adam": FusedAdam,
    "rmsprop": SparseRMSprop,
    "row_rmsprop": RowRMSprop,
}
LEARNING_RATE = 0.01  # the paper's, for Adam


def make_optimizer(name: str, learning_rate: float = 0.0) -> keras.optimizers.Optimizer:
    """An optimizer for `TwoTower`, by its name; a learning rate of 0 stands for `LEARNING_RATE`."""
    kind = OPTIMIZERS[name]
    options = {"unique_rows": True} if issubclass(kind, SparseOptimizer) else {}
    return kind(learning_rate=learning_rate or LEARNING_RATE, **options)


def learning_rate(settings: TrainingSettings, epoch: int) -> float:
    """Returns the learning rate of an epoch, from 0: it decays exponentially."""
    initial = settings.learning_rate or LEARNING_RATE
    return initial * settings.learning_rate_decay**epoch
