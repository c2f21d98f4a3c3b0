"""Optimizers on a real set after the same number of epochs: test metrics and training speed.

python -m benchmarks.optimizers --data_dir=... --document_language=de
"""

from __future__ import annotations

import dataclasses
import tempfile
from functools import partial

from absl import flags

from benchmarks import common
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.training import METRICS, TrainingSettings

EXACT = "adam"


def trained(settings: RunSettings) -> dict[str, float]:
    """Trains once and returns the metrics of the test split, speed and the best epoch."""
    from tf_smoothclir.training.train import train

    with tempfile.TemporaryDirectory() as directory:
        result = train(settings, directory + "/run")
    return {
        **{name: result["test"][name] for name in (*METRICS, "full/MRR@10")},
        "pairs/s": result["training"]["pairs_per_second"],
        "best epoch": result["training"]["best_epoch"],
    }


def measure(settings: RunSettings, optimizers: list[str], rounds: int) -> list[dict]:
    """The table, one row for each optimizer; Keras's Adam is the reference."""
    rivals = {
        name: partial(
            trained,
            dataclasses.replace(
                settings, training=dataclasses.replace(settings.training, optimizer=name)
            ),
        )
        for name in optimizers
    }
    return [
        common.table(
            f"{settings.data.data_dir or 'toy world'}, {settings.training.epochs} epochs",
            common.interleaved(rivals, rounds),
            ratio_of="pairs/s",
            references=[EXACT],
        )
    ]


def _define_flags() -> None:
    flags.DEFINE_string("data_dir", "", "Retrieval set; empty: the toy world.")
    flags.DEFINE_string("document_language", "fr", "Document language.")
    flags.DEFINE_integer("epochs", 10, "Epochs of each run.", lower_bound=1)
    flags.DEFINE_integer("seed", 13, "Seed of each run.", lower_bound=0)
    flags.DEFINE_multi_string(
        "optimizer", [EXACT, "lazy_adam", "rmsprop"], "Optimizers to measure; may be repeated."
    )


def _measure(values: flags.FlagValues) -> list[dict]:
    settings = RunSettings(
        data=DataSettings(data_dir=values.data_dir, document_language=values.document_language),
        training=TrainingSettings(epochs=values.epochs, seed=values.seed),
    )
    return measure(settings, values.optimizer, values.rounds)


if __name__ == "__main__":
    common.run(_define_flags, _measure)
