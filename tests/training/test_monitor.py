"""Watching steps: what is counted, what stops a run, when it is saved."""

import math
import os
import signal
from types import SimpleNamespace
from unittest import mock

import pytest

from tf_smoothclir.training import steps as steps_module
from tf_smoothclir.training.checkpoints import Progress
from tf_smoothclir.training.steps import Diverged, StepMonitor, StopRequest

SIZES = (4, 4, 2, 4)  # pairs of the steps


def watch(progress, *, save=lambda: None, seconds=1e9):
    watched = {"losses": ("loss", "other_loss"), "checked": ("gradient_norm",)}
    return StepMonitor(
        progress, **watched, bar=mock.Mock(), save=save, seconds_between_saves=seconds
    )


def step(watching, loss=1.0, other=1.0, norm=1.0):
    steps(watching, [loss], [other], [norm], [SIZES[watching._progress.step]], [4])


def steps(watching, losses, others, norms, pairs, terms=(1, 1, 1)):
    """Gives what a `StepLoop` returns."""
    names = ("loss", "other_loss", "gradient_norm", "pairs", "terms")
    watching.after_steps(dict(zip(names, (losses, others, norms, pairs, terms))))


def test_saves_when_its_time_has_come_which_counts_the_time_of_steps_alone(monkeypatch):
    clock, saved, progress = SimpleNamespace(now=100.0), [], Progress(seconds=5.0)
    monkeypatch.setattr(steps_module.time, "monotonic", lambda: clock.now)

    def save():
        saved.append(progress.step)
        clock.now += 1000

    watching = watch(progress, save=save, seconds=3)
    for _ in SIZES:  # at 2, 4 (saved), 6, 8 (saved)
        clock.now += 2
        step(watching)
    assert saved == [2, 4]
    assert progress.seconds == 5 + 4 * 2


@pytest.mark.parametrize(
    ("logs", "what"),
    [
        ({"loss": float("nan")}, "loss"),
        ({"other": float("-inf")}, "other loss"),
        ({"norm": float("inf")}, "gradient norm"),
    ],
)
def test_what_is_not_finite_stops_at_once_and_is_neither_counted_nor_saved(logs, what):
    save, progress = mock.Mock(), Progress()
    watching = watch(progress, save=save, seconds=0)
    step(watching)
    with pytest.raises(Diverged, match=f"{what} is not finite in step 1"):
        step(watching, **logs)
    assert (progress.step, progress.loss_sums["loss"]) == (1, 4.0)
    ones = [1, 1, 1]
    with pytest.raises(Diverged, match="gradient norm is not finite in step 2"):  # the first one
        steps(watching, ones, ones, [1, math.nan, math.inf], ones)
    assert save.call_count == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_noted_a_second_ends_at_once_and_the_old_handler_comes_back(number):
    stop = StopRequest()
    # A job in the background ignores SIGINT, and so would its tests.
    before = signal.signal(number, signal.default_int_handler)
    try:
        with stop.listening():
            assert stop.signal is None
            os.kill(os.getpid(), number)
            assert stop.signal == number
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), number)
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)
