"""Keras objects among the keywords of `train`, as settings that a run can keep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorflow import keras

from tf_smoothclir.settings.given import objects_text
from tf_smoothclir.towers.given import dim_of
from tf_smoothclir.utils.errors import input_error


def with_objects(
    settings: Mapping[str, Any],
    query_tower: keras.layers.Layer | None,
    document_tower: keras.layers.Layer | None,
) -> dict[str, Any]:
    """Returns the keywords with objects replaced by the settings that stand for them."""
    changed = dict(settings)
    loss = changed.get("loss")
    towers = {"query_tower": query_tower, "document_tower": document_tower}
    if isinstance(loss, keras.losses.Loss):
        changed["loss"] = "given"
    else:
        loss = None
    layers = {name: tower for name, tower in towers.items() if tower is not None}
    for name, tower in layers.items():
        if not isinstance(tower, keras.layers.Layer):
            kind = type(tower).__name__
            raise input_error(f"train: {name}", f"it is a {kind}", "Give a Keras layer")
    if layers:
        if "tower" in changed:
            reason = "towers are given as objects too"
            raise input_error("train: tower", reason, "Leave one of the two out")
        changed["tower"] = "given"
        changed["dim"] = _common_dim(layers, changed)
    if loss is not None or layers:
        changed["objects"] = objects_text(loss=loss, **layers)
    return changed


def _common_dim(layers: Mapping[str, keras.layers.Layer], settings: Mapping[str, Any]) -> int:
    """The length of the vectors of both towers."""
    dims = {name: dim_of(layer, f"train: {name}") for name, layer in layers.items()}
    if "dim" in settings:
        dims["dim"] = settings["dim"]
    if len(set(dims.values())) > 1:
        shown = ", ".join(f"{name}: {dim}" for name, dim in dims.items())
        reason = f"vectors have different lengths ({shown})"
        raise input_error("train", reason, "Give both towers the same number of outputs")
    return next(iter(dims.values()))
