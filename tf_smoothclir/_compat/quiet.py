"""Loading TensorFlow without what TensorFlow 2.21 says while it is loaded.

It writes some lines to standard error before it reads TF_CPP_MIN_LOG_LEVEL, which earlier releases
heeded.
"""

import importlib
import os

from tf_smoothclir._compat import ON_KERAS_3


def load_tensorflow() -> None:
    """Imports it; with TF_CPP_MIN_LOG_LEVEL=0 nothing is hidden.

    On the stack of Keras 2 it is left to whoever needs it.
    """
    if not ON_KERAS_3 or os.environ.get("TF_CPP_MIN_LOG_LEVEL") == "0":
        return
    error_output = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        importlib.import_module("tensorflow")
    finally:
        os.dup2(error_output, 2)
        os.close(error_output)
        os.close(nowhere)
