"""Training: pairs per second by the public trainer, compared with plain Keras and PyTorch.

python -m benchmarks.training
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags

from benchmarks import common
from benchmarks.training_rivals import keras_adam, speed, torch_as_published, torch_sparse_adam
from benchmarks.workload import Workload, tokenized_set_of, two_tower
from tf_smoothclir.settings.training import TrainingSettings

if TYPE_CHECKING:
    from tf_smoothclir.training.trainer import Trainer

KERAS, TORCH, PUBLISHED = "Keras", "PyTorch", "PyTorch as published"
TWO_EPOCHS = {"epochs": 2, "checkpoint_minutes": 60.0}


def trainer(workload: Workload, threads: int, changes: dict) -> dict[str, float]:
    """Trains on the workload with `Trainer`."""
    settings = workload.settings(**TWO_EPOCHS, **changes)
    common.use_threads(threads, settings)
    from tf_smoothclir.training.batches import SampledBatches
    from tf_smoothclir.training.run_directory import RunDirectory
    from tf_smoothclir.training.trainer import Trainer
    from tf_smoothclir.two_tower.scorer import TwoTowerTask

    model = two_tower(workload, settings)
    with tempfile.TemporaryDirectory() as directory:
        tokenized_set = tokenized_set_of(workload, Path(directory))
        run = RunDirectory.create(Path(directory, "run"), settings)
        batches = SampledBatches(
            tokenized_set,
            settings.training,
            mined=tokenized_set.retrieval_set,
            both_at_once=model.encodes_both_at_once,
        )
        task = TwoTowerTask(model, settings.training, batches, tokenized_set)
        retrieval_set = tokenized_set.retrieval_set
        pairs, seconds = second_epoch(Trainer(task, retrieval_set, settings.training, run))
    return speed(workload, pairs / workload.batch_size, seconds)


def second_epoch(training: Trainer) -> tuple[int, float]:
    """Trains `TWO_EPOCHS`; the first one warms up.

    Returns:
        Pairs and seconds of the second epoch: its steps and what they wait for, without validation
        and the checkpoint at the end.
    """
    from tf_smoothclir.training.checkpoints import Progress

    ends = []

    class Noting(Progress):
        """Records pairs and seconds at the end of each epoch."""

        def __setattr__(self, name, value):
            if name == "epoch" and value:
                ends.append((self.pairs, self.seconds))
            super().__setattr__(name, value)

    training.progress = Noting()
    training.train()
    (first_pairs, begin), (pairs, end) = ends
    return pairs - first_pairs, end - begin


def measure(
    workload: Workload,
    *,
    variants: Sequence[dict],
    rounds: int,
    threads: int,
    steps: int,
) -> list[dict]:
    """The tables."""
    rivals = {_title(v): partial(trainer, workload, threads, v) for v in variants}
    has_torch = common.has("torch")
    if workload.tower == "average_pooling":
        rivals[KERAS] = partial(keras_adam, workload, steps, threads)
        if has_torch:
            rivals[TORCH] = partial(torch_sparse_adam, workload, 3 * steps, threads)
    if has_torch:
        rivals[PUBLISHED] = partial(torch_as_published, workload, steps, threads)
    measurements = common.interleaved(rivals, rounds)
    return [
        common.table(
            f"Training, {workload.tower}, batch {workload.batch_size} pairs, tables"
            f" {workload.vocabulary:,} x {workload.dim}, {threads} threads",
            measurements,
            ratio_of="pairs/s",
            references=[PUBLISHED, TORCH, KERAS],
        ),
    ]


def parse_variant(text: str) -> dict:
    """Training settings from text such as "optimizer=lazy_adam,fresh_negatives=true"."""
    defaults = vars(TrainingSettings())
    pairs = (part.split("=", 1) for part in text.split(","))
    return {
        name: value if isinstance(defaults[name], str) else json.loads(value)
        for name, value in pairs
    }


def _title(variant: dict) -> str:
    return "tf_smoothclir " + ", ".join(str(value) for value in variant.values())


def _define_flags() -> None:
    flags.DEFINE_multi_string(
        "variant",
        [
            "optimizer=row_rmsprop",
            "optimizer=row_rmsprop,batching=lists",
            "optimizer=rmsprop",
            "optimizer=lazy_adam",
        ],
        "Training settings to measure, such as optimizer=lazy_adam; may be repeated.",
    )
    flags.DEFINE_enum("tower", "average_pooling", ["average_pooling", "cnn", "lstm"], "Tower.")
    flags.DEFINE_integer("threads", 2, "Threads of each rival.", lower_bound=1)
    flags.DEFINE_integer("queries", 4000, "Training queries of 53.6 pairs.", lower_bound=1)
    flags.DEFINE_integer("vocabulary", 100_000, "Rows of each table.", lower_bound=3)
    flags.DEFINE_integer(
        "steps", 30, "Steps of Keras; PyTorch: three times as many.", lower_bound=11
    )


def _measure(
    variant: Sequence[str],
    tower: str,
    queries: int,
    vocabulary: int,
    rounds: int,
    threads: int,
    steps: int,
) -> list[dict]:
    workload = Workload(queries=queries, vocabulary=vocabulary, tower=tower)
    variants = [parse_variant(text) for text in variant]
    return measure(workload, variants=variants, rounds=rounds, threads=threads, steps=steps)


if __name__ == "__main__":
    common.run(_define_flags, _measure)
