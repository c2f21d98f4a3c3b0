"""Keywords of `train` as settings: their names, types and presets are checked."""

import dataclasses
import difflib
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tensorflow import keras

from tf_smoothclir.api.sets import PARTS, Data, check_given_columns, given_set
from tf_smoothclir.data.sources.memory import MemorySource
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import Source
from tf_smoothclir.settings.base import kind_of, typed
from tf_smoothclir.settings.given import objects_text
from tf_smoothclir.settings.presets import PRESETS, changed, preset_settings
from tf_smoothclir.settings.run import RunSettings, all_groups
from tf_smoothclir.towers.given import dim_of
from tf_smoothclir.training.evaluated_sets import needs_table_alone, with_grades_of_set
from tf_smoothclir.training.initial_run import settings_to_begin_with
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.paths import local_path

# Of `train`, `tune` and `HyperModel`, besides settings.
_ARGUMENTS = (
    *("data", *PARTS, "preset", "output_dir", "overwrite", "progress", "query_tower"),
    *("document_tower", "callbacks", "tokenizer", "max_trials", "folds"),
)


def run_settings(preset: str, given: Mapping[str, Any], **others: Any) -> RunSettings:
    """The settings that keywords give; what they leave out is as in the preset."""
    groups = all_groups().values()  # those of registered plug-ins too
    fields = {field.name: field for group in groups for field in dataclasses.fields(group)}
    for name in given:
        if name not in fields:
            _unknown(name, "there is no such setting", {*fields, *_ARGUMENTS})
    values = {name: _typed(name, fields[name], value) for name, value in given.items()}
    if preset and preset not in PRESETS:
        _unknown(f"preset={preset!r}", "there is no such preset", PRESETS, near=preset)
    return preset_settings(preset, values, begin_with=settings_to_begin_with, **others)


def _unknown(place: str, reason: str, known: Collection[str], near: str = "") -> None:
    similar = difflib.get_close_matches(near or place, list(known), n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(similar)}? " if similar else ""
    listed = "Presets are " if near else "Settings have the names of the flags: "
    shown = ", ".join(known) if near else "smoothclir-train --help lists them"
    raise input_error(place, reason, f"{hint}{listed}{shown}")


def _typed(name: str, field: dataclasses.Field, value: Any) -> Any:
    """A value in the type of its setting; no text in place of a number."""
    if isinstance(value, Mapping) and name == "columns":
        value = ",".join(
            f"{column}={header}"
            for column, headers in value.items()
            for header in ([headers] if isinstance(headers, str) else headers)
        )
    try:
        if isinstance(value, (str, bytes, Iterator)) and not isinstance(field.default, str):
            raise TypeError  # a call may read it twice: an iterator would be empty then
        return typed(field, value)
    except (TypeError, ValueError):
        example = f", such as {name}={field.default!r}" if field.default not in ("", ()) else ""
        reason = f"it is a {type(value).__name__}"
        raise input_error(f"{name}={value!r}", reason, f"Give {kind_of(field)}{example}") from None


def settings_with_data(
    where: str,
    data: Data | None,
    preset: str,
    keywords: Mapping[str, Any],
    output_dir: Path,
    overwrite: bool = False,
    check: Callable[[RunSettings], object] = bool,
    **others: Any,
) -> tuple[RunSettings, MemorySource | None]:
    """The settings of a training or search, and its set if that is in memory."""
    # `keywords` are all that `train` takes. `check` may refuse the settings before data are read.
    given = with_objects(where, keywords)
    tokenizer = given.pop("tokenizer", None)
    if tokenizer is not None:
        given["pretokenized"] = True
    parts = {name: given.pop(name, None) for name in PARTS}
    is_set = data is not None or any(part is not None for part in parts.values())
    of_set: dict[str, Any] = {"parallel": ""} if is_set else {}  # not that of `init_from`
    if isinstance(data, (str, os.PathLike)):
        of_set["data_dir"] = os.path.abspath(local_path(data))
    if isinstance(parts["parallel"], (str, os.PathLike)):
        paths = os.fspath(parts["parallel"]).split(",")
        of_set["parallel"] = ",".join(os.path.abspath(local_path(path)) for path in paths)
        if parts["documents"] is None:  # else they are a set together
            del parts["parallel"]
    chosen = run_settings(preset, given, **others)
    check(chosen)
    of_call = dataclasses.replace(chosen.data, **of_set)
    if given.get("columns"):
        check_given_columns(data, parts, of_call)
    if (in_memory := given_set(where, data, parts, of_call, tokenizer)) is not None:
        of_set["data_dir"] = os.path.abspath(RunDirectory(output_dir).data)
        of_set["parallel"] = ",".join(map(str, in_memory.parallel_files))
    if "data_dir" in of_set:
        named = [name for name in ("data_dir", "tfds_name", "ir_dataset") if given.get(name)]
        if named:
            reason = "queries, documents and judgments, or data, are given too"
            raise input_error(f"{where}: {named[0]}", reason, "Leave one of the two out")
    source: Source | None = in_memory
    if source is None and data is not None and os.path.exists(of_call.data_dir):
        source = source_of(of_call)
    if source is not None and needs_table_alone(source, preset, given):
        chosen = run_settings("lexical", given, **others)
    chosen = changed(chosen, of_set, **others)
    if not {"thresholds", "init_from"} & given.keys() and chosen.training.distribution == "none":
        chosen = with_grades_of_set(chosen, output_dir, overwrite=overwrite, in_memory=in_memory)
    return chosen, in_memory


def with_objects(where: str, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of a call, with objects replaced by the settings that stand for them."""
    settings = dict(keywords)
    towers = {name: settings.pop(name, None) for name in ("query_tower", "document_tower")}
    layers = {name: tower for name, tower in towers.items() if tower is not None}
    loss = settings.get("loss")
    if isinstance(loss, type) and issubclass(loss, keras.losses.Loss):
        raise input_error(f"{where}: loss", "it is a class", f"Give an object: {loss.__name__}()")
    if isinstance(loss, keras.losses.Loss):
        settings["loss"] = "given"
        for name in {*getattr(loss, "settings", ())} & settings.keys():
            if not np.array_equal(settings[name], own := getattr(loss, name)):
                reason = f"the loss that is given has {own}"
                raise input_error(f"{where}: {name}", reason, "Leave one of the two out")
    else:
        loss = None
    for name, tower in layers.items():
        if not isinstance(tower, keras.layers.Layer):
            kind = type(tower).__name__
            raise input_error(f"{where}: {name}", f"it is a {kind}", "Give a Keras layer")
    if layers:
        if "tower" in settings:
            reason = "towers are given as objects too"
            raise input_error(f"{where}: tower", reason, "Leave one of the two out")
        settings |= {"tower": "given", "dim": _common_dim(where, layers, settings)}
    if loss is not None or layers:
        settings["objects"] = objects_text(loss=loss, **layers)
    return settings


def _common_dim(
    where: str, layers: Mapping[str, keras.layers.Layer], settings: Mapping[str, Any]
) -> int:
    """The length of the vectors of both towers."""
    dims = {name: dim_of(layer, f"{where}: {name}") for name, layer in layers.items()}
    if "dim" in settings:
        dims["dim"] = settings["dim"]
    if len(set(dims.values())) > 1:
        shown = ", ".join(f"{name}: {dim}" for name, dim in dims.items())
        reason = f"vectors have different lengths ({shown})"
        raise input_error(where, reason, "Give both towers the same number of outputs")
    return next(iter(dims.values()))
