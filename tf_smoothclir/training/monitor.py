"""Watching the steps of an epoch: progress bar, checkpoints in between, signals, divergence."""

from __future__ import annotations

import contextlib
import math
import signal
import time
from collections.abc import Callable, Iterator

from tensorflow import keras

from tf_smoothclir.training.checkpoints import Progress


class StopRequest:
    """Whether SIGINT or SIGTERM has asked the run to stop; a second SIGINT ends it at once."""

    def __init__(self):
        """Nothing has been asked yet."""
        self.signal: signal.Signals | None = None

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Catches the signals while the context lasts."""
        signals = (signal.SIGINT, signal.SIGTERM)
        previous = {number: signal.signal(number, self._note) for number in signals}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _note(self, number, frame) -> None:
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = signal.Signals(number)


class Diverged(Exception):
    """The loss or the gradient of a step is not finite."""

    def __init__(self, step: int, what: str):
        """Names the step of the epoch, from 0, and what is not finite."""
        super().__init__(f"{what} is not finite in step {step}")
        self.step = step
        self.what = what


class StepMonitor(keras.callbacks.Callback):
    """Keeps `progress` up to date after each step of an epoch."""

    def __init__(
        self,
        progress: Progress,
        *,
        batch_size: int,
        pairs_in_epoch: int,
        bar,
        stop: StopRequest,
        save: Callable[[], None],
        seconds_between_saves: float,
    ):
        """Watches the rest of an epoch that begins at `progress.step`.

        Args:
            progress: Counted on in place.
            batch_size: Pairs a step.
            pairs_in_epoch: Pairs in the whole epoch; the last step may have fewer.
            bar: Progress bar in pairs.
            stop: Checked after each step.
            save: Called every `seconds_between_saves`.
            seconds_between_saves: Time between checkpoints.
        """
        super().__init__()
        self._progress = progress
        self._batch_size = batch_size
        self._pairs_in_epoch = pairs_in_epoch
        self._bar = bar
        self._stop = stop
        self._save = save
        self._seconds_between_saves = seconds_between_saves
        self._saved = self._clock = time.monotonic()

    def on_train_batch_end(self, batch, logs=None):
        """Checks, counts, shows; saves and stops where it is time to."""
        progress = self._progress
        for name, what in (("batch_loss", "loss"), ("gradient_norm", "gradient norm")):
            if not math.isfinite(logs[name]):
                raise Diverged(progress.step, what)
        done = self._pairs_in(progress.step + 1)
        pairs = done - self._pairs_in(progress.step)
        progress.step += 1
        # Not from Keras's mean, which begins anew where an epoch is continued.
        progress.loss_sum += float(logs["batch_loss"]) * pairs
        progress.pairs += pairs
        now = time.monotonic()
        progress.seconds += now - self._clock
        self._bar.set_postfix(loss=f"{progress.loss_sum / done:.5f}", refresh=False)
        self._bar.update(pairs)
        if now - self._saved >= self._seconds_between_saves:
            self._save()
            self._saved = now = time.monotonic()
        self._clock = now
        if self._stop.signal is not None:
            self.model.stop_training = True

    def _pairs_in(self, steps: int) -> int:
        return min(steps * self._batch_size, self._pairs_in_epoch)
