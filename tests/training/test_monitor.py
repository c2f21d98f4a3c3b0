"""Watching steps: what is counted, what stops a run, when it is saved."""

import math
import os
import signal
from types import SimpleNamespace
from unittest import mock

import pytest

from tf_smoothclir.training import monitor
from tf_smoothclir.training.checkpoints import Progress
from tf_smoothclir.training.monitor import Diverged, StepMonitor, StopRequest

SIZES = (4, 4, 2, 4)  # pairs of the steps
PAIRS = 10  # of the first three


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(monitor.time, "monotonic", lambda: clock.now)
    return clock


def watch(progress, *, save=lambda: None, seconds=1e9):
    watching = StepMonitor(
        progress,
        losses=("loss", "other_loss"),
        checked=("gradient_norm",),
        bar=mock.Mock(),
        save=save,
        seconds_between_saves=seconds,
    )
    watching.progress = progress
    return watching


def step(watching, loss=1.0, other=1.0, norm=1.0):
    watching.after_steps(results([loss], [other], [norm], [SIZES[watching.progress.step]]))


def results(losses, others, norms, pairs):
    """As a `StepLoop` returns them."""
    return {"loss": losses, "other_loss": others, "gradient_norm": norms, "pairs": pairs}


def test_counts_pairs_steps_and_loss_with_a_smaller_last_batch():
    progress = Progress(pairs=1000)
    watching = watch(progress)
    for loss in (1.0, 2.0, 8.0):
        step(watching, loss, other=3 * loss)
    assert (progress.step, progress.epoch_pairs, progress.pairs) == (3, PAIRS, 1000 + PAIRS)
    total = 4 * 1.0 + 4 * 2.0 + 2 * 8.0
    assert progress.loss_sums == {"loss": total, "other_loss": 3 * total}
    assert progress.mean_losses() == {"loss": total / PAIRS, "other_loss": 3 * total / PAIRS}
    (means,) = watching._bar.note.call_args.args
    assert means == f"loss {total / PAIRS:.5f}, other_loss {3 * total / PAIRS:.5f}"


def test_epoch_in_two_parts_counts_bitwise_as_in_one():
    losses = (0.1, 0.7, 1 / 3)
    whole, parts = Progress(), Progress()
    watching = watch(whole)
    for loss in losses:
        step(watching, loss)
    for loss in losses:  # a new monitor each, as after a restart
        step(watch(parts), loss)
    assert parts.loss_sums == whole.loss_sums
    assert (parts.step, parts.pairs) == (whole.step, whole.pairs)


def test_time_of_steps_counts_and_that_of_saving_does_not(clock):
    progress = Progress(seconds=5.0)

    def save():
        clock.now += 1000

    watching = watch(progress, save=save, seconds=3)
    for _ in range(3):
        clock.now += 2
        step(watching)
    assert progress.seconds == 5 + 3 * 2


def test_saves_when_its_time_has_come_and_not_before(clock):
    saved, progress = [], Progress()
    watching = watch(progress, save=lambda: saved.append(progress.step), seconds=3)
    for seconds in (2, 2, 2, 2):  # at 2, 4 (saved), 6, 8 (saved)
        clock.now += seconds
        step(watching)
    assert saved == [2, 4]


@pytest.mark.parametrize(
    ("logs", "what"),
    [
        ({"loss": float("nan")}, "loss"),
        ({"loss": float("inf")}, "loss"),
        ({"other": float("nan")}, "other loss"),
        ({"norm": float("nan")}, "gradient norm"),
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
    assert save.call_count == 1


def test_several_steps_at_once_count_bitwise_as_one_by_one():
    losses = (0.1, 0.7, 1 / 3)
    at_once, one_by_one = Progress(), Progress()
    ones = (1.0, 1.0, 1.0)
    watch(at_once).after_steps(results(losses, ones, ones, SIZES[:3]))
    watching = watch(one_by_one)
    for loss in losses:
        step(watching, loss)
    assert (at_once.step, at_once.pairs) == (3, PAIRS)
    assert at_once.loss_sums == one_by_one.loss_sums


def test_the_first_of_several_bad_steps_is_named_and_none_of_them_saved():
    save = mock.Mock()
    with pytest.raises(Diverged, match="gradient norm is not finite in step 1"):
        watch(Progress(), save=save, seconds=0).after_steps(
            results([1, 1, 1], [1, 1, 1], [1, math.nan, math.inf], SIZES[:3])
        )
    assert save.call_count == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_is_noted_and_the_old_handler_comes_back(number):
    stop = StopRequest()
    before = signal.getsignal(number)
    with stop.listening():
        assert stop.signal is None
        os.kill(os.getpid(), number)
        assert stop.signal == number
    assert signal.getsignal(number) is before


@pytest.fixture
def _interruptible():
    """A job in the background ignores SIGINT, and so would its tests."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
def test_second_signal_ends_at_once():
    stop = StopRequest()
    with stop.listening():
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
