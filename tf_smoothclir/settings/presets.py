"""Presets of settings, and settings with some values changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from tf_smoothclir.settings.run import RunSettings

# The best towers alone, chosen on the validation queries of mdn-en-de.
_DENSE = {
    "shared_vocabulary": True,
    "ngram_buckets": 100_000,
    "ngram_rows_per_word": 4,  # no limit on any set that it was chosen on
    "min_ngram": 4,
    "dim": 512,
    "matryoshka_dims": (64, 128, 256),
    "token_weights": "learned",
    "position_weights": "learned",
    "initial_vectors": "bilingual",
    "loss": "ordinal_softmax",
    "train_negatives": 0,
    "hard_negatives": 5,
    "pseudo_queries": 6_000,
    "batching": "in_batch",
    "optimizer": "row_rmsprop",
    "batch_size": 512,
    "learning_rate": 0.025,
    "learning_rate_decay": 0.7,
    "epochs": 4,
}
# Liu et al. 2020, section 5, and their code. What the defaults of the settings are already is not
# repeated.
_PAPER = {"max_queries": 25_000, "optimizer": "adam", "published_towers": True}
# Tower -> what the paper trains it with beside that.
PAPER_TOWERS = {
    "cnn": {"learning_rate": 0.001, "learning_rate_decay": 0.95},
    "lstm": {"learning_rate": 0.001, "learning_rate_decay": 0.95, "batch_size": 64, "epochs": 15},
}
# Values of --preset.
PRESETS = {
    "fast": {},
    "paper": _PAPER,
    "dense": _DENSE,
    "lexical": {"retriever": "lexical", "shared_vocabulary": True},
    "best": {**_DENSE, "retriever": "hybrid"},
}


def changed(settings: RunSettings, changes: Mapping[str, object]) -> RunSettings:
    """Settings with some values changed, by name, in whatever group."""
    left, groups = dict(changes), settings.groups()
    for name, group in groups.items():
        names = group.values().keys() & left.keys()
        groups[name] = dataclasses.replace(group, **{name: left.pop(name) for name in names})
    if left:
        raise ValueError(f"There are no settings {sorted(left)}.")
    return RunSettings.from_groups(groups)


def preset_settings(name: str, tower: str = "") -> RunSettings:
    """The settings of a preset."""
    settings = changed(RunSettings(), PRESETS[name])
    if not tower:
        return settings
    of_tower = PAPER_TOWERS.get(tower, {}) if name == "paper" else {}
    return changed(settings, {**of_tower, "tower": tower})
