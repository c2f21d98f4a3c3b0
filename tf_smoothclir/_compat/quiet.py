"""Silences TensorFlow while it is imported, and where several models are loaded.

TensorFlow 2.21 writes to standard error before it reads TF_CPP_MIN_LOG_LEVEL; earlier releases do
not. It warns of retracing where several models are loaded, each with graphs.
"""

import contextlib
import functools
import logging
import os
import sys
from collections.abc import Iterator

from tf_smoothclir.utils.import_hooks import around_import
from tf_smoothclir.utils.printing import standard_error_in


@functools.cache  # it acts once
def hush_tensorflow() -> None:
    """Silences TensorFlow and its first import, unless TF_CPP_MIN_LOG_LEVEL says otherwise."""
    # It does not import TensorFlow, which takes seconds and is not always needed.
    if "tensorflow" in sys.modules:  # which has read the variable
        return
    if os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3") != "0":
        around_import("tensorflow", _hushed)


def _hushed() -> contextlib.AbstractContextManager:
    from tf_smoothclir._compat import ON_KERAS_3  # here, because searches need none of it

    return standard_error_in(os.devnull) if ON_KERAS_3 else contextlib.nullcontext()


_RETRACING = "triggered tf.function retracing"


@contextlib.contextmanager
def without_retracing_warnings() -> Iterator[None]:
    """Drops TensorFlow's warnings of retracing inside the context, and nothing else."""
    logger = logging.getLogger("tensorflow")
    logger.addFilter(_is_other)
    try:
        yield
    finally:
        logger.removeFilter(_is_other)


def _is_other(record: logging.LogRecord) -> bool:
    return _RETRACING not in str(record.msg)
