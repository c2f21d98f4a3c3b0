"""How tf.data runs the pipelines of this package."""

import tensorflow as tf


def without_autotuning() -> tf.data.Options:
    """Returns options with which tf.data keeps to the threads and buffers that it is given.

    Its autotuning, which is on otherwise, looks at a pipeline at times that lie twice as far apart
    each time, up to a minute, and whoever is done with the pipeline waits for the next of them: an
    epoch of three seconds lasted up to five (TensorFlow 2.15, and 2.21 does the same).
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return options
