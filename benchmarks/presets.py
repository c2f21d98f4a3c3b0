"""The cost of the presets: training speed of each on a real set.

python -m benchmarks.presets --data_dir=... --document_language=de
"""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Sequence
from functools import partial

from absl import flags

from benchmarks import common
from benchmarks.training import TWO_EPOCHS, second_epoch
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.presets import changed, preset_settings
from tf_smoothclir.settings.run import RunSettings

REFERENCE = "fast"


def trained(settings: RunSettings, threads: int) -> dict[str, float]:
    """Trains with `Trainer` and returns the speed of one epoch.

    Listed pairs are those of the candidate lists, including sampled and mined negatives but not
    in-batch negatives, of which a preset may have many more.
    """
    common.use_threads(threads, settings)
    from tf_smoothclir.data.sources.opening import source_of
    from tf_smoothclir.data.sources.source import SPLITS
    from tf_smoothclir.training.run_data import tokenized_set_of
    from tf_smoothclir.training.run_directory import RunDirectory
    from tf_smoothclir.training.run_models import ModelsOverSet
    from tf_smoothclir.training.train import trainer_of

    with tempfile.TemporaryDirectory() as directory:
        run = RunDirectory.create(directory + "/run", settings)
        tokenized_set = tokenized_set_of(source_of(settings.data), settings, run, SPLITS)
        pairs, seconds = second_epoch(trainer_of(ModelsOverSet(settings, tokenized_set), run))
    queries = len(tokenized_set.retrieval_set.queries_in("train"))
    return {
        "listed pairs/s": pairs / seconds,
        "queries/s": queries / seconds,
        "seconds an epoch": seconds,
    }


def measure(data: DataSettings, variants: Sequence[str], rounds: int, threads: int) -> list[dict]:
    """The table, one row for each variant; `fast` is the reference."""
    rivals = {text: partial(trained, variant_settings(text, data), threads) for text in variants}
    return [
        common.table(
            f"{data.data_dir or 'toy world'}, the second epoch, {threads} threads",
            common.interleaved(rivals, rounds),
            ratio_of="listed pairs/s",
            references=[REFERENCE],
        )
    ]


def variant_settings(text: str, data: DataSettings) -> RunSettings:
    """The settings that a text such as "dense,dim=64" names, with two epochs."""
    preset, *parts = text.split(",")
    changes = {name: json.loads(value) for name, value in (part.split("=") for part in parts)}
    settings = changed(preset_settings(preset), {**changes, **TWO_EPOCHS})
    return dataclasses.replace(settings, data=data)


def _define_flags() -> None:
    flags.DEFINE_string("data_dir", "", "Retrieval set; empty: the toy world.")
    flags.DEFINE_string("document_language", "fr", "Document language.")
    flags.DEFINE_integer("threads", 2, "Threads of each run.", lower_bound=1)
    flags.DEFINE_multi_string(
        "variant",
        [REFERENCE, "dense,dim=64", "dense"],
        "A preset with changed numbers, such as dense,dim=64; may be repeated.",
    )


def _measure(values: flags.FlagValues) -> list[dict]:
    data = DataSettings(data_dir=values.data_dir, document_language=values.document_language)
    return measure(data, values.variant, values.rounds, values.threads)


if __name__ == "__main__":
    common.run(_define_flags, _measure)
