"""Reader of texts as words of the lexical models, in the graph; `words` numbers them.

Evaluation, indexing, search and exported models all read texts with it.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.encoder.word_evidence import NOTHING, SPELLING, WORDS
from tf_smoothclir.lexical.words import NO_WORD, Words
from tf_smoothclir.text.evidence import Evidence, evidence_of
from tf_smoothclir.text.tokens import TextEncoder, Tokens
from tf_smoothclir.text.vocabulary import UNKNOWN_ID
from tf_smoothclir.utils.devices import on_the_cpu
from tf_smoothclir.utils.parallel import map_in_threads, text_batches


class TextReader(tf.Module):
    """Reads queries or documents, by their role."""

    # Documents have ids of their vocabulary. Queries have those of theirs, and after them those of
    # words that only documents have.

    def __init__(
        self,
        vocabulary_dir: str | os.PathLike,
        role: str,
        max_tokens: int,
        pretokenized: bool = False,
    ):
        super().__init__(name=f"{role}_reader")
        self.max_tokens, self.pretokenized = max_tokens, pretokenized
        self._encoders = [
            TextEncoder(Path(vocabulary_dir, f"{name}.txt"), max_tokens, pretokenized)
            for name in ROLES[ROLES.index(role) :]
        ]
        self._sizes = [encoder.size for encoder in self._encoders]
        self.size = sum(self._sizes)

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, texts: tf.Tensor) -> Tokens:
        """Numbers the words of texts, `[batch]` string of any bytes; `NO_WORD` for unknown ones."""
        words = self._encoders[0].words(texts)
        return _tokens(words, self._ids(words))

    def read(self, words: tf.RaggedTensor) -> tuple[Tokens, Evidence]:
        """The ids of words and what is known of them, in a graph."""
        ids = self._ids(words)
        evidence = tf.where(ids < self._sizes[0], WORDS, SPELLING)
        known = tf.where(ids == NO_WORD, NOTHING, evidence)
        return _tokens(words, ids), evidence_of(words, known)

    def words(self, texts: Iterable[str]) -> Words:
        """Reads texts, on all cores."""
        return self._joined(map_in_threads(on_the_cpu(self), map(_strings, text_batches(texts))))

    def batch(self, texts: Sequence[str]) -> Words:
        """Reads a few texts at once, in this thread."""
        return self._joined([self(_strings(texts))])

    def _ids(self, words: tf.RaggedTensor) -> tf.Tensor:
        ids, begin = tf.fill([tf.size(words.flat_values)], NO_WORD), self.size
        for encoder, size in zip(self._encoders[::-1], self._sizes[::-1]):  # the first one counts
            begin -= size
            known = encoder.ids(words.flat_values)
            ids = tf.where(known > UNKNOWN_ID, begin + known, ids)
        return ids

    def _joined(self, batches: Iterable[Tokens]) -> Words:
        ids, lengths = [np.zeros(0, np.int32)], [np.zeros(1, np.int64)]
        for tokens in batches:
            ids.append(tokens.ids.numpy())
            lengths.append(tokens.lengths.numpy())
        return Words(np.concatenate(ids), np.cumsum(np.concatenate(lengths)), self.size)


def _tokens(words: tf.RaggedTensor, ids: tf.Tensor) -> Tokens:
    lengths, texts = words.row_lengths(), words.value_rowids()
    return Tokens(ids, tf.cast(lengths, tf.int32), tf.cast(texts, tf.int32))


def _strings(texts: Sequence[str]) -> tf.Tensor:
    return tf.constant(list(texts), tf.string)
