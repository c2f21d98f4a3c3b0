"""All settings of a run: flags, `flags.txt` and `config.json` are made from them.

Each group is a frozen dataclass whose fields carry their help text and the values they accept.
Plug-ins add groups of their own.
"""

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Self, TypeVar

from tf_smoothclir import plugins
from tf_smoothclir.settings.base import Settings, fields_with_flags, value_text
from tf_smoothclir.settings.data import LANGUAGES, DataSettings, EncoderSettings
from tf_smoothclir.settings.model import ModelSettings
from tf_smoothclir.settings.retrieval import RetrievalSettings
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.settings.training import TrainingSettings

_S = TypeVar("_S", bound=Settings)
GROUPS = {
    "data": DataSettings,
    "text": TextSettings,
    "model": ModelSettings,
    "training": TrainingSettings,
    "retrieval": RetrievalSettings,
}
plugins.claim(GROUPS)
_PLUGINS = "plugins"
_LONGEST_SHOWN = 200


def all_groups() -> dict[str, type[Settings]]:
    """Name -> settings of each group, those of registered plug-ins last."""
    return {**GROUPS, **plugins.groups()}


@dataclasses.dataclass(frozen=True)
class RunSettings:
    """All settings of a training run, by group."""

    data: DataSettings = dataclasses.field(default_factory=DataSettings)
    text: TextSettings = dataclasses.field(default_factory=TextSettings)
    model: ModelSettings = dataclasses.field(default_factory=ModelSettings)
    training: TrainingSettings = dataclasses.field(default_factory=TrainingSettings)
    retrieval: RetrievalSettings = dataclasses.field(default_factory=RetrievalSettings)
    # The groups of plug-ins that are not as their defaults, in a fixed order.
    of_plugins: tuple[Settings, ...] = ()

    def __post_init__(self):
        changed = [group for group in self.of_plugins if group != type(group)()]
        changed.sort(key=lambda group: plugins.group_name(type(group)))
        object.__setattr__(self, "of_plugins", tuple(changed))

    def of(self, kind: type[_S]) -> _S:
        """The settings of a plug-in."""
        return next((group for group in self.of_plugins if type(group) is kind), kind())

    def ranking_by(self, retriever: str) -> Self:
        """The settings with a part of the retriever alone, and no re-ranker; not checked."""
        retrieval = dataclasses.replace(self.retrieval, retriever=retriever, reranker="none")
        of_plugins = self.of_plugins
        if "encoder" not in plugins.with_parts(retriever):
            of_plugins = tuple(
                group for group in of_plugins if not isinstance(group, EncoderSettings)
            )
        return dataclasses.replace(self, retrieval=retrieval, of_plugins=of_plugins)

    def with_encoder(self) -> Self:
        """The settings with the retriever that a foreign encoder joins, if one is named."""
        joined = plugins.FAMILIES.plugin(self.retrieval.retriever).fact("with_encoder", "")
        if not self.of(EncoderSettings).encoder or not joined:
            return self
        retrieval = dataclasses.replace(self.retrieval, retriever=joined)
        return dataclasses.replace(self, retrieval=retrieval)

    def groups(self) -> dict[str, Settings]:
        """Name of group -> its settings; those of all registered plug-ins are among them."""
        built_in = {name: getattr(self, name) for name in GROUPS}
        return built_in | {name: self.of(kind) for name, kind in plugins.groups().items()}

    @classmethod
    def from_groups(cls, groups: Mapping[str, Settings]) -> Self:
        """The settings with these groups; what is missing has its defaults."""
        built_in = {name: group for name, group in groups.items() if name in GROUPS}
        of_plugins = tuple(group for name, group in groups.items() if name not in GROUPS)
        return cls(**built_in, of_plugins=of_plugins)

    def to_dict(self) -> dict:
        """Name of group -> setting -> value, for JSON; "plugins" are the modules in use."""
        used = plugins.used_by(self.values())
        kinds = {used.settings for used in used if used.settings} | set(map(type, self.of_plugins))
        content = {name: getattr(self, name).values() for name in GROUPS}
        content |= {
            name: self.of(kind).values() for name, kind in plugins.groups().items() if kind in kinds
        }
        return {**content, _PLUGINS: list(dict.fromkeys(plugin.module for plugin in used))}

    @classmethod
    def from_dict(cls, values: dict) -> Self:
        """Restores what `to_dict` gave, also after a trip through JSON."""
        plugins.check_loaded(values[_PLUGINS])
        groups = {name: values[name] for name in GROUPS}
        groups |= {name: group for name, group in values.items() if name not in groups}
        del groups[_PLUGINS]
        kinds = all_groups()
        return cls.from_groups({name: kinds[name](**group) for name, group in groups.items()})

    def values(self) -> dict[str, object]:
        """Name -> value of each setting of all groups, whose names all differ."""
        return {
            name: value
            for group in self.groups().values()
            for name, value in group.values().items()
        }

    def values_with_effect(self) -> dict[str, object]:
        """Name -> value of each setting that can change a result."""
        return {
            field.name: getattr(group, field.name)
            for group in self.groups().values()
            for field in dataclasses.fields(group)
            if field.metadata["has_effect"]
        }

    def flag_lines(self) -> list[str]:
        """One `--name=value` for each setting, as a flag file has them; plug-ins come first."""
        content = self.to_dict()
        modules = content.pop(_PLUGINS)
        lines = [f"--plugin={','.join(modules)}"] if modules else []
        kinds = all_groups()
        for name, group in content.items():
            shown = (field.name for field in fields_with_flags(kinds[name]))
            lines += [f"--{field}={value_text(group[field])}" for field in shown]
        return lines


def _shown(value: object) -> str:
    """A value as text; of a long one, such as the objects that Python gave, a digest."""
    text = value_text(value)
    if len(text) <= _LONGEST_SHOWN:
        return text
    return f"{text[:20]}... (sha256 {hashlib.sha256(text.encode()).hexdigest()[:8]})"


def differences(there: RunSettings, here: RunSettings) -> list[str]:
    """What differs with effect on a result, such as "--epsilon: 1.0 there, 0.5 here"."""
    old, new = there.values_with_effect(), here.values_with_effect()
    return [
        f"--{name}: {_shown(old[name])} there, {_shown(new[name])} here"
        for name in new
        if old[name] != new[name] and not (name in LANGUAGES and new[name] in ("", "all"))
    ]
