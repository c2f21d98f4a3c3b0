"""JSON objects as frozen dataclasses: every value has the type that its field declares."""

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

_T = TypeVar("_T")
_JSON_NAMES = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a string",
    dict: "an object",
    list: "a list",
}


def record_from_json(kind: type[_T], value: Any) -> _T:
    """A dataclass made from a JSON object; keys that no field has are ignored, defaults fill in."""
    # Fields may be `bool`, `int`, `float`, `str`, `dict`, `dict[str, X]`, `tuple[X, ...]`, another
    # dataclass, `Any`, or `X | None` of these. `dataclasses.asdict` is the way back.
    return _read(kind, value, "")


def _read(kind, value, name: str):
    if kind is Any:
        return value
    container, arguments = typing.get_origin(kind) or kind, typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        return _read_record(kind, _checked(dict, value, name), name)
    if container is types.UnionType:  # X | None
        return None if value is None else _read(arguments[0], value, name)
    if container is tuple:
        items = _checked(list, value, name)
        return tuple(_read(arguments[0], item, f"{name}[{i}]") for i, item in enumerate(items))
    if container is dict and arguments:
        entries = _checked(dict, value, name).items()
        return {key: _read(arguments[1], entry, f"{name}.{key}") for key, entry in entries}
    return _checked(container, value, name)


def _read_record(kind, values: Mapping, name: str):
    hints, read = typing.get_type_hints(kind), {}
    for field in dataclasses.fields(kind):
        path = f"{name}.{field.name}" if name else field.name
        if field.name in values:
            read[field.name] = _read(hints[field.name], values[field.name], path)
        elif field.default is field.default_factory is dataclasses.MISSING:
            raise ValueError(f"{path} is missing")
    return kind(**read)


def _checked(kind: type, value, name: str):
    accepted = (int, float) if kind is float else kind
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        shown = repr(value)
        shown = shown if len(shown) <= 40 else f"{shown[:40]}..."
        raise ValueError(f"{name or 'the content'} must be {_JSON_NAMES[kind]}, not {shown}")
    return value
