"""The search model of whatever a run ranks with, over the collection of the run."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.sources.source import Source, Text, text_read
from tf_smoothclir.lexical.feedback import tf_idf
from tf_smoothclir.lexical.text_reader import DocumentReader
from tf_smoothclir.lexical.words import Words
from tf_smoothclir.protocols.cut_points import CutPoints
from tf_smoothclir.publishing.exported_lexical import LexicalParts
from tf_smoothclir.publishing.exported_scorers import (
    DenseScorer,
    ExportedFeedback,
    FusedScorer,
    LexicalScorer,
)
from tf_smoothclir.publishing.exported_tower import ExportedTower
from tf_smoothclir.publishing.search_model import SearchedQueries, SearchModel
from tf_smoothclir.text.batches import text_batches
from tf_smoothclir.utils.errors import input_error
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
        if len({*ids}) < len(ids):
            id_, _ = collections.Counter(ids).most_common(1)[0]
            reason = f"several documents have the id {id_!r}"
            raise input_error("--collection", reason, "Give each document its own id")
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


def search_model_of(
    towers: dict[str, ExportedTower],
    lexical: LexicalParts | None,
    source: Source,
    number: int,
    **options: Any,
) -> SearchModel:
    """Encodes the documents of a source, of which there are so many, for `build_search_model`."""
    reader = lexical and lexical.document_reader
    titles = lexical is not None and lexical.text.reads_titles
    tower = towers.get("document")
    collection = Collection.read(source.documents, number, tower, reader, titles=titles)
    return build_search_model(collection, towers, lexical, **options)


def build_search_model(
    collection: Collection,
    towers: dict[str, ExportedTower],
    lexical: LexicalParts | None,
    *,
    cut_points: CutPoints,
    depth: int,
) -> SearchModel:
    """Combines a collection and what ranks it."""
    feedback = None
    if lexical is not None and lexical.feedback:
        feedback = ExportedFeedback(tf_idf(collection.words.matrix()), lexical.feedback)
    of_vectors = lexical is None or (lexical.fusion is not None and lexical.fusion.weights["dense"])
    return SearchModel(
        collection.ids,
        _scorer(collection, lexical),
        cut_points=cut_points,
        depth=depth,
        read=SearchedQueries(towers["query"] if of_vectors else None, lexical),
        feedback=feedback,
    )


def _scorer(
    collection: Collection, lexical: LexicalParts | None
) -> DenseScorer | LexicalScorer | FusedScorer:
    if lexical is None:
        return DenseScorer(collection.vectors)
    if lexical.fusion is None:
        return LexicalScorer(lexical, collection.words)
    weights = lexical.fusion.weights
    return FusedScorer(
        lexical.fusion,
        LexicalScorer(lexical, collection.words) if weights["lexical"] else None,
        DenseScorer(collection.vectors) if weights["dense"] else None,
    )
