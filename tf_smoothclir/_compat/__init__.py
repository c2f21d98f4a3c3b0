"""Differences between the two supported stacks.

Up to Python 3.11: TensorFlow 2.15 with Keras 2 and tensorflow-ranking. From Python 3.12: today's
TensorFlow with Keras 3 and keras-rs. The modules here give the rest of the package the same names
with the same meaning on both. Besides them, only kernels in `ops`, which are chosen by speed, ask
which stack they are on.
"""

_FOUND_OUT_WHEN_ASKED = ("ON_KERAS_3",)


def __getattr__(name: str) -> bool:
    if name not in _FOUND_OUT_WHEN_ASKED:
        raise AttributeError(name)
    from importlib import metadata

    globals()[name] = int(metadata.version("keras").split(".")[0]) >= 3  # asked once
    return globals()[name]
