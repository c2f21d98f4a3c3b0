"""Batches of texts that take bounded memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

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
