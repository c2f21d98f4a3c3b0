"""Loading TensorFlow without what TensorFlow 2.21 says while it is loaded.

It writes some lines to standard error before it reads TF_CPP_MIN_LOG_LEVEL, which earlier releases
heeded.
"""

import importlib
import os

from tf_smoothclir._compat import ON_KERAS_3
from tf_smoothclir.files import standard_error_in


def load_tensorflow() -> None:
    """Imports it; with TF_CPP_MIN_LOG_LEVEL=0 nothing is hidden.

    On the stack of Keras 2 it is left to whoever needs it.
    """
    if not ON_KERAS_3 or os.environ.get("TF_CPP_MIN_LOG_LEVEL") == "0":
        return
    with standard_error_in(os.devnull):
        importlib.import_module("tensorflow")
