"""Watching the steps of an epoch: progress bar, checkpoints, signals, divergence."""

from __future__ import annotations

import contextlib
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from tf_smoothclir.protocols.task import PAIRS, TERMS
from tf_smoothclir.training.checkpoints import Progress
from tf_smoothclir.utils.progress import Bar


class StopRequest:
    """Notes that SIGINT or SIGTERM asked the run to stop. A second signal ends it at once."""

    def __init__(self):
        self.signal: signal.Signals | None = None  # None until one arrives

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Catches the signals inside the context; outside of the main thread, none arrives."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
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
    """A loss or another number of a step is not finite."""

    def __init__(self, step: int, name: str):
        self.step = step
        self.what = name.replace("_", " ")
        super().__init__(f"{self.what} is not finite in step {step}")


class StepMonitor:
    """Keeps `progress` up to date while an epoch is trained, some steps at a time."""

    def __init__(
        self,
        progress: Progress,
        *,
        losses: Sequence[str],
        checked: Sequence[str],
        bar: Bar,
        save: Callable[[], None],
        seconds_between_saves: float,
    ):
        """Watches the rest of an epoch from `progress.step` on, and calls `save` at intervals."""
        self._progress = progress
        self._losses = tuple(losses)
        self._names = (*losses, *checked)
        self._bar = bar
        self._save = save
        self._seconds_between_saves = seconds_between_saves
        self._saved = self._clock = time.monotonic()

    def after_steps(self, results: Mapping[str, Sequence[float]]) -> None:
        """Checks, counts and shows steps by name -> `[steps]`, and saves when it is time to."""
        progress, pairs = self._progress, results[PAIRS]
        names = (PAIRS, TERMS, *self._names)
        for of_step, terms, *values in zip(*(results[name] for name in names)):
            for name, value in zip(self._names, values):
                if not math.isfinite(value):
                    raise Diverged(progress.step, name)
            losses = zip(self._losses, map(float, values))
            progress.count_step(losses, int(of_step), int(terms))
        now = time.monotonic()
        progress.seconds += now - self._clock
        means = progress.mean_losses().items()
        self._bar.note(", ".join(f"{name} {mean:.5f}" for name, mean in means))
        self._bar.update(int(sum(pairs)))
        if now - self._saved >= self._seconds_between_saves:
            self._save()
            self._saved = now = time.monotonic()
        self._clock = now
