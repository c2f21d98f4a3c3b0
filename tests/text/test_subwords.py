"""Character n-grams against fastText's algorithm in plain Python."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tf_smoothclir.text.subwords import MAX_CHARACTERS, ngrams

BUCKETS = 1_000_003  # so many that two n-grams of a test share none


def by_hand(word: str, shortest: int, longest: int) -> list[str]:
    """All substrings of "<word>" of these lengths, by length."""
    marked = f"<{word}>" if word else ""
    return [
        marked[begin : begin + length]
        for length in range(shortest, longest + 1)
        for begin in range(len(marked) - length + 1)
    ]


def hashed(texts, buckets=BUCKETS):
    return tf.strings.to_hash_bucket_fast(tf.constant(texts, tf.string), buckets).numpy().tolist()


WORDS = {
    "latin": "where",
    "one letter": "a",
    "two letters": "ab",
    "umlauts are one character each": "überzüge",
    "cjk": "日本",
    "emoji": "😀x",
    "marks count": "e\u0301te",
    "digits and underscore": "a_1",
    "the marks themselves": "<>",
    "nul": "a\0b",
    "empty": "",
}


@pytest.mark.parametrize(("shortest", "longest"), [(3, 5), (3, 6), (1, 2), (4, 4)])
@pytest.mark.parametrize("word", WORDS.values(), ids=WORDS)
def test_ngrams_are_those_of_fasttext(word, shortest, longest):
    found = ngrams(tf.constant([word]), BUCKETS, shortest, longest)
    assert found.dtype == tf.int32
    assert found.to_list() == [hashed(by_hand(word, shortest, longest))]


def test_beginning_and_end_of_a_word_differ_from_its_middle():
    assert by_hand("where", 3, 3) == ["<wh", "whe", "her", "ere", "re>"]  # of the paper
    her, where = ngrams(tf.constant(["her", "where"]), BUCKETS, 3, 3).to_list()
    assert set(her) & set(where) == {*hashed(["her"])}  # of which "<her>" is no part


def test_words_of_a_batch_do_not_mix():
    words = list(WORDS.values())
    alone = [ngrams(tf.constant([word]), BUCKETS, 3, 5).to_list()[0] for word in words]
    assert ngrams(tf.constant(words), BUCKETS, 3, 5).to_list() == alone


def test_no_word_is_no_row():
    assert ngrams(tf.constant([], tf.string), 10, 3, 5).to_list() == []


@pytest.mark.parametrize("word", ["", "a"])
def test_a_word_too_short_for_any_has_none(word):
    assert ngrams(tf.constant([word]), BUCKETS, 4, 6).to_list() == [[]]


@pytest.mark.parametrize("letter", ["x", "ü", "日", "😀"])
def test_only_the_first_characters_of_a_very_long_word_count(letter):
    found = ngrams(tf.constant([letter * 100_000]), BUCKETS, 3, 5).to_list()
    assert found == [hashed(by_hand(letter * MAX_CHARACTERS, 3, 5))]


@pytest.mark.parametrize("word", [b"\xff\xfea", b"ab\xc3", b"\xed\xa0\x80", b"\xff" * 300])
def test_invalid_utf8_becomes_replacement_characters(word):
    expected = tf.strings.unicode_transcode([word], "UTF-8", "UTF-8").numpy()[0].decode()
    found = ngrams(tf.constant([word]), BUCKETS, 3, 5).to_list()
    assert found == [hashed(by_hand(expected[:MAX_CHARACTERS], 3, 5))]
    assert found[0]


def test_every_bucket_is_inside_the_table():
    words = tf.strings.as_string(tf.range(2000))
    found = ngrams(words, 7, 3, 5).flat_values.numpy()
    assert set(found) == set(range(7))


def test_hashes_never_change():
    # Of trained tables they decide what each row means.
    found = ngrams(tf.constant(["über"]), 100_000, 3, 4).to_list()
    assert found == [[84419, 21262, 82089, 96646, 40312, 60773, 19818]]
