"""Keras callbacks in the training loop of a run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from tensorflow import keras

from tf_smoothclir.protocols.task import Task


class EpochCallbacks:
    """Calls Keras callbacks at the beginning and the end of training and of each epoch.

    The logs of an epoch are its mean losses, and the validation metrics as `val_<metric>`. Steps
    run many at a time inside a graph, so there are no calls for batches.
    """

    def __init__(self, callbacks: Sequence[keras.callbacks.Callback], task: Task):
        self._list, self._model = None, getattr(task, "model", None)
        if callbacks:
            self._model.stop_training = False
            self._list = keras.callbacks.CallbackList(list(callbacks), model=self._model)

    @property
    def stopped(self) -> bool:
        """Whether a callback has set `model.stop_training`."""
        return self._list is not None and self._model.stop_training

    @contextlib.contextmanager
    def training(self) -> Iterator[None]:
        """A context around the whole training."""
        if self._list is None:
            yield
            return
        self._list.on_train_begin()
        yield
        self._list.on_train_end()

    def begin_epoch(self, epoch: int) -> None:
        """Calls what an epoch, from 0, begins with."""
        if self._list is not None:
            self._list.on_epoch_begin(epoch)

    def end_epoch(
        self, epoch: int, losses: Mapping[str, float], validation: Mapping[str, float]
    ) -> None:
        """Calls what an epoch, from 0, ends with."""
        if self._list is not None:
            metrics = {f"val_{name}": value for name, value in validation.items()}
            self._list.on_epoch_end(epoch, {**losses, **metrics})
