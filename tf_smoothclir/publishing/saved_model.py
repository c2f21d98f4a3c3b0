"""Writing the parts of an export as SavedModels."""

import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf


def write_saved_model(
    part: tf.Module, path: str | os.PathLike, functions: Mapping[str, Any] | None = None
) -> None:
    """Writes the signatures of a part, further functions, and what they read."""
    # Of a module, TensorFlow would save each function of it and of its parts, and trace each once
    # more. So what is saved holds their graphs as they are, and nothing else.
    traced = {name: of.get_concrete_function() for name, of in part.signatures.items()}
    saved = tf.Module(name=part.name)
    saved.read = [*part._flatten(predicate=_is_read)]
    for name, function in (functions or {}).items():
        setattr(saved, name, function.get_concrete_function())
    tf.saved_model.save(saved, os.fspath(path), signatures=traced)


def _is_read(value: Any) -> bool:
    return isinstance(value, (tf.Variable, tf.saved_model.experimental.TrackableResource))
