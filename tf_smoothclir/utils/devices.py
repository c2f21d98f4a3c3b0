"""What graphs are traced for."""

from __future__ import annotations

import tensorflow as tf


def has_gpu() -> bool:
    """Returns whether this process may compute on a GPU."""
    return bool(tf.config.list_logical_devices("GPU"))
