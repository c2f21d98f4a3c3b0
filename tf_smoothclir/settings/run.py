"""All settings of a run: flags, `flags.txt` and `config.json` are made from them.

Each group is a frozen dataclass whose fields carry their help text and the values they accept.
"""

from __future__ import annotations

import dataclasses

from tf_smoothclir.settings.adversarial import AdversarialSettings
from tf_smoothclir.settings.base import value_text
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.model import ModelSettings
from tf_smoothclir.settings.retrieval import RetrievalSettings
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.settings.training import TrainingSettings

GROUPS = {
    "data": DataSettings,
    "text": TextSettings,
    "model": ModelSettings,
    "training": TrainingSettings,
    "retrieval": RetrievalSettings,
    "adversarial": AdversarialSettings,
}
# They change no result. Where the data are does not matter; what they are is compared by itself.
WITHOUT_EFFECT = frozenset(
    {"data_dir", "tfds_data_dir", "cache_dir", "shards_dir", "checkpoint_minutes"}
)


@dataclasses.dataclass(frozen=True)
class RunSettings:
    """All settings of a training run, by group."""

    data: DataSettings = dataclasses.field(default_factory=DataSettings)
    text: TextSettings = dataclasses.field(default_factory=TextSettings)
    model: ModelSettings = dataclasses.field(default_factory=ModelSettings)
    training: TrainingSettings = dataclasses.field(default_factory=TrainingSettings)
    retrieval: RetrievalSettings = dataclasses.field(default_factory=RetrievalSettings)
    adversarial: AdversarialSettings = dataclasses.field(default_factory=AdversarialSettings)

    @classmethod
    def from_dict(cls, values: dict) -> RunSettings:
        """Restores what `dataclasses.asdict` gave, also after a trip through JSON."""
        return cls(**{group: kind(**values[group]) for group, kind in GROUPS.items()})

    def values(self) -> dict[str, object]:
        """Name -> value of each setting of all groups, whose names all differ."""
        return {
            name: value for group in GROUPS for name, value in getattr(self, group).values().items()
        }

    def values_with_effect(self) -> dict[str, object]:
        """Name -> value of each setting that can change a result."""
        return {name: value for name, value in self.values().items() if name not in WITHOUT_EFFECT}

    def flag_lines(self) -> list[str]:
        """One `--name=value` for each setting, as a flag file has them."""
        return [f"--{name}={value_text(value)}" for name, value in self.values().items()]


def differences(there: RunSettings, here: RunSettings) -> list[str]:
    """What differs with effect on a result, such as "--epsilon: 1.0 there, 0.5 here"."""
    old, new = there.values_with_effect(), here.values_with_effect()
    return [
        f"--{name}: {value_text(old[name])} there, {value_text(new[name])} here"
        for name in new
        if old[name] != new[name]
    ]
