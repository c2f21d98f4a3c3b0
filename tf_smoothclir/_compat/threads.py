"""How many threads TensorFlow should compute an operation with."""

from tf_smoothclir._compat import ON_KERAS_3


def threads_of_short_operations(cores: int) -> int:
    """Returns how many threads are best where a step is many short operations.

    Two of them beside each other keep two cores busy. More threads within each only take turns
    then, with TensorFlow 2.21 about 50 times a step instead of 15. The kernels of 2.15 gain more by
    them than that costs.
    """
    return 1 if ON_KERAS_3 and cores == 2 else cores
