"""Shards of the tiny set."""

from __future__ import annotations

from pathlib import Path

from tests.training.tiny_set import SPLITS
from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.extras.distributed.reading import Shards
from tf_smoothclir.extras.distributed.writer import write_shards
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.training.train import retrieval_set_of

SHARDS = 4


def tiny_shards(tiny, directory: Path, text: TextSettings, seed=13) -> Shards:
    """Writes shards of the candidate lists of a tiny set."""
    settings = tiny()
    retrieval_set = retrieval_set_of(source_of(settings.data), settings, SPLITS)
    tokenized_set = tokenize_set(retrieval_set, text, settings.data.cache_dir)
    sampling = {"negatives": 3, "seed": seed}
    lists = candidate_lists(retrieval_set, split="train", **sampling)
    return write_shards(tokenized_set, lists, directory, SHARDS, **sampling, text=text)
