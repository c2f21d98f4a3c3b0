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

from collections.abc import Iterable, Iterator

import tensorflow as tf

from tf_smoothclir.text.batches import text_batches

# The classes Z and Cc and the zero-width space, without the plain space, which may stay as it is:
# rewriting a match costs far more than passing over a character.
_SPACE = r"[\x{A0}\x{1680}\x{2000}-\x{200B}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\p{Cc}]"
_INVISIBLE = r"[\p{Cf}\p{Co}\p{Cs}]+"
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
# One character of an unspaced script with its marks, or one that is no part of any word. Without a
# group, RE2 needs only its fast automaton.
_SINGLE = rf"[{_UNSPACED}]\p{{M}}*|[^\p{{L}}\p{{M}}\p{{N}}_ ]"


def normalize(texts: tf.Tensor) -> tf.Tensor:
    """Returns lower-cased texts in which plain spaces, and nothing else, stand between the tokens.

    Total: empty, blank and invalid UTF-8 texts, NUL bytes and very long texts are all fine. Bytes
    that are not UTF-8 become U+FFFD, a token of its own.

    Args:
        texts: `[batch]` string.

    Returns:
        `[batch]` string, valid UTF-8.
    """
    # Before `lower`, which drops everything behind a NUL byte. No match begins inside of an invalid
    # sequence, so these may wait for `lower`, which replaces them.
    texts = tf.strings.regex_replace(texts, _SPACE, " ")
    # `lower` asks the locale of the process, and a Turkish one has other ideas of these two.
    texts = tf.strings.regex_replace(texts, "I", "i")
    texts = tf.strings.regex_replace(texts, "\u0130", "i\u0307")
    texts = tf.strings.lower(texts, encoding="utf-8")
    texts = tf.strings.regex_replace(texts, _INVISIBLE, "")
    return tf.strings.regex_replace(texts, _SINGLE, r" \0 ")


def tokenize(texts: tf.Tensor, max_tokens: int) -> tf.RaggedTensor:
    """Splits texts into tokens and keeps the first `max_tokens` of each.

    Args:
        texts: `[batch]` string.
        max_tokens: Longest token list returned; the paper cuts documents at 200.

    Returns:
        `[batch, (tokens)]` string, ragged; a text without a visible character has no token.
    """
    # Faster than `tf.strings.split`, which also looks for white space of other kinds.
    split = tf.raw_ops.StringSplit(input=normalize(texts), delimiter=" ", skip_empty=True)
    tokens = tf.RaggedTensor.from_value_rowids(
        split.values, split.indices[:, 0], nrows=tf.size(texts, tf.int64), validate=False
    )
    return tokens[:, :max_tokens]


def tokenized_lines(texts: Iterable[str], max_tokens: int) -> Iterator[str]:
    """Yields the tokens of each text, joined by single spaces: input for other tools.

    No token contains white space, so splitting at spaces gives the tokens back.

    Args:
        texts: Any texts.
        max_tokens: Longer texts are cut to their first `max_tokens` tokens.
    """
    for batch in text_batches(texts):
        tokens = tokenize(tf.constant(batch, tf.string), max_tokens)
        for line in tf.strings.reduce_join(tokens, axis=1, separator=" ").numpy():
            yield line.decode()
