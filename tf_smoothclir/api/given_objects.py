"""Keras objects among the keywords of `train`, as settings that a run can keep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorflow import keras

from tf_smoothclir.settings.given import objects_text
from tf_smoothclir.towers.given import dim_of
from tf_smoothclir.utils.errors import input_error


def with_objects(where: str, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of a call, with objects replaced by the settings that stand for them."""
    settings = dict(keywords)
    towers = {name: settings.pop(name, None) for name in ("query_tower", "document_tower")}
    layers = {name: tower for name, tower in towers.items() if tower is not None}
    loss = settings.get("loss")
    if isinstance(loss, keras.losses.Loss):
        settings["loss"] = "given"
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
