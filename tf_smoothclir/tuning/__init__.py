"""Search of settings with keras-tuner, resumable and over several workers."""

from tf_smoothclir._compat.quiet import load_tensorflow

load_tensorflow()  # in a worker's process nobody has, and keras-tuner would do it aloud
