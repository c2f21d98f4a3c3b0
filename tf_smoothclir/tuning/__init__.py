"""Hyperparameter search with keras-tuner, resumable and over several workers."""

from tf_smoothclir._compat.quiet import hush_tensorflow

hush_tensorflow()  # a tuner worker's process has not, before keras-tuner loads TensorFlow
