"""Where the time of a training step goes, from TensorFlow's trace of the trainer's loop.

python -m benchmarks.profile
"""

from __future__ import annotations

import collections
import itertools
import re
import tempfile
import time
from functools import partial
from pathlib import Path

from absl import flags

from benchmarks import common
from benchmarks.training import parse_variant
from benchmarks.workload import Workload, training_loop
from tf_smoothclir.training.trainer import STEPS_PER_CALL

# (mark, part): the first mark in the name of a step's operation decides its part.
PARTS = (
    ("SparseSegmentSumGrad", "add up gradients"),
    ("IdentityN_grad", "choose words"),  # those that have a gradient
    ("SparseSegmentSum", "add up rows"),
    ("_tower/", "tower, other"),
    ("global_norm", "gradient norm"),
    ("SparseRMSprop/", "optimizer"),
    ("RowRMSprop/", "optimizer"),
    ("Adam/", "optimizer"),
    ("smooth_cosine", "similarity, loss"),
    ("SmoothOrdinal", "similarity, loss"),
)
_STEP = "while/"  # in the name of every operation of the step
_OPERATION = re.compile(r"[\w./-]+:\w+")  # path:type; all other events enclose these
_WAIT = "IteratorGetNextOp::DoCompute"
_CALLS = 12
_BATCHES_LOOKED_AT = 20


def profile(workload: Workload, threads: int, changes: dict) -> dict[str, float]:
    """Milliseconds per step: of the whole step, untraced and traced, and of its parts.

    The parts run in parallel, so their sum exceeds the step. Waiting for input lasts from the
    request of a batch to its arrival; "input" is the time that other threads take to prepare it.
    """
    settings = workload.settings(**changes)
    common.use_threads(threads, settings)
    import tensorflow as tf

    with tempfile.TemporaryDirectory() as directory:
        model, batches, train = training_loop(workload, settings, Path(directory))
        train(_CALLS)
        begin = time.perf_counter()
        pairs = train(_CALLS)
        seconds = time.perf_counter() - begin
        with_gradient = _share_with_gradient(model, batches)
        every_operation = tf.profiler.experimental.ProfilerOptions(host_tracer_level=3)
        tf.profiler.experimental.start(directory, options=every_operation)
        begin = time.perf_counter()
        train(_CALLS)
        traced_seconds = time.perf_counter() - begin
        tf.profiler.experimental.stop()
        events = _events(Path(directory))
    steps = _CALLS * STEPS_PER_CALL
    to_ms = 1000 / steps
    return {
        "ms/step": seconds * to_ms,
        "pairs a step": pairs / steps,
        "ms/step, traced": traced_seconds * to_ms,
        "% of scores with a gradient": 100 * with_gradient,
        "% waiting for input": 100 * events[_WAIT] / traced_seconds,
        **{name: spent * to_ms for name, spent in _by_part(events).items()},
    }


def _share_with_gradient(model, batches) -> float:
    """The share of pairs in some batches whose score has a gradient."""
    import numpy as np
    import tensorflow as tf

    gradients = []
    for inputs, grades in itertools.islice(batches, _BATCHES_LOOKED_AT):
        scores = model(inputs)
        with tf.GradientTape() as tape:
            tape.watch(scores)
            loss = model.compute_loss(inputs, grades, scores)
        gradients.append(tape.gradient(loss, scores).numpy())
    return np.mean(np.concatenate(gradients) != 0)


def _events(directory: Path) -> collections.Counter:
    """Event -> seconds, summed over all threads, from the trace in a directory."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    (path,) = directory.rglob("*.xplane.pb")
    space = xplane_pb2.XSpace.FromString(path.read_bytes())
    seconds = collections.Counter()
    for plane in space.planes:
        for line in plane.lines:
            for event in line.events:
                name = plane.event_metadata[event.metadata_id].name
                seconds[name] += event.duration_ps / 1e12
    return seconds


def _by_part(events: collections.Counter) -> dict[str, float]:
    parts = dict.fromkeys(["input", *(name for _, name in PARTS), "other"], 0.0)
    for event, seconds in events.items():
        if _OPERATION.fullmatch(event):
            parts[_part_of(event)] += seconds
    return parts


def _part_of(event: str) -> str:
    if _STEP not in event:
        return "input"
    return next((name for mark, name in PARTS if mark in event), "other")


def _define_flags() -> None:
    flags.DEFINE_multi_string(
        "variant",
        ["optimizer=rmsprop", "optimizer=rmsprop,batching=lists", "optimizer=lazy_adam"],
        "Training settings to profile; may be repeated.",
    )
    flags.DEFINE_integer("threads", 2, "Threads.", lower_bound=1)


def measure(variant: list[str], threads: int, rounds: int) -> list[dict]:
    """A table of variants."""
    rivals = {
        text.replace("optimizer=", ""): partial(profile, Workload(), threads, parse_variant(text))
        for text in variant
    }
    measurements = common.interleaved(rivals, rounds)
    return [common.table("Milliseconds per step", measurements, ratio_of="ms/step", references=[])]


if __name__ == "__main__":
    common.run(_define_flags, measure)
