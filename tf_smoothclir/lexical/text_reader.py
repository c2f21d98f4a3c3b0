"""Reader of texts as words of the lexical models, in the graph; `words` numbers them.

Evaluation, indexing, search and exported models all read texts with these two readers.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from tf_smoothclir.encoder.word_evidence import NOTHING, SPELLING, WORDS
from tf_smoothclir.lexical.words import NO_WORD, Words
from tf_smoothclir.text.evidence import Evidence, evidence_of
from tf_smoothclir.text.tokens import TextEncoder, Tokens
from tf_smoothclir.text.vocabulary import UNKNOWN_ID
from tf_smoothclir.utils.devices import on_the_cpu
from tf_smoothclir.utils.parallel import map_in_threads, text_batches

_TEXTS = [tf.TensorSpec([None], tf.string)]


class TextReader(tf.Module):
    """Base of both readers."""

    size: int

    def __call__(self, texts: tf.Tensor) -> Tokens:
        """Numbers the words of texts, `[batch]` string of any bytes; `NO_WORD` for unknown ones."""
        raise NotImplementedError

    def words(self, texts: Iterable[str]) -> Words:
        """Reads texts, on all cores."""
        return self._joined(map_in_threads(on_the_cpu(self), map(_strings, text_batches(texts))))

    def batch(self, texts: Sequence[str]) -> Words:
        """Reads a few texts at once, in this thread."""
        return self._joined([self(_strings(texts))])

    def _joined(self, batches: Iterable[Tokens]) -> Words:
        ids, lengths = [np.zeros(0, np.int32)], [np.zeros(1, np.int64)]
        for tokens in batches:
            ids.append(tokens.ids.numpy())
            lengths.append(tokens.lengths.numpy())
        return Words(np.concatenate(ids), np.cumsum(np.concatenate(lengths)), self.size)


class DocumentReader(TextReader):
    """Reads documents: ids of the document vocabulary."""

    def __init__(
        self, vocabulary_dir: str | os.PathLike, max_tokens: int, pretokenized: bool = False
    ):
        super().__init__(name="document_reader")
        self._encoder = TextEncoder(Path(vocabulary_dir, "document.txt"), max_tokens, pretokenized)
        self.size = self._encoder.size

    @tf.function(autograph=False, input_signature=_TEXTS)
    def __call__(self, texts: tf.Tensor) -> Tokens:
        """See `TextReader`."""
        words = self._encoder.words(texts)
        return _tokens(words, _known_ids(self._encoder, words))


class QueryReader(TextReader):
    """Reads queries: ids of the query vocabulary, and of words that only documents have."""

    def __init__(
        self, vocabulary_dir: str | os.PathLike, max_tokens: int, pretokenized: bool = False
    ):
        super().__init__(name="query_reader")
        self.max_tokens, self.pretokenized = max_tokens, pretokenized
        self._own, self._spelled = (
            TextEncoder(Path(vocabulary_dir, f"{role}.txt"), max_tokens, pretokenized)
            for role in ("query", "document")
        )
        self._own_size = self._own.size
        self.size = self._own_size + self._spelled.size

    @tf.function(autograph=False, input_signature=_TEXTS)
    def __call__(self, texts: tf.Tensor) -> Tokens:
        """See `TextReader`."""
        words = self._own.words(texts)
        return _tokens(words, self._ids(words))

    def read(self, words: tf.RaggedTensor) -> tuple[Tokens, Evidence]:
        """The ids of words and what is known of them, in a graph.

        Words that only documents have count by their spelling.
        """
        ids = self._ids(words)
        evidence = tf.where(ids < self._own_size, WORDS, SPELLING)
        known = tf.where(ids == NO_WORD, NOTHING, evidence)
        return _tokens(words, ids), evidence_of(words, known)

    def _ids(self, words: tf.RaggedTensor) -> tf.Tensor:
        known, spelled = (_known_ids(encoder, words) for encoder in (self._own, self._spelled))
        spelled = tf.where(spelled == NO_WORD, NO_WORD, self._own_size + spelled)
        return tf.where(known == NO_WORD, spelled, known)


def _known_ids(encoder: TextEncoder, words: tf.RaggedTensor) -> tf.Tensor:
    ids = encoder.ids(words.flat_values)
    return tf.where(ids > UNKNOWN_ID, ids, NO_WORD)


def _tokens(words: tf.RaggedTensor, ids: tf.Tensor) -> Tokens:
    lengths, texts = words.row_lengths(), words.value_rowids()
    return Tokens(ids, tf.cast(lengths, tf.int32), tf.cast(texts, tf.int32))


def _strings(texts: Sequence[str]) -> tf.Tensor:
    return tf.constant(list(texts), tf.string)
