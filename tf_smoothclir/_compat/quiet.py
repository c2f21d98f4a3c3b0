"""Loading TensorFlow without what TensorFlow 2.21 says while it is loaded.

It writes some lines to standard error before it reads TF_CPP_MIN_LOG_LEVEL, which earlier releases
heeded.
"""

import functools
import importlib.abc
import importlib.util
import os
import sys

from tf_smoothclir._compat import ON_KERAS_3
from tf_smoothclir.files import standard_error_in


def hush_tensorflow() -> None:
    """Has whoever imports it first do so silently; with TF_CPP_MIN_LOG_LEVEL=0 nothing is hidden.

    It is not imported here: that takes seconds, and not all that a command does needs it.
    """
    loaded = "tensorflow" in sys.modules
    if ON_KERAS_3 and not loaded and os.environ.get("TF_CPP_MIN_LOG_LEVEL") != "0":
        sys.meta_path.insert(0, _SilentTensorFlow())


class _SilentTensorFlow(importlib.abc.MetaPathFinder):
    """Finds TensorFlow where Python does, and has it load silently; finds nothing else."""

    def find_spec(self, name, path=None, target=None):
        if name != "tensorflow":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec:
            spec.loader.exec_module = functools.partial(_load_silently, spec.loader.exec_module)
        return spec


def _load_silently(load, module) -> None:
    with standard_error_in(os.devnull):
        load(module)
