"""Objects that Python gave instead of names, as text among the settings of a run.

`sc.train(loss=MyLoss(), document_tower=my_layer)` keeps the Keras configurations of the objects in
the setting `objects`, as JSON. They are objects again only if the program has their classes: what
a file names is not imported.
"""

import collections
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from tf_smoothclir.utils.errors import input_error

_TRUSTED = ("keras", "tensorflow", "tf_keras", "tf_smoothclir", "builtins")
_classes: dict[str, type] = {}  # of objects that this process was given, and of their layers


def objects_text(**objects: Any) -> str:
    """Keras objects as JSON; those that are None are left out."""
    from tensorflow import keras  # flags need no TensorFlow

    content = {}
    for name, thing in objects.items():
        if thing is None:
            continue
        try:
            content[name] = keras.utils.serialize_keras_object(thing)
            json.dumps(content[name])
        except (TypeError, ValueError, NotImplementedError, AttributeError) as error:
            reason = f"Keras cannot save it ({error})"
            remedy = "Give it `get_config`, with the arguments of its constructor"
            raise input_error(f"{name}={type(thing).__name__}", reason, remedy) from error
        parts = [thing, *getattr(thing, "_flatten_layers", lambda **_: ())()]
        know_classes(map(type, parts))
    return json.dumps(_renamed(content, _first_names(content)), sort_keys=True)


def _first_names(config: Any) -> dict[str, str]:
    """Names that Keras made, such as "dense_7" -> what they are in a new process, "dense_1"."""
    counts, names = collections.Counter(), {}
    for part in _parts(config):
        base = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", part["class_name"]).lower()
        name = part["config"].get("name") if isinstance(part["config"], dict) else None
        if name and name not in names and re.fullmatch(rf"{base}(_\d+)?", name):
            names[name] = f"{base}_{counts[base]}" if counts[base] else base
            counts[base] += 1
    return names


def _renamed(config: Any, names: dict[str, str]) -> Any:
    """A configuration with other names: functional models name their layers in several places."""
    if isinstance(config, dict):
        return {key: _renamed(value, names) for key, value in config.items()}
    if isinstance(config, (list, tuple)):
        return [_renamed(value, names) for value in config]
    return names.get(config, config) if isinstance(config, str) else config


def given_object(text: str, name: str) -> Any:
    """The object of a name, made again; None where Python gave none."""
    from tensorflow import keras

    config = json.loads(text or "{}").get(name)
    if config is None:
        return None
    known = dict(_classes)
    for part in _parts(config):
        kind, module = part["class_name"], part.get("module") or "keras"
        registered = part.get("registered_name")
        there = keras.utils.get_registered_object(registered) if registered else None
        if there is None and kind not in known and module.split(".")[0] not in _TRUSTED:
            raise input_error(
                f"{name}={kind}",
                f"the run was given an object of {module}.{kind}, a class that is not known here",
                "Register the class with keras.utils.register_keras_serializable, in a module that"
                " is imported first; commands import what --plugin names",
            )
    with keras.utils.custom_object_scope(known):
        return keras.utils.deserialize_keras_object(config)


def classes_of(text: str) -> list[type]:
    """The classes of objects, as far as they are known here and not TensorFlow's or ours."""
    from tensorflow import keras

    found = (
        _classes.get(part["class_name"])
        or keras.utils.get_registered_object(part.get("registered_name") or "")
        for part in _parts(json.loads(text or "{}"))
    )
    return [kind for kind in found if kind and kind.__module__.split(".")[0] not in _TRUSTED]


def know_classes(classes: Iterable[type]) -> None:
    """Lets `given_object` make objects of these classes."""
    _classes.update((kind.__name__, kind) for kind in classes)


def _parts(config: Any) -> Iterator[dict]:
    """The configuration of each object in a configuration, the outer ones first."""
    if isinstance(config, dict):
        if "class_name" in config and "config" in config:
            yield config
        config = list(config.values())
    if isinstance(config, (list, tuple)):
        for part in config:
            yield from _parts(part)
