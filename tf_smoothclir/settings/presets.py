"""Presets of settings, and settings with some values changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from tf_smoothclir.settings.run import GROUPS, RunSettings

# Chosen on the validation queries of mdn-en-de.
_BEST = {
    "shared_vocabulary": True,
    "ngram_buckets": 200_000,
    "min_ngram": 4,
    "dim": 512,
    "token_weights": "learned",
    "initial_vectors": "bilingual",
    "train_negatives": 5,
    "fresh_negatives": True,
    "hard_negatives": 5,
    "batching": "in_batch",
    "batch_size": 512,
    "learning_rate": 0.025,
    "learning_rate_decay": 0.7,
    "average_weights": 0.5,
    "epochs": 6,
}
# Values of --preset.
PRESETS = {
    "paper": {},
    "best": _BEST,
    "lexical": {"retriever": "lexical"},
    "hybrid": {**_BEST, "dim": 64, "retriever": "hybrid"},
}


def changed(settings: RunSettings, changes: Mapping[str, object]) -> RunSettings:
    """Returns settings with some values changed, by name, in whatever group.

    Raises:
        ValueError: There is no such setting, or it does not accept the value.
    """
    left, groups = dict(changes), {}
    for group, kind in GROUPS.items():
        names = {field.name for field in dataclasses.fields(kind)} & left.keys()
        values = {name: left.pop(name) for name in names}
        groups[group] = dataclasses.replace(getattr(settings, group), **values)
    if left:
        raise ValueError(f"There are no settings {sorted(left)}.")
    return RunSettings(**groups)


def preset_settings(name: str) -> RunSettings:
    """Returns the settings of a preset; those it does not name have the paper's values."""
    return changed(RunSettings(), PRESETS[name])
