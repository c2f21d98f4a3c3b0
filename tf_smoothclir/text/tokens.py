"""The forms in which the tokens of texts reach a tower."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import tensorflow as tf

from tf_smoothclir.text.vocabulary import PADDING_ID


class Tokens(NamedTuple):
    """The tokens of some texts, one text after the other, without padding.

    Attributes:
        ids: `[tokens]` int.
        lengths: `[texts]` int, the number of tokens of each text.
        texts: `[tokens]` int, ascending, the text of each token.
    """

    ids: tf.Tensor
    lengths: tf.Tensor
    texts: tf.Tensor

    @classmethod
    def of(cls, ids: tf.Tensor, lengths: tf.Tensor) -> Tokens:
        """Finds the text of each token."""
        return cls(ids, lengths, tf.repeat(tf.range(tf.size(lengths)), lengths))


class DistinctTokens(NamedTuple):
    """Tokens of texts, with each different id once.

    Attributes:
        distinct: `[distinct]` int, each different id.
        positions: `[tokens]` int, the place of each token's id in `distinct`.
        lengths: As in `Tokens`.
        texts: As in `Tokens`.
    """

    distinct: tf.Tensor
    positions: tf.Tensor
    lengths: tf.Tensor
    texts: tf.Tensor

    @classmethod
    def of(cls, tokens: Tokens) -> DistinctTokens:
        """Finds the different ids."""
        return cls(*tf.unique(tokens.ids), tokens.lengths, tokens.texts)

    @property
    def ids(self) -> tf.Tensor:
        """The id of each token, `[tokens]` int."""
        return tf.gather(self.distinct, self.positions)


class SubwordTokens(NamedTuple):
    """Tokens of texts, with the character n-grams of each different word.

    Attributes:
        distinct: As in `DistinctTokens`.
        positions: As in `DistinctTokens`.
        lengths: As in `Tokens`.
        texts: As in `Tokens`.
        ngrams: The n-grams of the words in `distinct`; each word is a "text" of them.
    """

    distinct: tf.Tensor
    positions: tf.Tensor
    lengths: tf.Tensor
    texts: tf.Tensor
    ngrams: Tokens | DistinctTokens

    ids = DistinctTokens.ids


def flat_tokens(given) -> Tokens | DistinctTokens | SubwordTokens:
    """Returns the tokens of texts, one text after the other.

    Args:
        given: One of these types; `{"ids": [tokens] int, "lengths": [texts] int}`; ragged ids,
            `[texts, (tokens)]`; or padded ids, `[texts, length]`, where 0 is padding, in any place.
            Padded ids may be floats, which is what Keras 3 makes of them on their way into a
            `Sequential`.
    """
    if isinstance(given, (Tokens, DistinctTokens, SubwordTokens)):
        return given
    if isinstance(given, Mapping):
        return Tokens.of(given["ids"], given["lengths"])
    if isinstance(given, tf.RaggedTensor):
        return Tokens.of(given.flat_values, tf.cast(given.row_lengths(), tf.int32))
    # Padded: the real ids of each row, in order.
    real = tf.not_equal(given, PADDING_ID)
    lengths = tf.reduce_sum(tf.cast(real, tf.int32), axis=-1)
    ids = tf.boolean_mask(given, real)
    return Tokens.of(ids if ids.dtype.is_integer else tf.cast(ids, tf.int32), lengths)


def distinct_tokens(given) -> DistinctTokens | SubwordTokens:
    """Returns the tokens of texts, as `flat_tokens` does, with each different id once."""
    tokens = flat_tokens(given)
    return DistinctTokens.of(tokens) if isinstance(tokens, Tokens) else tokens
