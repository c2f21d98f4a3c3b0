"""The processes that train a run: one on its whole set, or what a `--distribution` brings."""

import contextlib
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence

import tensorflow as tf

from tf_smoothclir.protocols.task import Batches, Exchange
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.training import TrainingSettings


class ProcessLost(Exception):
    """Another process has ended; this one cannot train until it has joined again."""


class SingleProcess:
    """Training in one process, on the whole set: `--distribution=none`, and the base of others.

    Where there are several processes, all call the same methods in the same order, and each call
    waits for the others. When one is lost, the calls of the others raise `ProcessLost`.

    Attributes:
        is_chief: Whether this process reads the set, validates and writes the run directory.
        exchange: Makes the gradients of a process those of the joint batch; None without others.
        fingerprint: What is trained on in place of the set, and by how many; config.json keeps it,
            and a run only continues with the same. "" for the set, by one process.
    """

    size = 1
    is_chief = True
    exchange: Exchange | None = None
    fingerprint = ""

    def check_set(self, name: str) -> None:
        """Checks that what is trained on was made from the retrieval set of this name."""

    def vocabularies(self) -> Mapping[str, list[str]]:
        """Role -> tokens, the position is the id; empty for those that the set has."""
        return {}

    def batches(self, settings: TrainingSettings) -> Batches | None:
        """What this process trains on; None for batches of the set."""
        return None

    @contextlib.contextmanager
    def noticing_lost_processes(self) -> Iterator[None]:
        """Turns errors about another process, inside the context, into `ProcessLost`."""
        yield

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Waits for all processes at the end of the context; an `InputError` in one ends all."""
        yield

    def wait(self) -> None:
        """Waits until all processes call this."""

    def agreed(self, stop: signal.Signals | None) -> signal.Signals | None:
        """The signal that any of the processes got, or None."""
        return stop

    def from_chief(self, compute: Callable):
        """Calls `compute` in the chief alone; all get its result, which JSON must hold."""
        return compute()

    def check_alike(self, text: str, variables: Sequence[tf.Variable]) -> None:
        """Checks that all processes have the same text and the same values of variables."""


SINGLE_PROCESS = SingleProcess()


def single_process(settings: RunSettings, is_finished: Callable[[], bool]) -> SingleProcess:
    """The implementation of `--distribution=none`."""
    return SINGLE_PROCESS
