"""Loading TensorFlow without what TensorFlow 2.21 says while it is loaded.

It writes some lines to standard error before it reads TF_CPP_MIN_LOG_LEVEL, which earlier releases
heeded.
"""

import functools
import os
import sys

from tf_smoothclir._compat import ON_KERAS_3
from tf_smoothclir.utils.files import standard_error_in
from tf_smoothclir.utils.import_hooks import around_import


def hush_tensorflow() -> None:
    """Has whoever imports it first do so silently; with TF_CPP_MIN_LOG_LEVEL=0 nothing is hidden.

    It is not imported here: that takes seconds, and not all that a command does needs it.
    """
    loaded = "tensorflow" in sys.modules
    if ON_KERAS_3 and not loaded and os.environ.get("TF_CPP_MIN_LOG_LEVEL") != "0":
        around_import("tensorflow", functools.partial(standard_error_in, os.devnull))
