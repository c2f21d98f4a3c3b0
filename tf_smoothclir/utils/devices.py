"""Devices that graphs are traced for."""

from __future__ import annotations

import tensorflow as tf


def has_gpu() -> bool:
    """Whether TensorFlow may use a GPU in this process."""
    return bool(tf.config.list_logical_devices("GPU"))
