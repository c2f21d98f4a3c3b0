"""Exported towers without TensorFlow. See `Encoder`."""

from tf_smoothclir.encoder.encoder import Encoder

__all__ = ["Encoder"]
