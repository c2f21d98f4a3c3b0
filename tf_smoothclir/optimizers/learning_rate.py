"""The learning rate of an epoch."""

from __future__ import annotations

from tf_smoothclir.optimizers import LEARNING_RATE
from tf_smoothclir.settings.training import TrainingSettings


def learning_rate(settings: TrainingSettings, epoch: int) -> float:
    """Returns the learning rate of an epoch, from 0: it decays exponentially."""
    initial = settings.learning_rate or LEARNING_RATE
    return initial * settings.learning_rate_decay**epoch
