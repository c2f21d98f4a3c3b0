"""Exported towers: SavedModels from raw strings to smooth-normalised vectors, core ops only."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tensorflow as tf

from tf_smoothclir._compat.keras_api import tf_weights
from tf_smoothclir.encoder.description import Ngrams, TowerDescription, stored_arrays
from tf_smoothclir.encoder.word_evidence import NAMES
from tf_smoothclir.publishing.request_bounds import (
    MAX_TOKENS,
    TEXTS_AT_ONCE,
    bounded,
    checked,
    in_pieces,
)
from tf_smoothclir.publishing.saved_model import write_saved_model
from tf_smoothclir.text.evidence import Evidence, WordEvidence
from tf_smoothclir.text.subwords import SubwordTextEncoder
from tf_smoothclir.text.tokens import TextEncoder
from tf_smoothclir.text.vocabulary import UNKNOWN_ID
from tf_smoothclir.towers.average_pooling import PACE, PART_BEGINS, AveragePoolingTower
from tf_smoothclir.towers.word_table import WordTableTower
from tf_smoothclir.two_tower.similarity import smooth_normalize

_TEXT = tf.TensorSpec([None], tf.string, "text")


class ExportedTower(tf.Module):
    """A tower with its tokeniser and vocabulary, as a model server loads it.

    Two signatures return `vector`, `[batch, dim]` float32:

    * `serving_default` takes `text`, `[batch]` string; any bytes are accepted;
    * `tokens` takes `ids`, `[tokens]` int32, the concatenated ids of all texts (out-of-range ids
      count as unknown), and `lengths`, `[batch]` int32, the number of ids of each text. Negative
      lengths, lengths that do not add up to the number of ids, and more than `MAX_TOKENS` ids,
      counted as if all texts were as long as the longest, are an `InvalidArgumentError`.

    So are, for each signature, requests whose answer would have more than `MAX_ANSWER` numbers.

    A third signature, `pair_id`, returns the `pair_id` of the export once per text of `text`
    (servers refuse a signature without inputs), so that a client can check what belongs together.

    A query tower has a fourth, `evidence`: by what each of `text`, `[batch]` string, is understood
    ("words", "n-grams" or "nothing"), and its `unknown` words, with spaces between them; both
    `[batch]` string. The vector of a text of which nothing is known is not zero: it finds anything.
    So a search needs both, and this signature returns `vector` too: texts are read once.

    The inner product of a query vector and a document vector is their SCS, so any inner-product
    index ranks by SCS.

    A tower that has `token_vectors` also has the function `words`. It is not a signature, but it is
    saved with the model (`tf.saved_model.load(path).words(text)`). It shows what a vector is the
    mean of.
    """

    def __init__(
        self,
        tower: WordTableTower,
        encoder: TextEncoder,
        *,
        epsilon: float,
        name: str,
        evidence: WordEvidence | None = None,
    ):
        """Wraps a trained tower, from tokens to `[batch, dim]`."""
        super().__init__(name=name)
        self.encoder = encoder
        self.evidence = evidence
        if evidence is not None:
            self.serve_evidence = tf.function(
                self._evidence, autograph=False, input_signature=[_TEXT]
            )
        self.pair_id = ""
        self.weights = tf_weights(tower)
        self._epsilon = epsilon
        self._vocabulary_size, self._dim = tower.vocabulary_size, tower.dim
        # The tower takes memory for as many tokens as the longest text has, in each row.
        self._texts_at_once = TEXTS_AT_ONCE
        if tower.pads_texts:
            self._texts_at_once = max(1, min(TEXTS_AT_ONCE, MAX_TOKENS // encoder.max_tokens))
        # In a closure, so that the SavedModel holds the weights but nothing of Keras.
        self._call_tower = _in_place(tower, lambda tokens: tower(tokens))
        self._described = None
        if isinstance(tower, AveragePoolingTower):
            self._described = lambda directory: self._description(tower, directory)
        if tower.has_token_vectors:
            self._token_vectors = _in_place(tower, tower.token_vectors)
            self.words = tf.function(self._words, autograph=False, input_signature=[_TEXT])

    @tf.function(autograph=False, input_signature=[_TEXT])
    def serve(self, text):
        """Encodes raw strings."""
        return in_pieces(
            lambda some: self._vectors(self.encoder(some)),
            bounded(text, self._dim),
            at_once=self._texts_at_once,
        )

    @tf.function(
        autograph=False,
        input_signature=[
            tf.TensorSpec([None], tf.int32, "ids"),
            tf.TensorSpec([None], tf.int32, "lengths"),
        ],
    )
    def serve_tokens(self, ids, lengths):
        """Encodes token ids."""
        wide = tf.concat([tf.cast(lengths, tf.int64), [0]], axis=0)
        fits = tf.reduce_all(lengths >= 0) & (tf.reduce_sum(wide) == tf.size(ids, tf.int64))
        # Checked first: another operation would fail with a vaguer message.
        lengths = checked(
            bounded(lengths, self._dim),
            (fits, "lengths must not be negative, and must add up to the number of ids."),
            (
                tf.reduce_max(wide) * tf.size(lengths, tf.int64) <= MAX_TOKENS,
                f"padded to the longest text, a request may have {MAX_TOKENS} ids; send several.",
            ),
        )
        known = (ids >= 0) & (ids < self._vocabulary_size)
        return self._vectors(self.encoder.complete(tf.where(known, ids, UNKNOWN_ID), lengths))

    @tf.function(autograph=False, input_signature=[_TEXT])
    def serve_pair_id(self, text):
        """The `pair_id`, equal for towers and indexes that belong together."""
        return {"pair_id": tf.fill(tf.shape(bounded(text, 1)), self.pair_id)}

    @property
    def signatures(self) -> dict:
        """Signature name -> function."""
        return {
            "serving_default": self.serve,
            "tokens": self.serve_tokens,
            "pair_id": self.serve_pair_id,
            **({} if self.evidence is None else {"evidence": self.serve_evidence}),
        }

    def digest(self) -> str:
        """A digest of everything that determines the vectors."""
        parts = hashlib.sha256()
        for weight in self.weights:
            parts.update(np.ascontiguousarray(weight))
        text = f"{self.encoder.vocabulary_digest} {self.encoder.max_tokens} {self._epsilon!r}"
        parts.update(text.encode())
        return parts.hexdigest()

    def save(self, path: str) -> None:
        """Writes the SavedModel."""
        write_saved_model(self, path, {"words": self.words} if hasattr(self, "words") else {})
        if self._described is not None:
            self._described(Path(path)).write(Path(path))

    def _words(self, text) -> dict[str, tf.Tensor]:
        """`[tokens]` words of `[batch]` texts, their `[batch]` lengths, `[tokens, dim]` vectors."""
        # The mean of the word vectors, in which weights are, then tanh, then smooth-normalised, is
        # the vector of a text.
        tokens = self.encoder(text)
        return {
            "words": self.encoder.words(text).flat_values,
            "lengths": tokens.lengths,
            "vectors": self._token_vectors(tokens),
        }

    def _description(self, tower: AveragePoolingTower, directory: Path) -> TowerDescription:
        """Description for the encoder without TensorFlow; the SavedModel is written already."""
        variables = {**tower.tables(), **tower.other_arrays()}
        arrays = {name: array.numpy() for name, array in variables.items()}
        (vocabulary,) = (directory / "assets").iterdir()
        ngrams = None
        if isinstance(self.encoder, SubwordTextEncoder):
            ngrams = Ngrams(*self.encoder.ngrams)
        return TowerDescription(
            vocabulary=vocabulary.relative_to(directory).as_posix(),
            max_tokens=self.encoder.max_tokens,
            epsilon=self._epsilon,
            arrays=stored_arrays(directory, arrays),
            part_begins=PART_BEGINS,
            pace=PACE,
            ngrams=ngrams,
            pretokenized=self.encoder.pretokenized,
        )

    def read(self, words: tf.RaggedTensor) -> tuple[tf.Tensor, Evidence]:
        """The vectors of queries and what is known of them, in a graph."""
        return self._vectors(self.encoder.of_words(words))["vector"], self.evidence.of_words(words)

    def _evidence(self, text) -> dict[str, tf.Tensor]:
        return in_pieces(self._read, bounded(text, self._dim), at_once=self._texts_at_once)

    def _read(self, text) -> dict[str, tf.Tensor]:
        vectors, evidence = self.read(self.encoder.words(text))
        names = tf.gather(NAMES, evidence.levels)
        return {"vector": vectors, "evidence": names, "unknown": evidence.unknown}

    def _vectors(self, tokens) -> dict[str, tf.Tensor]:
        return {"vector": smooth_normalize(self._call_tower(tokens), self._epsilon)}


def _in_place(tower: WordTableTower, function: Callable) -> Callable:
    """A function of the tower's tokens, which adds up rows where they lie in the tables."""

    def reading(tokens):
        with tower.reading_in_place():
            return function(tokens)

    return reading
