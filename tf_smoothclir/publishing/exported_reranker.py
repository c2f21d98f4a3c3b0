"""Exported re-rankers: SavedModels from a query and documents, as strings, to scores.

`reranker/<version>` also holds, below `second_stage/`, what searches in this package re-rank with:
the learned arrays, both vocabularies, and the weight of its scores.
"""

import dataclasses
import functools
import os
from pathlib import Path
from typing import Self

import numpy as np
import tensorflow as tf

from tf_smoothclir._compat.keras_api import tf_variable
from tf_smoothclir.data.sources.source import Source
from tf_smoothclir.data.tokenized_set import ROLES, copy_vocabularies
from tf_smoothclir.interaction.inputs import InteractionTexts, padded
from tf_smoothclir.interaction.reranker import ListScorer, Reranker
from tf_smoothclir.protocols.text_search import CutPoints
from tf_smoothclir.publishing.request_bounds import (
    MAX_TOKENS,
    TEXTS_AT_ONCE,
    bounded,
    checked,
    in_pieces,
)
from tf_smoothclir.publishing.saved_model import write_saved_model
from tf_smoothclir.storage.files import read_record, write_json
from tf_smoothclir.storage.folder import digest_as_saved
from tf_smoothclir.text.tokens import TextEncoder, Tokens
from tf_smoothclir.utils.parallel import text_batches

_QUERY_WORDS = 32  # with up to that many, the vectors of the document's words take most memory
DIRECTORY, _MODEL, _VOCABULARY, _STAGE = "second_stage", "model", "vocabulary", "stage.json"


@dataclasses.dataclass(frozen=True)
class StageSettings:
    """Settings of a re-ranker as the second stage of a search."""

    depth: int  # documents of each query that it orders again
    cut_points: CutPoints  # what the sums of both scores say about grades
    pretokenized: bool = False


@dataclasses.dataclass(frozen=True)
class SecondStage:
    """A re-ranker with all that it needs to read texts."""

    reranker: Reranker
    vocabulary_dir: Path  # has `query.txt` and `document.txt`
    settings: StageSettings

    @functools.cached_property
    def encoders(self) -> dict[str, TextEncoder]:
        """Role -> what reads the words of a text that the network reads."""
        choices = self.reranker.choices
        lengths = choices.query_length, choices.document_length
        return {
            role: TextEncoder(
                self.vocabulary_dir / f"{role}.txt", length, self.settings.pretokenized
            )
            for role, length in zip(ROLES, lengths)
        }

    def scorer(self, source: Source) -> ListScorer:
        """Scorer of candidate lists of a set, by rows."""
        ids = []
        for role, texts in zip(ROLES, (source.queries, source.documents)):
            batches = map(tf.constant, text_batches(text.text for text in texts()))
            read = [(tokens.ids, tokens.lengths) for tokens in map(self.encoders[role], batches)]
            ids.append(padded(*map(np.concatenate, zip(*read))))
        return self.reranker.scorer(InteractionTexts(*ids))

    def save(self, directory: Path) -> None:
        """Writes a new directory; how long learning took is left out: it determines no score."""
        directory.mkdir()
        self.reranker.chosen(seconds=0.0).save(directory / _MODEL)
        copy_vocabularies(self.vocabulary_dir, directory / _VOCABULARY)
        write_json(directory / _STAGE, dataclasses.asdict(self.settings))

    @classmethod
    def load(cls, directory: Path) -> Self:
        """Reads what `save` wrote."""
        settings = read_record(directory / _STAGE, StageSettings, "Export the run again")
        return cls(Reranker.load(directory / _MODEL), directory / _VOCABULARY, settings)


class ExportedReranker(tf.Module):
    """A re-ranker as a model server loads it.

    `serving_default` takes `query`, `[queries]` string, and `document`, `[documents]` string,
    any bytes, and returns `score`, `[documents]` float32: as many queries as documents, or one
    for all. `pair_id` returns that of the export for each of `text`, and the `weight` of the
    scores beside the first stage's.
    """

    def __init__(self, stage: SecondStage):
        super().__init__(name="reranker")
        self.pair_id = ""
        self._stage = stage
        self._encoders = stage.encoders
        # The network compares each word of a query with each of a document.
        words = stage.reranker.choices
        most = MAX_TOKENS * _QUERY_WORDS // max(_QUERY_WORDS, words.query_length)
        self._pairs_at_once = max(1, min(TEXTS_AT_ONCE, most // words.document_length))
        # In a closure, so that the SavedModel holds the weights but nothing of Keras.
        network = stage.reranker.network
        self._network = lambda *ids: network.call(ids)
        self._variables = [tf_variable(weight) for weight in network.trainable_weights]

    @tf.function(
        autograph=False,
        input_signature=[
            tf.TensorSpec([None], tf.string, "query"),
            tf.TensorSpec([None], tf.string, "document"),
        ],
    )
    def serve(self, query, document):
        """Scores documents."""
        sizes = [tf.size(query), tf.size(document)]
        fits = (sizes[0] == sizes[1]) | (sizes[0] == 1)
        message = "query must have one row, or as many as document."
        query, document = checked(query, (fits, message)), bounded(document, 1)
        return in_pieces(self._scores, query, document, at_once=self._pairs_at_once)

    def _scores(self, query, document) -> dict[str, tf.Tensor]:
        queries = _padded(self._encoders["query"](query))
        documents = _padded(self._encoders["document"](document))
        queries = tf.broadcast_to(queries, [tf.size(document), tf.shape(queries)[1]])
        return {"score": self._network(queries, documents)}

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def serve_pair_id(self, text):
        """Pair id of the export, once per text."""
        text = bounded(text, 1)
        weight = np.float32(self._stage.reranker.weight)
        return {
            "pair_id": tf.fill(tf.shape(text), self.pair_id),
            "weight": tf.fill(tf.shape(text), weight),
        }

    @property
    def signatures(self) -> dict:
        """Signature name -> function."""
        return {"serving_default": self.serve, "pair_id": self.serve_pair_id}

    def digest(self) -> str:
        """A digest of everything that determines the scores."""
        return digest_as_saved(self._stage.save)

    def save(self, path: str | os.PathLike) -> None:
        """Writes the SavedModel and what searches here read."""
        write_saved_model(self, path)
        self._stage.save(Path(path, DIRECTORY))


def _padded(tokens: Tokens) -> tf.Tensor:
    """`[texts, longest]` ids; at least one column, of padding."""
    ragged = tf.RaggedTensor.from_row_lengths(
        tokens.ids, tf.cast(tokens.lengths, tf.int64), validate=False
    )
    return tf.pad(ragged.to_tensor(0), [[0, 0], [0, 1]])
