"""Batches of items that take bounded memory, and threads that keep their order."""

import collections
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures

TEXTS_PER_BATCH = 4096
CHARACTERS_PER_BATCH = 1 << 21


def in_batches(items: Iterable, size: int) -> Iterator[list]:
    """Yields lists of up to `size` items."""
    items = iter(items)
    while batch := list(itertools.islice(items, size)):
        yield batch


def text_batches(
    items: Iterable, *, size: int | None = None, text: Callable = lambda item: item
) -> Iterator[list]:
    """Yields lists of items; a batch ends early when its texts reach `CHARACTERS_PER_BATCH`."""
    batch, characters, size = [], 0, size or TEXTS_PER_BATCH
    for item in items:
        batch.append(item)
        characters += len(text(item))
        if len(batch) == size or characters >= CHARACTERS_PER_BATCH:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


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
