"""Keywords of `train` as settings: their names, types and presets are checked."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Collection, Mapping
from typing import Any

from tf_smoothclir.settings.base import kind_of, typed
from tf_smoothclir.settings.presets import PRESETS, preset_settings
from tf_smoothclir.settings.run import RunSettings, all_groups
from tf_smoothclir.training.initial_run import settings_to_begin_with
from tf_smoothclir.utils.errors import input_error

# Of `train`, `tune` and `HyperModel`, besides settings.
_ARGUMENTS = (
    *("data", "queries", "documents", "judgments", "clicks", "pairs", "parallel", "splits"),
    "preset",
    *(
        "output_dir",
        "overwrite",
        "progress",
        "query_tower",
        "document_tower",
        "callbacks",
        "tokenizer",
        "max_trials",
        "folds",
    ),
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
    values = {name: _typed(name, fields[name], value) for name, value in given.items()}
    if preset and preset not in PRESETS:
        _unknown(f"preset={preset!r}", "there is no such preset", PRESETS, near=preset)
    return preset_settings(preset, values, begin_with=settings_to_begin_with, **beside)


def _unknown(place: str, reason: str, known: Collection[str], near: str = "") -> None:
    found = difflib.get_close_matches(near or place, list(known), n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(found)}? " if found else ""
    listed = "Presets are " if near else "Settings have the names of the flags: "
    shown = ", ".join(known) if near else "smoothclir-train --help lists them"
    raise input_error(place, reason, f"{hint}{listed}{shown}")


def _typed(name: str, field: dataclasses.Field, value: Any) -> Any:
    """A value in the type of its setting; no text in place of a number."""
    if isinstance(value, Mapping) and name == "columns":
        value = ",".join(f"{column}={own}" for column, own in value.items())
    try:
        if isinstance(value, (str, bytes)) and not isinstance(field.default, str):
            raise TypeError
        return typed(field, value)
    except (TypeError, ValueError):
        example = f", such as {name}={field.default!r}" if field.default not in ("", ()) else ""
        reason = f"it is a {type(value).__name__}"
        raise input_error(f"{name}={value!r}", reason, f"Give {kind_of(field)}{example}") from None
