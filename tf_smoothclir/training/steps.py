"""Steps of training: many in one call of the graph, and what watches them."""

import contextlib
import dataclasses
import math
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import tensorflow as tf

from tf_smoothclir.ops.huge_pages import use_huge_pages
from tf_smoothclir.protocols.task import PAIRS, TERMS, Exchange, Task
from tf_smoothclir.training.checkpoints import Progress
from tf_smoothclir.utils.progress import Bar


class StepLoop:
    """Trains a task, many steps at a time."""

    def __init__(self, task: Task, exchange: Exchange | None = None):
        use_huge_pages([*task.variables.trained, *task.variables.optimizer])
        self._names = (*task.losses, *task.checked, PAIRS, TERMS)
        self._train_steps = compile_steps(task, exchange)
        # In a loop of the graph, a collective would need messages of the same length at each turn.
        self._one_by_one = exchange is not None

    def __call__(self, batches, number: int) -> dict[str, np.ndarray]:
        """Trains on the next `number` batches; name -> `[number]` of what `train_step` returns."""
        calls = [1] * number if self._one_by_one else [number]
        done = [self._train_steps(batches, tf.constant(steps)) for steps in calls]
        return {name: np.concatenate(values) for name, values in zip(self._names, zip(*done))}


def compile_steps(task: Task, exchange: Exchange | None = None) -> Callable:
    """A graph function of an iterator of batches and how many to train on."""
    # It returns `[steps]` values of each of the task's losses, then of each checked number, then
    # the numbers of pairs and terms.
    # This would make steps in a loop of the graph three times as slow on CPUs (TensorFlow 2.15).
    tf.config.optimizer.set_experimental_options({"arithmetic_optimization": False})
    # Steps do not need AutoGraph, which would take five times as long as all other tracing.
    train_step = tf.autograph.experimental.do_not_convert(task.train_step)
    names = (*task.losses, *task.checked)

    @tf.function
    def train_steps(batches, number):
        results = [tf.TensorArray(tf.float32, number) for _ in names]
        results += [tf.TensorArray(tf.int32, number) for _ in (PAIRS, TERMS)]
        for step in tf.range(number):
            of_step = train_step(next(batches), exchange)
            values = [of_step[name] for name in (*names, PAIRS)]
            values.append(of_step.get(TERMS, of_step[PAIRS]))
            results = [result.write(step, value) for result, value in zip(results, values)]
        return [result.stack() for result in results]

    return train_steps


def are_finite(variables: Iterable[tf.Variable]) -> bool:
    """Whether all values of all floating variables are finite."""
    sums = []
    for variable in variables:
        if variable.dtype.is_floating:
            tf.raw_ops.DisableCopyOnRead(resource=variable.handle)  # or it would copy a table
            sums.append(tf.reduce_sum(variable))
    return all(map(np.isfinite, sums))


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


@dataclasses.dataclass
class StepMonitor:
    """Keeps `progress` up to date while the rest of an epoch is trained, some steps at a time."""

    progress: Progress
    losses: Sequence[str]
    checked: Sequence[str]  # names of other numbers, which must be finite too
    bar: Bar
    save: Callable[[], None]  # called at intervals
    seconds_between_saves: float

    def __post_init__(self):
        self._saved = self._clock = time.monotonic()

    def after_steps(self, results: Mapping[str, Sequence[float]]) -> None:
        """Checks, counts and shows steps by name -> `[steps]`, and saves when it is time to."""
        progress, pairs = self.progress, results[PAIRS]
        names = (*self.losses, *self.checked)
        for of_step, terms, *values in zip(*(results[name] for name in (PAIRS, TERMS, *names))):
            for name, value in zip(names, values):
                if not math.isfinite(value):
                    raise Diverged(progress.step, name)
            losses = zip(self.losses, map(float, values))
            progress.count_step(losses, int(of_step), int(terms))
        now = time.monotonic()
        progress.seconds += now - self._clock
        means = progress.mean_losses().items()
        self.bar.note(", ".join(f"{name} {mean:.5f}" for name, mean in means))
        self.bar.update(int(sum(pairs)))
        if now - self._saved >= self.seconds_between_saves:
            self.save()
            self._saved = now = time.monotonic()
        self._clock = now
