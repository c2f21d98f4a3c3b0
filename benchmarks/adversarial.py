"""Training against a discriminator: triplets per second, all texts of the same length.

python -m benchmarks.adversarial
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from absl import flags

from benchmarks import common
from benchmarks.workload import Workload, tokenized_set_of, two_tower

TOWERS = ("max_lstm", "average_pooling")
_WARM_CALLS = 2


def train(workload: Workload, threads: int, tower: str, seconds: float) -> dict[str, float]:
    """Trains the three encoders and the discriminator, as the trainer does."""
    from tf_smoothclir.papers import li2018 as li2018  # registers its towers and objectives
    from tf_smoothclir.settings.presets import changed

    changes = {"tower": tower, "epsilon": 0.0, "objective": "adversarial"}
    settings = changed(workload.settings(), changes)
    common.use_threads(threads, settings)
    import numpy as np

    from tf_smoothclir.papers.li2018.encoders import Encoders
    from tf_smoothclir.papers.li2018.task import AdversarialTask
    from tf_smoothclir.papers.li2018.translations import TokenRows
    from tf_smoothclir.papers.li2018.triplets import TripletBatches
    from tf_smoothclir.protocols.task import PAIRS
    from tf_smoothclir.training.steps import StepLoop
    from tf_smoothclir.training.trainer import STEPS_PER_CALL

    with tempfile.TemporaryDirectory() as directory:
        tokenized_set = tokenized_set_of(workload, Path(directory))
        model = two_tower(workload, settings)
        # Their words are others to the tower of translations, though their ids are the same.
        queries = tokenized_set.tokens("query")
        translations = TokenRows(np.asarray(queries.values), np.asarray(queries.offsets))
        batches = TripletBatches(tokenized_set, translations, settings.training)
        task = AdversarialTask(model, settings, batches, Encoders(model, seed=2))
        step = StepLoop(task)
        triplets = iter(batches.epoch(0).batches(0).repeat())
        for _ in range(_WARM_CALLS):
            step(triplets, STEPS_PER_CALL)
        begin, cpu, number, spent = time.perf_counter(), time.process_time(), 0, 0.0
        while not number or spent < seconds:
            number += int(step(triplets, STEPS_PER_CALL)[PAIRS].sum())
            spent = time.perf_counter() - begin
        cpu = time.process_time() - cpu
    return {"triplets/s": number / spent, "CPU ms/triplet": 1000 * cpu / number}


def measure(
    workload: Workload, *, towers: Sequence[str], rounds: int, threads: int, seconds: float
) -> list[dict]:
    """The table.

    Args:
        seconds: How long each measurement takes, at least.
    """
    rivals = {tower: partial(train, workload, threads, tower, seconds) for tower in towers}
    return [
        common.table(
            f"Training against a discriminator, batch {workload.batch_size} triplets, texts of"
            f" {workload.query_tokens} tokens, {threads} threads",
            common.interleaved(rivals, rounds),
            ratio_of="triplets/s",
            references=[],
        )
    ]


def _define_flags() -> None:
    flags.DEFINE_multi_enum("tower", ["max_lstm"], TOWERS, "Towers to measure; may be repeated.")
    flags.DEFINE_integer("threads", 2, "Operations that run in parallel.", lower_bound=1)
    flags.DEFINE_integer("tokens", 30, "Length of all texts.", lower_bound=1)
    flags.DEFINE_integer("batch_size", 128, "Triplets in a batch.", lower_bound=1)
    flags.DEFINE_float("seconds", 10.0, "Length of each measurement.", lower_bound=0.0)


def _measure(values: flags.FlagValues) -> list[dict]:
    tokens = values.tokens
    return measure(
        Workload(
            query_tokens=tokens,
            document_tokens=tokens,
            same_lengths=True,
            batch_size=values.batch_size,
        ),
        towers=values.tower,
        rounds=values.rounds,
        threads=values.threads,
        seconds=values.seconds,
    )


if __name__ == "__main__":
    common.run(_define_flags, _measure)
