"""Watching the steps of an epoch: progress bar, checkpoints in between, signals, divergence."""

from __future__ import annotations

import contextlib
import math
import signal
import time
from collections.abc import Callable, Iterator, Sequence

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
        bar,
        save: Callable[[], None],
        seconds_between_saves: float,
    ):
        """Watches the rest of an epoch that begins at `progress.step`.

        Args:
            progress: Counted on in place.
            bar: Progress bar in pairs.
            save: Called every `seconds_between_saves`.
            seconds_between_saves: Time between checkpoints.
        """
        self._progress = progress
        self._bar = bar
        self._save = save
        self._seconds_between_saves = seconds_between_saves
        self._saved = self._clock = time.monotonic()

    def after_steps(
        self, losses: Sequence[float], gradient_norms: Sequence[float], pairs: Sequence[int]
    ) -> None:
        """Checks, counts and shows the steps just done; saves where it is time to.

        Args:
            losses: `[steps]`, the loss of each step's batch.
            gradient_norms: `[steps]`.
            pairs: `[steps]`, how many pairs each step's batch has.

        Raises:
            Diverged: One of them is not finite. The weights are spoilt by then, the last checkpoint
                is not.
        """
        progress = self._progress
        for loss, norm, number in zip(losses, gradient_norms, pairs):
            for value, what in ((loss, "loss"), (norm, "gradient norm")):
                if not math.isfinite(value):
                    raise Diverged(progress.step, what)
            progress.step += 1
            progress.pairs += int(number)
            progress.epoch_pairs += int(number)
            progress.loss_sum += float(loss) * int(number)
        now = time.monotonic()
        progress.seconds += now - self._clock
        mean = progress.loss_sum / progress.epoch_pairs
        self._bar.set_postfix(loss=f"{mean:.5f}", refresh=False)
        self._bar.update(int(sum(pairs)))
        if now - self._saved >= self._seconds_between_saves:
            self._save()
            self._saved = now = time.monotonic()
        self._clock = now
