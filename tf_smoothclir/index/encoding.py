"""Encoding a collection on all cores, into the files of an index."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.index.document_collections import Collection
from tf_smoothclir.index.documents import DOCUMENTS, DocumentStore, DocumentWriter
from tf_smoothclir.index.halves import Half
from tf_smoothclir.text.batches import text_batches
from tf_smoothclir.utils.parallel import map_in_threads
from tf_smoothclir.utils.progress import progress_bar

_TEXTS_PER_CALL = 1024

Encode = Callable[..., dict]


def encode_collection(
    collection: Collection, halves: Sequence[Half], directory: Path
) -> DocumentStore:
    """Writes `documents/` and, in a directory of its own, what each half makes of the texts."""

    def encoded(batch: Sequence[Text]) -> tuple[Sequence[Text], list]:
        return batch, [half.encode(batch) for half in halves]

    text = operator.attrgetter("text")
    batches = text_batches(collection.documents(), size=_TEXTS_PER_CALL, text=text)
    with contextlib.ExitStack() as stack:
        bar = stack.enter_context(progress_bar(None, "Encode the collection", "documents"))
        writer = stack.enter_context(DocumentWriter(directory / DOCUMENTS))
        of_halves = [stack.enter_context(half.writer(directory / half.name)) for half in halves]
        for batch, rows in map_in_threads(encoded, batches):
            writer.add(batch)
            for of_half, of_batch in zip(of_halves, rows):
                of_half.add(of_batch)
            bar.update(len(batch))
    return DocumentStore(directory / DOCUMENTS)


def encode_texts(encode: Encode, texts: Sequence[str]) -> np.ndarray:
    """The vectors of texts by a loaded tower, `[texts, dim]` float32."""
    import tensorflow as tf  # here, because searches need it no earlier, if at all

    return encode(text=tf.constant(list(texts), tf.string))["vector"].numpy()
