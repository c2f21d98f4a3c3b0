"""Thread pools that keep the order of their items."""

from __future__ import annotations

import collections
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures

# Bounds memory. In `tokenize_set`, the one thread that numbers the tokens keeps up with no more.
MAX_THREADS = 8


def map_in_threads(function: Callable, items: Iterable) -> Iterator:
    """Yields `function(item)` for each item, in order, computed by up to `MAX_THREADS` threads."""
    # `items` is read in the calling thread, a few ahead. For work that releases Python's global
    # lock.
    threads = min(os.cpu_count() or 1, MAX_THREADS)
    pool = futures.ThreadPoolExecutor(threads)
    pending = collections.deque()
    try:
        for item in items:
            pending.append(pool.submit(function, item))
            if len(pending) > threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
