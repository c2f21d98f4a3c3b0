"""Search of settings with keras-tuner, resumable and over several workers."""

from tf_smoothclir._compat.quiet import hush_tensorflow

hush_tensorflow()  # in a worker's process nobody has, and keras-tuner would load it aloud
