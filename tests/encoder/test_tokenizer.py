"""Tokens and n-grams without TensorFlow: those of the graph, for any text and every character."""

import runpy
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.text.test_tokenizer import tokens
from tf_smoothclir.encoder.tokenizer import (
    _class,
    _lower_case,
    _tables,
    has_letters,
    passage_text,
    tokens_of,
)
from tf_smoothclir.encoder.word_evidence import fingerprints, ngram_buckets
from tf_smoothclir.text.evidence import _WORD
from tf_smoothclir.text.subwords import ngrams
from tf_smoothclir.text.tokenizer import tokenize
from tf_smoothclir.utils.composition import forms

GRAPH = runpy.run_path(str(Path(__file__).parents[2] / ".ci" / "unicode_tables"))
CHARACTERS = GRAPH["CHARACTERS"]
SETTINGS = settings(deadline=None, max_examples=300, derandomize=True)
# Sigmas and what decides about them, unspaced scripts and their marks, joiners, kinds of space,
# letters whose lower case is special.
_TRAPS = (
    "aAbZ09_ΣσςİIıiＩｉßẞﬁﻻ٣๗ｶﾞ\u0307\u064eـ"
    "เกาลั่ຄົ\u0e4d\u0e32ကင\u103a\u1039\u1037ខ\u17d2కட\u0bcd\u0c4dനൻ\u0d4dአ።أىکا\u0654и"
    "中タกำ\u0301\u0345\u200b\u200d\xad.,'’ⓐⒶ\u3099한Ꙁ\0\t\xa0\u3000\x85\ufffd😀K\ufdd0\U0001ffff"
)
# Lead and continuation bytes that almost make characters: overlong, surrogates, too large, cut.
_BYTES = (
    b"aA \0\xc0\xc2\x85\xa0\xc3\xa4\xce\xa3\xe0\xbf\xe4\xb8\xad\xed\xa0\x80\xf0\x9f\xf4\x90\xff"
)
TEXTS = st.one_of(
    *(texts.map(str.encode) for texts in (st.text(_TRAPS, max_size=30), st.text(max_size=20))),
    *(st.lists(st.sampled_from(_BYTES), max_size=16).map(bytes), st.binary(max_size=16)),
)


def tokens_in_graph(texts, pretokenized=False):
    rows = tokenize(tf.constant(texts, tf.string), 1_000_000, pretokenized).to_list()
    return [[token.decode() for token in row] for row in rows]


@given(st.lists(TEXTS, min_size=1, max_size=20))
@SETTINGS
def test_any_bytes_and_chunks_between_spaces_have_the_tokens_of_the_graph(rows):
    texts = [row.decode("utf-8", "replace") for row in rows]
    found = [tokens_of(text) for text in texts]
    assert found == tokens_in_graph(rows)
    assert found == [[one for part in text.split(" ") for one in tokens_of(part)] for text in texts]
    as_they_are = tokens_in_graph(rows, pretokenized=True)
    assert [tokens_of(text, pretokenized=True) for text in texts] == as_they_are


@pytest.mark.parametrize(
    ("text", "title", "passages"),
    [
        ("Ein Haus, das alt ist", "", ["Ein Haus, das", "Haus, das alt ist"]),
        ("日本語です", "", ["日本語", "本語で"]),
        ("alt und neu", "Das Haus", ["alt und", "alt und neu"]),
        ("alt", "", ["alt"]),
    ],
)
def test_passages_are_shown_in_whole_words(text, title, passages):
    assert [passage_text(text, n, 4, title) for n in range(len(passages))] == passages


def test_long_texts():
    text = "Wörter Σ 漢字! " * 20_000
    assert tokens_of(text) == tokens(text)
    assert tokens_of("x" * (1 << 20)) == ["x" * (1 << 20)]
    assert tokens_of("a\ud800b") == ["a", "\ufffd", "b"]


@pytest.mark.parametrize(
    "characters",
    [
        pytest.param(CHARACTERS[:0x3000], id="some"),
        pytest.param(CHARACTERS, id="all", marks=pytest.mark.slow),
    ],
)
def test_the_tables_and_what_is_a_word_are_those_of_the_graph(characters):
    found, lower = GRAPH["classes"](characters)
    codes = set(map(ord, characters))
    for name, members in found.items():
        of_table = {code for range_ in _class(name).ranges for code in range(*range_)}
        assert of_table & codes == set(members), name
    table = {code: text.strip(" ") for code, text in _lower_case().items()}
    assert {code: text for code, text in table.items() if code in codes} == lower
    assert set(_tables()["long_lower"]) == {"df", "1e9e"}
    of_forms = {text: tokens_of(text) for text in map(chr, forms())}
    assert list(of_forms.values()) == tokens_in_graph(list(of_forms))
    tokens = sorted({token for character in characters for token in tokens_of(character)})
    tokens += ["_", "__", "a_", "_\u0301", "\u0301", "x\u0301", "\u4e2d\u0301", "\U0001f600"]
    words = tf.strings.regex_full_match(tokens, _WORD).numpy()
    assert [token for token, word in zip(tokens, words) if has_letters(token) != word] == []


BUCKETS = 2**63 - 1  # almost the whole hash
INVISIBLE = _class("invisible")


def test_hashes_are_those_of_the_graph():
    generator = np.random.default_rng(65)
    texts = [generator.bytes(length) for length in range(65) for _ in range(20)]
    expected = tf.strings.to_hash_bucket_fast(texts, BUCKETS).numpy().astype(np.uint64)
    np.testing.assert_array_equal(fingerprints(texts) % np.uint64(BUCKETS), expected)


# Of what tokens have: of other code points, releases of TensorFlow have other n-grams.
VISIBLE = st.characters(codec="utf-8").filter(lambda character: ord(character) not in INVISIBLE)


@given(
    st.lists(st.text(VISIBLE, min_size=1, max_size=70), max_size=20),
    st.integers(1, 5),
    st.integers(0, 11),
    st.integers(1, 1 << 31 - 1),
)
@SETTINGS
def test_buckets_are_those_of_the_graph(words, shortest, more, buckets):
    found, numbers = ngram_buckets(words, buckets, shortest, shortest + more)
    expected = ngrams(tf.constant(words, tf.string), buckets, shortest, shortest + more)
    np.testing.assert_array_equal(found, expected.flat_values)
    np.testing.assert_array_equal(numbers, expected.row_lengths())
