"""Normalisation and tokenisation, once, as core TensorFlow string ops.

The same graph runs in data preparation, in training and inside the exported towers, so a text has
the same tokens everywhere, and a stock model server needs no custom op.

`docs/languages.md` says which letters are one, and which scripts have tokens of one character.

* A word is a run of letters and marks, a number one of digits: `10kg` is `10 kg`. Every other
  visible character (punctuation, symbols) is a token of its own.
* Tokens of one character, with its marks, find any part of a run. Two neighbours are a token too,
  since most words have two characters, or are told apart by two: `日本人` is `日 日本 本 本人 人`.
  In Thai, Lao, Khmer and Myanmar, a consonant and the vowels, finals and consonants that are
  written around it count as one character (`utils.composition.cluster`).
* White space of any kind, underscores, control characters and zero-width spaces separate tokens.
  Other invisible format characters (joiners, soft hyphens, bidirectional marks, variation
  selectors) are removed, and so is what Arabic and Hebrew texts may leave out: vowel signs, points,
  and the tatweel.
"""

import functools
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from tf_smoothclir.utils import composition

# The classes Z and Cc and the zero-width space, but not the plain space, which stays as it is:
# rewriting a match costs far more than skipping a character.
_SPACE = r"\x{A0}\x{1680}\x{2000}-\x{200B}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\p{Cc}"
_OPTIONAL = (
    r"\x{591}-\x{5BD}\x{5BF}\x{5C1}\x{5C2}\x{5C4}\x{5C5}\x{5C7}"
    r"\x{610}-\x{61A}\x{640}\x{64B}-\x{652}\x{656}-\x{65F}\x{670}\x{6D6}-\x{6DC}\x{6DF}-\x{6E4}"
    r"\x{6E7}\x{6E8}\x{6EA}-\x{6ED}"
)
# Unicode gives these to no character; releases of TensorFlow differ in what n-grams they have.
_NONCHARACTERS = r"\x{FDD0}-\x{FDEF}" + "".join(
    rf"\x{{{plane << 16 | 0xFFFE:X}}}\x{{{plane << 16 | 0xFFFF:X}}}" for plane in range(17)
)
_INVISIBLE = (
    rf"\p{{Cf}}\p{{Co}}\p{{Cs}}\x{{FE00}}-\x{{FE0F}}\x{{E0100}}-\x{{E01EF}}"
    rf"{_OPTIONAL}{_NONCHARACTERS}"
)
# Without the signs of Khmer, Myanmar and Ethiopic that end or separate words and sentences.
_UNSPACED = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\x{30FC}\p{Thai}\p{Lao}\x{1780}-\x{17D3}\x{17D7}\x{17DC}-\x{17F9}"
    r"\x{1000}-\x{1049}\x{104C}-\x{109F}\x{A9E0}-\x{A9FE}\x{AA60}-\x{AA7F}"  # Myanmar
    r"\x{AC00}-\x{D7A3}"  # syllables of Hangul
    r"\p{Tamil}\p{Telugu}\p{Kannada}\p{Malayalam}"
    r"\x{1200}-\x{135A}\x{1380}-\x{138F}\x{2D80}-\x{2DDE}\x{AB01}-\x{AB2E}"  # Ethiopic
)
# A cluster of an unspaced script, a character that is not part of a word, or a number. Nothing is
# captured, so RE2 uses its fast automaton. Invisible characters may stand between marks, and must
# not separate what they stand in.
_SINGLE = composition.cluster(f"[{_UNSPACED}]", r"\p{M}", f"[{_INVISIBLE}]*")
_SINGLE += rf"|[^\p{{L}}\p{{M}}\p{{N}}{_INVISIBLE} ]|[0-9](?:[{_INVISIBLE}]*[0-9])*"
# What each cluster becomes: c is `\1c c c\2`, so neighbours are `\1c c c\2  \1d d d\2`. Without
# what stands between the two they share a token, `\1c c cd d d\2`, and the first and the last one
# of a run have a copy too many. No text has these two characters.
_CLUSTER = composition.cluster(f"[{_UNSPACED}]", r"\p{M}")
_PAIRED = [*composition.AM, (_CLUSTER, "\x01\\0 \\0 \\0\x02"), ("\x02  \x01", "")]
_PAIRED += [("\x01[^ ]+ ", ""), (" [^ ]+\x02", "")]

_SPACES = ("\\x00", "\u200b", "\n")
_FIRST = [(space, " ") for space in _SPACES]
_FIRST += [(f"[{group}]", letter) for group, letter in composition.FOLDED]
_ARABIC = [(f"[{group}]", letter) for group, letter in composition.ARABIC]
_ARABIC_LETTERS = f"[{''.join(group for group, _ in composition.ARABIC)}]"

# No word has that many bytes on average. What follows would take 60 times its memory, for nothing.
_BYTES_PER_TOKEN, _FEWEST_BYTES = 64, 1 << 20


def normalize(texts: tf.Tensor) -> tf.Tensor:
    """`[batch]` UTF-8, lower-cased, with plain spaces, and nothing else, between tokens."""
    # Total: empty and blank texts, NUL bytes, very long texts; bytes that are not UTF-8 become
    # U+FFFD, a token.
    # Every pass reads all texts; those that look for one character take a tenth of the others.
    # `lower` drops everything after a NUL byte, reads sigmas by what stands around them, and each
    # `i` as the locale of the process has it.
    texts = compose(_replaced(texts, _FIRST))
    texts = _of_some(texts, _ARABIC_LETTERS, functools.partial(_replaced, replacements=_ARABIC))
    # Replaces bytes that are not UTF-8, too; no match before begins inside an invalid sequence.
    texts = tf.strings.lower(texts, encoding="utf-8")
    texts = tf.strings.regex_replace(texts, _SINGLE, r" \0 ")
    # The other spaces have plain ones around them by now.
    texts = tf.strings.regex_replace(texts, f"[_{_SPACE}{_INVISIBLE}]+", "")
    return _of_some(texts, f"[{_UNSPACED}]", functools.partial(_replaced, replacements=_PAIRED))


def _of_some(
    texts: tf.Tensor, characters: str, change: Callable[[tf.Tensor], tf.Tensor]
) -> tf.Tensor:
    """Texts, `[batch]` string of any bytes, of which those with some characters are changed."""
    rows = tf.where(tf.strings.regex_full_match(texts, rf"\C*{characters}\C*"))
    return tf.cond(
        tf.size(rows) > 0,
        lambda: tf.tensor_scatter_nd_update(texts, rows, change(tf.gather_nd(texts, rows))),
        lambda: texts,
    )


def _replaced(texts: tf.Tensor, replacements: Sequence[tuple[str, str]]) -> tf.Tensor:
    """Texts after some replacements, one after the other."""
    for characters, text in replacements:
        texts = tf.strings.regex_replace(texts, characters, text)
    return texts


def _with_spaces(texts: tf.Tensor) -> tf.Tensor:
    """Texts with plain spaces for white space of any kind; valid UTF-8."""
    # Bytes that are not UTF-8 first: no match begins inside an invalid sequence.
    texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8")
    return tf.strings.regex_replace(texts, f"[{_SPACE}]", " ")


def compose(texts: tf.Tensor) -> tf.Tensor:
    """Texts, `[batch]` of any bytes, without forms for print, as `composition.compose` has them."""
    # Any bytes, one to compose, any bytes: few texts have one, and only these are taken apart.
    return _of_some(texts, f"[{composition.marks()}]", _composed)


@tf.function(autograph=False, input_signature=[tf.TensorSpec([None], tf.string)])
def _composed(texts: tf.Tensor) -> tf.Tensor:
    """Texts without line ends, composed character by character; a function, as it is saved once."""
    # They are joined to one text whose line ends keep neighbours apart.
    texts = tf.strings.regex_replace(texts, f"[{_INVISIBLE}]+", "")  # they may precede a mark
    texts = tf.strings.regex_replace(texts, composition.DOTTED, r"\1")
    decoded = tf.raw_ops.UnicodeDecode(
        input=tf.strings.reduce_join([texts], axis=1, separator="\n"), input_encoding="UTF-8"
    )
    plain = _without_forms(decoded.char_values)
    codes, _ = tf.while_loop(
        lambda codes, before: tf.size(codes) < before,
        lambda codes, before: (_compose_neighbours(codes), tf.size(codes)),
        (plain, tf.size(plain) + 1),
        shape_invariants=(tf.TensorShape([None]), tf.TensorShape([])),
    )
    joined = tf.strings.unicode_encode(codes, "UTF-8")
    return tf.raw_ops.StringSplitV2(input=joined[tf.newaxis], sep="\n").values


def _without_forms(codes: tf.Tensor) -> tf.Tensor:
    """Code points, `[characters]` int32, with what stands for forms for print in their places."""
    forms = sorted(composition.forms().items())
    ends = np.cumsum([0, *(len(text) for _, text in forms)])
    characters = tf.constant([ord(character) for _, text in forms for character in text])
    keys = tf.constant([code for code, _ in forms])
    place = tf.minimum(tf.searchsorted(keys, codes), len(forms) - 1)
    is_form = tf.gather(keys, place) == codes
    lengths = tf.where(is_form, tf.gather(np.diff(ends).astype(np.int32), place), 1)
    begins = tf.where(is_form, tf.gather(ends[:-1].astype(np.int32), place), 0)
    firsts = tf.repeat(tf.cumsum(lengths, exclusive=True), lengths)
    within = tf.range(tf.reduce_sum(lengths)) - firsts
    from_table = tf.gather(characters, tf.repeat(begins, lengths) + within)
    return tf.where(tf.repeat(is_form, lengths), from_table, tf.repeat(codes, lengths))


def _compose_neighbours(codes: tf.Tensor) -> tf.Tensor:
    """Code points, `[characters]` int32, where each has taken up the one after it if it can."""
    table = sorted(
        (first << 21 | second, both) for (first, second), both in composition.pairs().items()
    )
    keys, values = zip(*table)
    first, second = codes[:-1], codes[1:]
    key = tf.cast(first, tf.int64) * (1 << 21) + tf.cast(second, tf.int64)
    place = tf.minimum(tf.searchsorted(tf.constant(keys, tf.int64), key), len(table) - 1)
    is_pair = tf.gather(tf.constant(keys, tf.int64), place) == key
    both = tf.where(is_pair, tf.gather(tf.constant(values), place), _hangul(first, second))
    both = tf.concat([both, [0]], 0)[: tf.size(codes)]
    taken = tf.concat([[0], both], 0)[: tf.size(codes)]
    return tf.boolean_mask(tf.where(both > 0, both, codes), taken == 0)


def _hangul(first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
    """The syllables of two parts; 0 where there is none."""

    def within(codes, bounds):
        return (codes >= bounds[0]) & (codes < bounds[1])

    leads, vowels, tails = composition.LEADS, composition.VOWELS, composition.TAILS
    size, begin = tails[1] - tails[0] + 1, composition.SYLLABLES[0]
    of_two = (first - leads[0]) * (vowels[1] - vowels[0]) + second - vowels[0]
    is_open = within(first, composition.SYLLABLES) & ((first - begin) % size == 0)
    return tf.where(
        within(first, leads) & within(second, vowels),
        begin + of_two * size,
        tf.where(is_open & within(second, tails), first + second - tails[0] + 1, 0),
    )


def tokenize(texts: tf.Tensor, max_tokens: int, pretokenized: bool = False) -> tf.RaggedTensor:
    """The first `max_tokens` tokens of each text; if it is `pretokenized`, by white space."""
    # Of a text, only 1 MB is read, or 64 bytes for each of these tokens if that is more.
    max_tokens = tf.cast(max_tokens, tf.int64)
    read = tf.maximum(_BYTES_PER_TOKEN * max_tokens, _FEWEST_BYTES)
    texts = tf.strings.substr(texts, tf.constant(0, tf.int64), read)
    # Faster than `tf.strings.split`, which looks for other white space too.
    texts = _with_spaces(texts) if pretokenized else normalize(texts)
    split = tf.raw_ops.StringSplit(input=texts, delimiter=" ", skip_empty=True)
    rows, places = split.indices[:, 0], split.indices[:, 1]

    def cut():
        kept = places < max_tokens
        return tf.boolean_mask(split.values, kept), tf.boolean_mask(rows, kept)

    # Copying strings takes a tenth of all the time of encoding, and few batches have long texts.
    is_short = split.shape[1] <= max_tokens  # the longest of them
    tokens, rows = tf.cond(is_short, lambda: (split.values, rows), cut)
    return tf.RaggedTensor.from_value_rowids(
        tokens, rows, nrows=tf.size(texts, tf.int64), validate=False
    )
