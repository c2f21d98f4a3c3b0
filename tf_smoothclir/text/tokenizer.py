"""Normalisation and tokenisation, once, as core TensorFlow string ops.

The same graph runs in the data preparation, in the training process and inside the exported towers,
so a text has the same tokens everywhere and a stock model server needs no custom op.

What a token is, for text in any script:

* letters are lower-cased; a word is a run of letters, marks, digits and underscores;
* every other visible character (punctuation, symbols) is a token of its own;
* scripts that are written without spaces (Han, Kana, Thai, Lao, Khmer, Myanmar) give one token per
  character with its marks, so that any part of a run can be found;
* white space of any kind, control characters and zero-width spaces separate; other invisible
  format characters (joiners, soft hyphens, bidirectional marks) vanish.

Core TensorFlow has no Unicode normalisation (NFC, NFKC): composed and decomposed spellings of a
letter are different tokens.
"""

from __future__ import annotations

import tensorflow as tf

_SPACE = r"[\p{Z}\p{Cc}\x{200B}]+"
_INVISIBLE = r"[\p{Cf}\p{Co}\p{Cs}]+"
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
# One character of an unspaced script with its marks, or one that is no part of any word.
_SINGLE = rf"([{_UNSPACED}]\p{{M}}*|[^\p{{L}}\p{{M}}\p{{N}}_ ])"


def normalize(texts: tf.Tensor) -> tf.Tensor:
    """Returns lower-cased texts in which single spaces stand between the tokens.

    Total: empty, blank and invalid UTF-8 texts, NUL bytes and very long texts are all fine. Bytes
    that are not UTF-8 become U+FFFD, a token of its own.

    Args:
        texts: `[batch]` string.

    Returns:
        `[batch]` string, valid UTF-8.
    """
    texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
    # Before `lower`, which drops everything behind a NUL byte.
    texts = tf.strings.regex_replace(texts, _SPACE, " ")
    texts = tf.strings.lower(texts, encoding="utf-8")
    texts = tf.strings.regex_replace(texts, _INVISIBLE, "")
    return tf.strings.regex_replace(texts, _SINGLE, r" \1 ")


def tokenize(texts: tf.Tensor, max_tokens: int) -> tf.RaggedTensor:
    """Splits texts into tokens and keeps the first `max_tokens` of each.

    Args:
        texts: `[batch]` string.
        max_tokens: Longest token list returned; the paper cuts documents at 200.

    Returns:
        `[batch, (tokens)]` string, ragged; a text without a visible character has no token.
    """
    return tf.strings.split(normalize(texts))[:, :max_tokens]
