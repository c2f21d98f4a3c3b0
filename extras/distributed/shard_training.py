"""Training from shards: its batches, and the checks that shards and settings agree."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.extras.distributed.pipeline import ShardPipeline
from tf_smoothclir.extras.distributed.reading import Shards
from tf_smoothclir.extras.distributed.settings import ShardsSettings
from tf_smoothclir.protocols.task import Batches
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.settings.training import TrainingSettings
from tf_smoothclir.training.processes import SingleProcess
from tf_smoothclir.utils.errors import InputError, input_error

_OF_NGRAMS = ("min_ngram", "max_ngram")  # shards hold no n-grams


class OnShards(SingleProcess):
    """One process that trains on shards; `Workers` are several."""

    number = 0

    def __init__(self, shards: Shards):
        self._shards = shards
        self.fingerprint = f"{self.size} on shards {shards.manifest.fingerprint()}"

    def check_set(self, name: str) -> None:
        """Checks also that there are enough shards."""
        shards = self._shards
        if shards.manifest.name != name:
            raise _differs(
                shards,
                f"they were made from the set {shards.manifest.name}, but the data flags name"
                f" {name}",
                "Give the same data flags as to smoothclir-shards",
            )
        ShardPipeline(shards, batch_size=1, seed=0, num_workers=self.size)

    def vocabularies(self) -> Mapping[str, list[str]]:
        """Those that the ids of the shards were looked up in."""
        return {role: self._shards.vocabulary(role) for role in ROLES}

    def batches(self, settings: TrainingSettings) -> Batches:
        """Those of this process's own shards."""
        return ShardPipeline(
            self._shards,
            batch_size=settings.batch_size,
            seed=settings.seed,
            worker=self.number,
            num_workers=self.size,
        )


def on_shards(settings: RunSettings, is_finished: Callable[[], bool]) -> OnShards:
    """The implementation of `--distribution=shards`."""
    del is_finished
    return OnShards(open_shards(settings))


def open_shards(settings: RunSettings) -> Shards:
    """Opens the shards that the settings name, and checks that they were written alike."""
    shards = Shards.open(settings.of(ShardsSettings).shards_dir)
    manifest, training = shards.manifest, settings.training
    own, common = training.train_negatives, training.negatives
    expected = {
        **{k: v for k, v in settings.text.values().items() if k not in _OF_NGRAMS},
        "train_negatives": common if own < 0 else own,
        "num_grades": len(settings.model.thresholds) + 1,
    }
    written = {
        **dataclasses.asdict(TextSettings()),
        **TextSettings(**manifest.text).values(),
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
    return shards


def _differs(shards: Shards, reason: str, remedy: str) -> InputError:
    return input_error(f"--shards_dir={shards.directory}", reason, remedy)
