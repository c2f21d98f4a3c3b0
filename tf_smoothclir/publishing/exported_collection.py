"""A collection that fits in memory, as a search model holds it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.sources.source import Text, text_read
from tf_smoothclir.lexical.text_reader import DocumentReader
from tf_smoothclir.lexical.words import Words
from tf_smoothclir.publishing.exported_tower import ExportedTower
from tf_smoothclir.text.batches import text_batches
from tf_smoothclir.utils.parallel import map_in_threads
from tf_smoothclir.utils.progress import progress_bar


@dataclasses.dataclass(frozen=True)
class Collection:
    """Documents, sorted by the tie rule: among equal scores, top_k takes the lower place first."""

    ids: list[str]
    # `[documents, dim]` float32, of the document tower; None without towers.
    vectors: np.ndarray | None = None
    words: Words | None = None  # None without a lexical model

    @classmethod
    def of(
        cls, ids: Sequence[str], vectors: np.ndarray | None = None, words: Words | None = None
    ) -> Collection:
        """Sorts documents."""
        order = np.argsort(hash_ids(ids), kind="stable")
        return cls(
            [ids[row] for row in order],
            None if vectors is None else vectors[order],
            None if words is None else words.of(order),
        )

    @classmethod
    def read(
        cls,
        documents: Callable[[], Iterable[Text]],
        number: int,
        tower: ExportedTower | None = None,
        reader: DocumentReader | None = None,
        *,
        titles: bool = False,
    ) -> Collection:
        """Encodes documents and reads their words, with `titles` those of titles too."""
        ids = [document.id for document in documents()]
        vectors = words = None

        def texts(what: str, *, titles: bool = False) -> Iterator[str]:
            with progress_bar(number, what, "documents") as bar:
                for document in documents():
                    yield text_read(document, titles=titles)
                    bar.update(1)

        if tower is not None:
            vectors = _encoded(tower, texts("Encode the collection"))
        if reader is not None:
            words = reader.words(texts("Read the words of the collection", titles=titles))
            if titles:
                of_titles = reader.words(document.title for document in documents())
                words = words.after_titles(np.diff(of_titles.offsets))
        return cls.of(ids, vectors, words)


def _encoded(tower: ExportedTower, texts: Iterable[str]) -> np.ndarray:
    def encoded(batch):
        return tower.serve(tf.constant(batch, tf.string))["vector"].numpy()

    return np.concatenate(list(map_in_threads(encoded, text_batches(texts))))
