"""Devices that graphs are traced for, and on which operations run."""

import functools
from collections.abc import Callable

import tensorflow as tf


def has_gpu() -> bool:
    """Whether TensorFlow may use a GPU in this process."""
    return bool(tf.config.list_logical_devices("GPU"))


def on_the_cpu(function: Callable) -> Callable:
    """The function with its operations on the CPU, also beside a GPU and in any thread."""
    # For texts: by default TensorFlow puts what belongs to them, such as lengths of rows, on a GPU,
    # and copies it to and fro.

    def placed(*args, **kwargs):
        if not has_gpu():
            return function(*args, **kwargs)
        with tf.device("CPU"):  # of this thread alone
            return function(*args, **kwargs)

    return functools.update_wrapper(placed, function, assigned=("__name__", "__doc__"), updated=())
