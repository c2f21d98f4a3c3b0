"""Keywords of `train` as settings: their names, types and presets are checked."""

from __future__ import annotations

import dataclasses
import difflib
import operator
import os
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from tf_smoothclir.settings.base import absolute
from tf_smoothclir.settings.presets import PRESETS, preset_settings
from tf_smoothclir.settings.run import RunSettings, all_groups
from tf_smoothclir.training.initial_run import settings_to_begin_with
from tf_smoothclir.utils.errors import InputError, input_error

# Of `train`, `tune` and `HyperModel`, besides settings.
_ARGUMENTS = (
    *("data", "queries", "documents", "judgments", "splits", "preset", "output_dir", "overwrite"),
    *("progress", "query_tower", "document_tower", "callbacks", "max_trials", "folds"),
)


def setting_fields() -> dict[str, dataclasses.Field]:
    """Name -> field of each setting, those of registered plug-ins too."""
    return {
        field.name: field for group in all_groups().values() for field in dataclasses.fields(group)
    }


def run_settings(preset: str, given: Mapping[str, Any], **beside: Any) -> RunSettings:
    """The settings that keywords give; what they leave out is as in the preset."""
    fields = setting_fields()
    for name in given:
        if name not in fields:
            _unknown(name, "there is no such setting", {*fields, *_ARGUMENTS})
    values = {name: _typed(name, value) for name, value in given.items()}
    if preset and preset not in PRESETS:
        _unknown(f"preset={preset!r}", "there is no such preset", PRESETS, near=preset)
    return preset_settings(preset, values, begin_with=settings_to_begin_with, **beside)


def _unknown(place: str, reason: str, known: Collection[str], near: str = "") -> None:
    found = difflib.get_close_matches(near or place, list(known), n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(found)}? " if found else ""
    listed = "Presets are " if near else "Settings have the names of the flags: "
    shown = ", ".join(known) if near else "smoothclir-train --help lists them"
    raise input_error(place, reason, f"{hint}{listed}{shown}")


def _typed(name: str, value: Any) -> Any:
    """A value in the type of its setting."""
    field = setting_fields()[name]
    default = field.default
    if isinstance(default, bool):
        if isinstance(value, (bool, np.bool_)):
            return bool(value)
        raise _wrong(name, value, "True or False")
    if isinstance(default, tuple):
        return _numbers(name, value, type(default[0]) if default else int)
    if isinstance(default, (int, float)):
        return _number(name, value, type(default))
    if isinstance(value, os.PathLike) and field.metadata["is_path"]:
        value = os.fspath(value)
    if isinstance(value, str):
        return absolute(field, value)
    raise _wrong(name, value, "a string")


def _numbers(name: str, value: Any, kind: type) -> tuple[Any, ...]:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise _wrong(name, value, "a list of numbers")
    return tuple(_number(name, one, kind) for one in value)


def _number(name: str, value: Any, kind: type) -> Any:
    what = "a whole number" if kind is int else "a number"
    if isinstance(value, (str, bytes, bool)):
        raise _wrong(name, value, what)
    try:
        return operator.index(value) if kind is int else float(value)
    except (TypeError, ValueError):
        raise _wrong(name, value, what) from None


def _wrong(name: str, value: object, what: str) -> InputError:
    default = setting_fields()[name].default
    example = f", such as {name}={default!r}" if default not in ("", ()) else ""
    return input_error(
        f"{name}={value!r}", f"it is a {type(value).__name__}", f"Give {what}{example}"
    )
