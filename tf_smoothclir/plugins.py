"""The plug-in door: losses, towers, families and more by name, from inside and outside.

A plug-in is a module that registers what it brings:

```python
from tf_smoothclir import plugins

plugins.register("loss", "focal", FocalLoss, settings=FocalSettings, help="SOSL with a focus.")
```

From then on `--loss=focal` is a choice, and so is `sc.train(loss="focal")`; the fields of
`FocalSettings` are flags and keywords. `--plugin=MODULE` imports such a module before flags are
read, `load` does so in Python. A run remembers the modules that it used, and opens only once they
are imported again: nothing is imported because a file says so.

What the package itself has is registered in `settings.built_in`, in the same way.
"""

import dataclasses
import importlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from tf_smoothclir.utils.errors import InputError, input_error

# Kind of plug-in, which is the setting that chooses one too, but of a family -> what `register`
# takes.
KINDS = {
    "loss": "a `RankingLoss` class, made by `from_settings`",
    "tower": "a `WordTableTower` class, made by `from_settings`",
    "objective": "a function from `ObjectiveInputs` to a `Task`",
    "reranker": "an `InteractionNetwork` class, with its `learning`",
    "distribution": "a function from settings, and whether the run is finished, to `SingleProcess`",
    "family": "a `families.Family` class, made by its name; --retriever chooses one",
}
_BASES = {
    "loss": "RankingLoss",
    "tower": "WordTableTower",
    "reranker": "InteractionNetwork",
    "family": "Family",
}


@dataclasses.dataclass(frozen=True)
class Plugin:
    """Entry of the registry: an implementation, its name and its settings.

    Attributes:
        kind: One of `KINDS`.
        name: The value of the setting that chooses it.
        implementation: The thing, or "module:name" to import it from when it is first used.
        help: One sentence for `--help`; "" for what a program alone can choose.
        settings: Dataclass of its own settings; several plug-ins may share one.
        rules: What its settings do not go together with.
        facts: What is known of it without importing it, by the name of a class attribute.
        module: The module to name in `--plugin`; "" for what the package has itself.
    """

    kind: str
    name: str
    implementation: Any
    help: str
    settings: type | None
    rules: tuple
    facts: Mapping[str, Any]
    module: str

    def load(self) -> Any:
        """The implementation, imported."""
        if not isinstance(self.implementation, str):
            return self.implementation
        module, _, name = self.implementation.partition(":")
        return getattr(importlib.import_module(module), name)

    def fact(self, name: str, default: Any = None) -> Any:
        """A fact, else the attribute of the implementation, else the default."""
        if name in self.facts or isinstance(self.implementation, str):
            return self.facts.get(name, default)
        return getattr(self.implementation, name, default)


_plugins: dict[tuple[str, str], Plugin] = {}
_own_groups: dict[str, type] = {}  # of settings of the package itself
_modules: list[str] = []  # that `load` is importing now, the innermost last
_BUILT_IN = "tf_smoothclir.settings.built_in"


def _known() -> dict[tuple[str, str], Plugin]:
    """All plug-ins, those of the package itself too, whichever module a program imports first."""
    importlib.import_module(_BUILT_IN)
    return _plugins


def register(
    kind: str,
    name: str,
    implementation: Any,
    *,
    help: str,
    settings: type | None = None,
    rules: Iterable = (),
    facts: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Registers a loss, tower or another of `KINDS` as a choice of the setting of its kind.

    Args:
        kind: One of `KINDS`.
        name: The name to choose it by, such as "focal" in `--loss=focal`: letters, digits, `_`,
            `-`, `+` and dots.
        implementation: As `KINDS` says for the kind; or "module:name" of it, to import it later.
        help: One sentence for `--help`.
        settings: A frozen dataclass derived from `tf_smoothclir.Settings`, whose fields become
            flags and keywords; their names must be new. Plug-ins may share one.
        rules: `tf_smoothclir.settings.base.Rule`s of what its settings do not go together with.
        facts: Class attributes of an implementation that is named, such as `needs_lists`.

    Raises:
        ValueError: There is no such kind, the name cannot be used or something else has it, or the
            implementation is no such thing, or lacks a method.
    """
    caller = sys._getframe(1).f_globals["__name__"]
    caller = "__main__" if caller == "__mp_main__" else caller  # the same, in a new process
    module = "" if caller == _BUILT_IN else (_modules or [caller])[-1]
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, but is {kind!r}.")
    if not re.fullmatch(r"[\w.+-]+", name):
        raise ValueError(f"{kind} {name!r}: use letters, digits, _, -, + and dots in a name.")
    there = _known().get((kind, name))
    if there is not None and _origin(there.implementation) != _origin(implementation):
        raise ValueError(
            f"{kind} {name!r} is there already, from {there.module or 'tf_smoothclir'}:"
            " choose another name."
        )
    _check_settings(settings)
    if module and not isinstance(implementation, str):
        _check_implementation(kind, name, implementation)
    module = there.module if there else module  # as it was first imported, under whichever name
    _plugins[kind, name] = Plugin(
        kind, name, implementation, help, settings, tuple(rules), dict(facts), module
    )


def _origin(thing: Any) -> str:
    """Origin of a thing: a module that is imported twice registers the same."""
    if isinstance(thing, str):
        return thing
    return f"{getattr(thing, '__module__', '')}:{getattr(thing, '__qualname__', repr(thing))}"


def _check_implementation(kind: str, name: str, thing: Any) -> None:
    """Checks that an implementation is what `KINDS` says, and has the methods that it needs."""
    bases = {base.__name__: base for base in getattr(thing, "__mro__", ())}
    base = bases.get(_BASES.get(kind, ""))
    if not callable(thing) or (base is None and kind in _BASES):
        reason = f"it is no {_BASES.get(kind, 'function')}"
    elif lacking := [
        part
        for part in dir(thing)
        if getattr(getattr(thing, part, None), "__isabstractmethod__", False)
        and (part != "scorer" or thing.retrievers is base.retrievers)  # else it ranks without
    ] or ["learning"] * (getattr(thing, "learning", True) is None):
        reason = f"{thing.__name__} has no {' and no '.join(lacking)}"
    else:
        return
    raise input_error(f"{kind} {name!r}", reason, f"Register {KINDS[kind]}")


def _check_settings(settings: type | None) -> None:
    """Checks that no other group has the name of this one, or a setting of the same name."""
    if settings is None:
        return
    names = {field.name for field in dataclasses.fields(settings)}
    for group, other in {**_own_groups, **groups()}.items():
        if _origin(other) == _origin(settings):
            continue
        if group == group_name(settings):
            raise ValueError(f"{settings.__name__}: there are settings {group!r} already.")
        if shared := names & {field.name for field in dataclasses.fields(other)}:
            raise ValueError(
                f"{settings.__name__}: {other.__name__} has a setting {min(shared)!r} already."
            )


def claim(own_groups: Mapping[str, type]) -> None:
    """Claims the names of settings of the package itself, by group; no plug-in may have them."""
    _own_groups.update(own_groups)
    for plugin in _known().values():
        _check_settings(plugin.settings)


def load(modules: Iterable[str]) -> None:
    """Imports plug-in modules, which register what they bring.

    Args:
        modules: Dotted names, such as "my_package.my_losses".

    Raises:
        InputError: There is no such module, it fails, or it registers nothing.
    """
    for name in modules:
        if name in loaded():
            continue
        before = dict(_known())
        _modules.append(name)
        try:
            importlib.import_module(name)
        except Exception as error:
            _plugins.clear()  # of what it registered before it failed
            _plugins.update(before)
            if isinstance(error, InputError):
                raise
            kind = type(error).__name__
            raise input_error(
                f"--plugin={name}",
                f"it cannot be imported ({kind}: {error})",
                "Name a module as `import` does; PYTHONPATH says where to look",
            ) from error
        finally:
            _modules.pop()
        if name not in loaded() and not _registers_keras_classes(name):
            raise input_error(
                f"--plugin={name}",
                "it registers nothing",
                "Call tf_smoothclir.plugins.register in it",
            )


def _registers_keras_classes(module: str) -> bool:
    """Whether a module has classes of objects that runs are given; see `settings.given`."""
    if "tensorflow" not in sys.modules:
        return False
    from tensorflow import keras

    own = (kind for kind in vars(sys.modules[module]).values() if isinstance(kind, type))
    known = {*keras.utils.get_custom_objects().values()}
    return any(kind.__module__ == module and kind in known for kind in own)


def loaded() -> list[str]:
    """The modules whose plug-ins are registered."""
    return list(dict.fromkeys(plugin.module for plugin in _known().values() if plugin.module))


def check_loaded(modules: Iterable[str]) -> None:
    """Checks that the user has imported the plug-ins of a run: a file may not do so."""
    missing = [name for name in modules if name not in loaded()]
    if missing:
        raise input_error(
            f"plug-in {missing[0]}",
            "the run was made with it, and nothing is imported because a file says so",
            f"If you trust it, add --plugin={','.join(missing)}; in Python, call"
            f" tf_smoothclir.plugins.load({missing!r}) first",
        )


def group_name(settings: type) -> str:
    """The name of a group of settings: `FocalLossSettings` is "focal_loss"."""
    words = re.findall(r"[A-Z][a-z0-9]*", settings.__name__.removesuffix("Settings"))
    return "_".join(words).lower()


def groups() -> dict[str, type]:
    """Name of group -> settings of the registered plug-ins."""
    kinds = (plugin.settings for plugin in _known().values())
    return {group_name(kind): kind for kind in kinds if kind is not None}


def rules() -> list:
    """The rules of all registered plug-ins, each once."""
    return list(dict.fromkeys(rule for plugin in _known().values() for rule in plugin.rules))


def used_by(values: Mapping[str, Any]) -> list[Plugin]:
    """The plug-ins from outside that settings, by name, choose."""
    settings = {kind: "retriever" if kind == "family" else kind for kind in KINDS}
    chosen = (_known().get((kind, values.get(name))) for kind, name in settings.items())
    return [plugin for plugin in chosen if plugin is not None and plugin.module]


class Registry(Mapping):
    """The implementations of one kind by name: a view that grows as plug-ins are registered.

    It accepts names without help too, but lists only those that a user can choose.
    """

    def __init__(self, kind: str):
        self._kind = kind

    def __getitem__(self, name: str) -> Any:
        return _known()[self._kind, name].load()

    def __contains__(self, name: object) -> bool:
        return (self._kind, name) in _known()

    def __iter__(self) -> Iterator[str]:
        return (p.name for p in _known().values() if p.kind == self._kind and p.help)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def plugin(self, name: str) -> Plugin:
        """Plug-in of a name."""
        return _known()[self._kind, name]

    def help(self) -> str:
        """Name and help of each choice."""
        return " ".join(f"{name}: {self.plugin(name).help}" for name in self)


LOSSES, TOWERS, OBJECTIVES, RERANKERS, DISTRIBUTIONS, FAMILIES = map(Registry, KINDS)


def family(name: str) -> Any:
    """The family of a name."""
    return FAMILIES[name](name)


def with_parts(*names: str) -> tuple[str, ...]:
    """Families with those that they are made of, which come first."""
    found: dict[str, None] = {}
    for name in names:
        parts = FAMILIES.plugin(name).fact("parts", ()) if name in FAMILIES else ()
        found |= dict.fromkeys((*with_parts(*parts), name))
    return tuple(found)


def any_part(retriever: str, fact: str) -> bool:
    """Whether a fact is true of a family or of one that it is made of."""
    parts = (FAMILIES.plugin(name) for name in with_parts(retriever) if name in FAMILIES)
    return any(part.fact(fact, False) for part in parts)
