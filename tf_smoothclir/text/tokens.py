"""The forms in which the tokens of texts reach a tower."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf


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
