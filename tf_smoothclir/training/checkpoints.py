"""Checkpoints: weights, optimizer and position, so that a run goes on as if never stopped."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

from tf_smoothclir._compat.keras_api import optimizer_variables, tf_weights
from tf_smoothclir.two_tower.model import TwoTower


@dataclasses.dataclass
class Progress:
    """Where a run stands.

    Attributes:
        epoch: Epochs completed, validation included.
        step: Steps completed in the epoch after those.
        epoch_pairs: Pairs of those steps.
        loss_sum: Sum of the losses of these pairs.
        pairs: Pairs trained on, in all.
        seconds: Time spent on them.
        best_epoch: Epoch, from 1, whose weights are kept; 0 for none yet.
        history: For each epoch its number, loss, validation metrics, and what was mined.
    """

    epoch: int = 0
    step: int = 0
    epoch_pairs: int = 0
    loss_sum: float = 0.0
    pairs: int = 0
    seconds: float = 0.0
    best_epoch: int = 0
    history: list[dict] = dataclasses.field(default_factory=list)

    def begin_epoch(self, completed: int) -> None:
        """Goes to the first step behind the epochs that are `completed`."""
        self.epoch, self.step, self.epoch_pairs, self.loss_sum = completed, 0, 0, 0.0


class State(NamedTuple):
    """What training changes.

    Attributes:
        weights: Of the model, what is trained first: tables first of the queries, then of the
            documents. A table may be in several parts; in a checkpoint it is one.
        optimizer: What decides how it goes on.
    """

    weights: list
    optimizer: list


def state_of(model: TwoTower) -> State:
    """Returns the variables of a compiled, built model and of its optimizer."""
    return State(tf_weights(model), optimizer_variables(model.optimizer))


class Checkpoints:
    """The last two states of a run, and the weights of its best epoch."""

    def __init__(self, directory: Path, own: State, kept: TwoTower | None = None, **more):
        """Saves and restores variables.

        Args:
            directory: Where the files are.
            own: The variables.
            kept: A model of the same form, whose weights are kept as the best ones instead.
            **more: Variables, or lists of them, that the last states have too.
        """
        self._progress = tf.Variable("", dtype=tf.string)
        state = tf.train.Checkpoint(
            weights=own.weights, optimizer=own.optimizer, progress=self._progress, **more
        )
        self._last = tf.train.CheckpointManager(
            state, str(directory), max_to_keep=2, checkpoint_name="state"
        )
        self._best = tf.train.Checkpoint(weights=own.weights)
        self._kept = tf.train.Checkpoint(weights=tf_weights(kept) if kept else own.weights)
        self._best_path = str(directory / "best")

    def save(self, progress: Progress) -> None:
        """Saves the state; one that was being written in a crash is never restored."""
        self._progress.assign(json.dumps(dataclasses.asdict(progress)))
        self._last.save()

    def restore(self) -> Progress | None:
        """Restores the last state; None where there is none yet."""
        # Looked up in the directory: another worker may have saved it.
        latest = tf.train.latest_checkpoint(self._last.directory)
        if not latest:
            return None
        self._last.checkpoint.restore(latest).assert_consumed()
        return Progress(**json.loads(self._progress.numpy()))

    def save_best(self) -> None:
        """Keeps the present weights as the best ones."""
        self._kept.write(self._best_path)

    @property
    def has_best(self) -> bool:
        """Whether an epoch has been completed."""
        return tf.io.gfile.exists(self._best_path + ".index")

    def restore_best(self) -> None:
        """Puts the best weights back into the model."""
        self._best.read(self._best_path).assert_consumed()
