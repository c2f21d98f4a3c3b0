"""The search model: all that ranks, and a collection, in one SavedModel, for small collections.

A model server that loads it answers a query string with document ids, scores and grades, without a
separate index.
"""

import collections
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Self

import numpy as np
import tensorflow as tf

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.sources.source import Source, Text
from tf_smoothclir.encoder.word_evidence import NAMES, NOTHING
from tf_smoothclir.lexical.feedback import tf_idf
from tf_smoothclir.lexical.new_words import NONE
from tf_smoothclir.lexical.text_reader import TextReader
from tf_smoothclir.lexical.words import Words
from tf_smoothclir.losses.labels import hit_grades
from tf_smoothclir.protocols.text_search import CutPoints
from tf_smoothclir.publishing.exported_head import ExportedHead
from tf_smoothclir.publishing.exported_lexical import LexicalParts
from tf_smoothclir.publishing.exported_scorers import (
    DenseScorer,
    ExportedFeedback,
    FusedScorer,
    LexicalScorer,
    QueriesRead,
)
from tf_smoothclir.publishing.exported_tower import ExportedTower
from tf_smoothclir.publishing.request_bounds import bounded, in_pieces
from tf_smoothclir.publishing.saved_model import write_saved_model
from tf_smoothclir.text.tokenizer import tokenize
from tf_smoothclir.utils.errors import input_error

# Bounds the memory of a request of any size: 16 MB for the scores of a step, and feedback needs a
# few times as much.
_SCORES_PER_STEP = 1 << 22
_MOST_QUERIES_PER_STEP = 64


class VectorsInGraph(NamedTuple):
    """What makes vectors of queries, in the graph, and those of documents."""

    queries: ExportedTower | ExportedHead  # has an `encoder`, and reads the words of queries
    documents: Callable[[Sequence[Text]], np.ndarray]  # `[documents, dim]` float32


class SearchedQueries(tf.Module):
    """Reads queries for a search model, in the graph."""

    def __init__(
        self, encoders: Mapping[str, ExportedTower | ExportedHead], reader: TextReader | None
    ):
        super().__init__(name="queries")
        self._encoders, self._reader = dict(encoders), reader

    def __call__(self, queries: tf.Tensor) -> QueriesRead:
        """Reads queries, `[batch]` string, any bytes."""
        words, vectors = None, {}
        levels = tf.fill([tf.size(queries)], NOTHING)
        encoders = [encoder.encoder for encoder in self._encoders.values()]
        readers = [self._reader, *encoders] if self._reader else encoders
        most = max(reader.max_tokens for reader in readers)
        # Texts are split once, unless a student reads those of a set that was split before.
        ways = {reader.pretokenized for reader in readers}
        tokens = {pretokenized: tokenize(queries, most, pretokenized) for pretokenized in ways}

        def read_by(reader):
            return tokens[reader.pretokenized][:, : reader.max_tokens]

        if self._reader is not None:
            words, known = self._reader.read(read_by(self._reader))
            levels = known.levels
        for name, encoder in self._encoders.items():
            vectors[name], known = encoder.read(read_by(encoder.encoder))
            levels = tf.maximum(levels, known.levels)  # n-grams, where no word is known
        return QueriesRead(words, vectors, levels)


class SearchModel(tf.Module):
    """Exact search, as a model server loads it; consists of core operations.

    From `text`, `[batch]` string, any bytes: `ids`, string, `scores`, float32, and `grades`,
    int32, all `[batch, depth]`, best first, equal scores by a hash of the id; and `evidence`,
    `[batch]` string ("words", "spelling", "n-grams" or "nothing"). Where fewer documents have
    to do with the query, the last ids are empty.
    """

    def __init__(
        self,
        ids: Sequence[str],
        scorer: DenseScorer | LexicalScorer | FusedScorer,
        *,
        cut_points: CutPoints,
        depth: int,
        read: Callable[[tf.Tensor], QueriesRead],
        feedback: Callable[[tf.Tensor], tf.Tensor] | None = None,
    ):
        """`read` reads queries for `scorer`; `feedback` makes scores that rank of its scores."""
        super().__init__(name="search")
        self.pair_id = ""
        self.depth = min(depth, len(ids))
        self.num_documents = len(ids)
        self._ids = tf.Variable(list(ids), trainable=False, dtype=tf.string)
        self._scorer = scorer
        self._read, self._feedback = read, feedback
        self._cut_points = cut_points

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def serve(self, text):
        """Searches the collection."""
        most = max(1, min(_MOST_QUERIES_PER_STEP, _SCORES_PER_STEP // self.num_documents))
        return in_pieces(self._search, bounded(text, 4 * self.depth), at_once=most)

    def _search(self, text) -> dict[str, tf.Tensor]:
        read = self._read(text)
        scores, levels = self._scorer.all_documents(read), read.levels
        if self._feedback is not None:
            scores = self._feedback(scores)
        # A score of zero says nothing: such documents go first, as negative scores may follow them.
        says = (scores != 0) & tf.expand_dims(levels > NOTHING, 1)
        scores, positions = tf.math.top_k(tf.where(says, scores, -np.inf), self.depth)
        is_hit = scores > -np.inf
        levels = tf.where(tf.reduce_any(is_hit, axis=1), levels, NOTHING)
        scores = tf.where(is_hit, scores, 0)
        points = self._cut_points
        of_words = tf.pow(read.known_words(), -points.power)[:, tf.newaxis]
        grades = hit_grades(scores, points.scores, points.shares, of_words)
        return {
            "ids": tf.where(is_hit, tf.gather(self._ids, positions), ""),
            "scores": scores,
            "grades": tf.where(is_hit, grades, 0),
            "evidence": tf.gather(NAMES, levels),
        }

    @property
    def signatures(self) -> dict:
        """Signature name -> function."""
        return {"serving_default": self.serve}

    def save(self, path: str) -> None:
        """Writes the SavedModel."""
        write_saved_model(self, path)


class Collection(NamedTuple):
    """Documents, sorted by the tie rule: among equal scores, top_k takes the lower place first."""

    ids: list[str]
    vectors: Mapping[str, np.ndarray]  # part -> `[documents, dim]` float32
    words: Words | None = None  # None without a lexical model
    new_words: np.ndarray = NONE  # hashes of words that the model does not know

    @classmethod
    def of(
        cls,
        ids: Sequence[str],
        vectors: Mapping[str, np.ndarray],
        words: Words | None = None,
        new_words: np.ndarray = NONE,
    ) -> Self:
        """Sorts documents."""
        order = np.argsort(hash_ids(ids), kind="stable")
        return cls(
            [ids[row] for row in order],
            {part: of_part[order] for part, of_part in vectors.items()},
            None if words is None else words.of(order),
            new_words,
        )

    @classmethod
    def read(
        cls,
        source: Source,
        encoders: Mapping[str, VectorsInGraph],
        lexical: LexicalParts | None = None,
    ) -> Self:
        """Encodes the documents of a source, and reads their words."""
        documents = list(source.documents())
        ids = [document.id for document in documents]
        if len({*ids}) < len(ids):
            id_, _ = collections.Counter(ids).most_common(1)[0]
            reason = f"several documents have the id {id_!r}"
            raise input_error("--collection", reason, "Give each document its own id")
        vectors = {part: encoder.documents(documents) for part, encoder in encoders.items()}
        if lexical is None:
            return cls.of(ids, vectors)
        return cls.of(ids, vectors, *lexical.all_document_words(documents))


def build_search_model(
    collection: Collection,
    encoders: Mapping[str, ExportedTower | ExportedHead],
    lexical: LexicalParts | None,
    *,
    cut_points: CutPoints,
    depth: int,
) -> SearchModel:
    """Combines a collection and what ranks it; `encoders` are those of queries, by part."""
    feedback = None
    if lexical is not None and lexical.feedback:
        known = collection.words.matrix()[:, : lexical.document_reader.size]
        feedback = ExportedFeedback(tf_idf(known), lexical.feedback)
    return SearchModel(
        collection.ids,
        _scorer(collection, lexical),
        cut_points=cut_points,
        depth=depth,
        read=SearchedQueries(encoders, lexical and lexical.reader("query", collection.new_words)),
        feedback=feedback,
    )


def _scorer(
    collection: Collection, lexical: LexicalParts | None
) -> DenseScorer | LexicalScorer | FusedScorer:
    scorers = {part: DenseScorer(part, array) for part, array in collection.vectors.items()}
    if lexical is None:
        (scorer,) = scorers.values()
        return scorer
    if lexical.fusion is None or lexical.fusion.weights["lexical"]:
        scorers["lexical"] = LexicalScorer(lexical, collection.words)
    return scorers["lexical"] if lexical.fusion is None else FusedScorer(lexical.fusion, scorers)
