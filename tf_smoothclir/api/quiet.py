"""Silences warnings of retracing where several models are loaded, each with graphs."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

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
