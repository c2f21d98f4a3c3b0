"""What differs between the two supported stacks; nothing outside asks which one it is on.

TensorFlow 2.15 with Keras 2 and tensorflow-ranking, on Python up to 3.11; today's TensorFlow with
Keras 3 and keras-rs from Python 3.12 on. `kernels`, `keras_api`, `lists`, `messages`, `quiet`,
`table_sum` and `threads` give the rest of the package the same names with the same meaning on both.
"""

from importlib import metadata

ON_KERAS_3 = int(metadata.version("keras").split(".")[0]) >= 3
