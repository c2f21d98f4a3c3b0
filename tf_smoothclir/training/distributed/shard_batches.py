"""Training batches from shards, and the checks that shards and settings agree."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools

from tf_smoothclir.data.shards.pipeline import ShardPipeline
from tf_smoothclir.data.shards.reading import Shards
from tf_smoothclir.protocols.task import Batches, Epoch
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.settings.training import TrainingSettings
from tf_smoothclir.utils.errors import InputError, input_error

_OF_NGRAMS = ("min_ngram", "max_ngram")  # shards hold no n-grams


class ShardBatches(Batches):
    """Batches of whole candidate lists from shards; each worker reads its own shards."""

    def __init__(
        self, shards: Shards, settings: TrainingSettings, *, worker: int = 0, num_workers: int = 1
    ):
        self._shards = shards
        self._pipelines = [
            ShardPipeline(
                shards,
                batch_size=max(1, round(settings.batch_size / num_workers)),
                seed=settings.seed,
                worker=number,
                num_workers=num_workers,
            )
            for number in range(num_workers)
        ]
        self._worker = worker

    def epoch(self, number: int) -> Epoch:
        """The batches of an epoch, from 0.

        It ends with the worker that has the fewest batches; the manifest tells each worker these
        numbers. The rows of a step are those of all workers.
        """
        own = self._pipelines[self._worker]
        return Epoch(
            steps=min(pipeline.num_steps() for pipeline in self._pipelines),
            pairs=self._shards.manifest.pairs,
            batches=lambda start: own.epoch(number, start),
            rows=lambda step: list(
                itertools.chain(*(pipeline.rows(number, step) for pipeline in self._pipelines))
            ),
        )

    def explaining_defects(self) -> contextlib.AbstractContextManager:
        """Turns a read error, inside the context, into one that names file and record."""
        return self._shards.explaining_defects()


def open_shards(settings: RunSettings) -> Shards | None:
    """Opens the shards that the settings name; returns None if they name none."""
    if not settings.training.shards_dir:
        return None
    shards = Shards.open(settings.training.shards_dir)
    _check_settings(shards, settings)
    return shards


def check_set(shards: Shards, name: str) -> None:
    """Checks that shards were made from the retrieval set of this name."""
    if shards.manifest.name != name:
        raise _differs(
            shards,
            f"they were made from the set {shards.manifest.name}, but the data flags name {name}",
            "Give the same data flags as to smoothclir-shards",
        )


def check_workers(shards: Shards, number: int) -> None:
    """Checks that there are enough shards for `number` workers."""
    ShardPipeline(shards, batch_size=1, seed=0, worker=0, num_workers=number)


def _check_settings(shards: Shards, settings: RunSettings) -> None:
    manifest, training = shards.manifest, settings.training
    if manifest.split != "train":
        raise _differs(
            shards,
            f"they hold the {manifest.split} split",
            "Write the training lists with smoothclir-shards --split=train",
        )
    own, common = training.train_negatives, training.negatives
    expected = {
        **{
            name: value
            for name, value in dataclasses.asdict(settings.text).items()
            if name not in _OF_NGRAMS
        },
        "train_negatives": common if own < 0 else own,
        "num_grades": len(settings.model.thresholds) + 1,
    }
    written = {
        **dataclasses.asdict(TextSettings()),
        **manifest.text,
        "train_negatives": manifest.negatives,
        "num_grades": manifest.num_grades,
    }
    for name, value in expected.items():
        if written[name] == value:
            continue
        if name == "num_grades":
            reason = f"they have {written[name]} grades, but --thresholds are for {value}"
            raise _differs(shards, reason, f"Give {written[name] - 1} --thresholds")
        reason = f"they were written with {written[name]} for --{name}, but it is {value} here"
        raise _differs(shards, reason, f"Give --{name}={written[name]}, or write new shards")


def _differs(shards: Shards, reason: str, remedy: str) -> InputError:
    return input_error(f"--shards_dir={shards.directory}", reason, remedy)
