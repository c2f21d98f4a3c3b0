"""Watching the steps of an epoch: progress bar, checkpoints in between, signals, divergence."""

from __future__ import annotations

import contextlib
import math
import signal
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

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


class StepMonitor:
    """Keeps `progress` up to date while an epoch is trained, some steps at a time."""

    def __init__(
        self,
        progress: Progress,
        *,
        pair_ends: np.ndarray,
        bar,
        save: Callable[[], None],
        seconds_between_saves: float,
    ):
        """Watches the rest of an epoch that begins at `progress.step`.

        Args:
            progress: Counted on in place.
            pair_ends: `[steps]`, how many pairs are done after each step of the whole epoch.
            bar: Progress bar in pairs.
            save: Called every `seconds_between_saves`.
            seconds_between_saves: Time between checkpoints.
        """
        self._progress = progress
        self._pair_ends = pair_ends
        self._bar = bar
        self._save = save
        self._seconds_between_saves = seconds_between_saves
        self._saved = self._clock = time.monotonic()

    def after_steps(self, losses: Sequence[float], gradient_norms: Sequence[float]) -> None:
        """Checks, counts and shows the steps just done; saves where it is time to.

        Args:
            losses: `[steps]`, the loss of each step's batch.
            gradient_norms: `[steps]`.

        Raises:
            Diverged: One of them is not finite. The weights are spoilt by then, the last checkpoint
                is not.
        """
        progress = self._progress
        pairs_before = self._pairs_in(progress.step)
        for loss, norm in zip(losses, gradient_norms):
            for value, what in ((loss, "loss"), (norm, "gradient norm")):
                if not math.isfinite(value):
                    raise Diverged(progress.step, what)
            pairs = self._pairs_in(progress.step + 1) - self._pairs_in(progress.step)
            progress.step += 1
            progress.pairs += pairs
            progress.loss_sum += float(loss) * pairs
        done = self._pairs_in(progress.step)
        now = time.monotonic()
        progress.seconds += now - self._clock
        self._bar.set_postfix(loss=f"{progress.loss_sum / done:.5f}", refresh=False)
        self._bar.update(done - pairs_before)
        if now - self._saved >= self._seconds_between_saves:
            self._save()
            self._saved = now = time.monotonic()
        self._clock = now

    def _pairs_in(self, steps: int) -> int:
        return int(self._pair_ends[steps - 1]) if steps else 0
