"""Training two towers: one model, one loss, one optimizer."""

from __future__ import annotations

import tensorflow as tf

from tf_smoothclir._compat.keras_api import optimizer_variables, tf_weights
from tf_smoothclir.data.tokenized_set import TokenizedSet
from tf_smoothclir.optimizers import learning_rate
from tf_smoothclir.protocols.task import LOSS, PAIRS, TERMS, Batches, Exchange, TaskVariables
from tf_smoothclir.settings.training import TrainingSettings
from tf_smoothclir.two_tower.model import TwoTower
from tf_smoothclir.two_tower.scorer import DenseRetriever, SetEncoder

_GRADIENT_NORM = "gradient_norm"


class TwoTowerTask:
    """The `Task` of a `TwoTower`."""

    losses = (LOSS,)
    checked = (_GRADIENT_NORM,)
    remedy = "Lower --learning_rate, or use --epsilon above 0 and --clip_norm"

    def __init__(
        self,
        model: TwoTower,
        settings: TrainingSettings,
        batches: Batches,
        tokenized_set: TokenizedSet | None = None,
    ):
        self.model = model
        self.batches = batches
        self._settings = settings
        self.variables = TaskVariables(
            weights=tf_weights(model),
            optimizer=optimizer_variables(model.optimizer),
            more=dict(batches.variables),
        )
        self._encoder = SetEncoder(model, tokenized_set) if tokenized_set else None

    def train_step(self, batch, exchange: Exchange | None = None) -> dict[str, tf.Tensor]:
        """Runs the model's own training step."""
        logs = self.model.logged_step(batch, exchange)
        return {
            LOSS: logs["batch_loss"],
            _GRADIENT_NORM: logs["gradient_norm"],
            PAIRS: logs["pairs"],
            TERMS: logs["terms"],
        }

    def begin_epoch(self, epoch: int) -> None:
        """Sets the learning rate of an epoch, from 0."""
        self.model.optimizer.learning_rate = learning_rate(self._settings, epoch)

    def scorer(self) -> DenseRetriever:
        """Encodes the whole set with the present weights."""
        return self._encoder()
