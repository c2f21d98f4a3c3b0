"""The encoder with n-grams: what towers take, from raw strings and from token ids."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tests.cases import cases
from tf_smoothclir.encoder.word_evidence import NGRAMS, NOTHING, WORDS
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.text import evidence, vocabulary
from tf_smoothclir.text.subwords import MAX_CHARACTERS, SubwordTextEncoder, ngrams, text_encoder
from tf_smoothclir.text.tokens import TextEncoder

SETTINGS = TextSettings(max_document_tokens=4, ngram_buckets=1000, min_ngram=3, max_ngram=4)
TEXTS = ["the sea, the", "", "unseen sea ünseen unseen cut", "\xff"]
BUCKETS = 1_000_003  # so many that two n-grams of a test share none
# Umlauts, CJK and marks are one character each; the last ones are short or strange.
SPELLINGS = ["where", "überzüge", "日本", "😀x", "e\u0301te", "a_1", "<>", "a\0b", "ab", "a", ""]
VOCABULARY = ["[PAD]", "[UNK]", "mountain", ".", "sea", "日"]
NGRAMS_OF_4 = TextSettings(ngram_buckets=50, min_ngram=4, max_ngram=5)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "document.txt"
    vocabulary.write_vocabulary(path, [vocabulary.PADDING, vocabulary.UNKNOWN, "the", "sea", ","])
    return path


@pytest.fixture(scope="module")
def encoder(path):
    return text_encoder(path, SETTINGS, "document")


def ngrams_of_tokens(tokens):
    rows = tf.RaggedTensor.from_row_lengths(tokens.ngrams.ids, tokens.ngrams.lengths)
    np.testing.assert_array_equal(tokens.ngrams.texts, rows.value_rowids())
    return tf.gather(rows, tokens.positions).to_list()


def expected_ngrams(words):
    return ngrams(tf.constant(words), 1000, 3, 4).to_list()


def test_ids_are_those_without_ngrams_and_every_word_has_its_ngrams(encoder, path):
    plain, found = TextEncoder(path, max_tokens=4)(tf.constant(TEXTS)), encoder(tf.constant(TEXTS))
    for name in ("ids", "lengths", "texts"):
        np.testing.assert_array_equal(getattr(found, name), getattr(plain, name))
        assert getattr(found, name).dtype == tf.int32
    assert found.texts.numpy().tolist() == [0] * 4 + [2] * 4 + [3]
    words = ["the", "sea", ",", "the", "unseen", "sea", "ünseen", "unseen", "ÿ"]
    of_words = ngrams_of_tokens(found)
    assert of_words == expected_ngrams(words)
    assert of_words[4] != of_words[6]  # both unknown, and told apart
    nothing = encoder(tf.constant([], tf.string))
    assert nothing.lengths.shape == nothing.ngrams.lengths.shape == 0


def test_by_ids_the_words_of_the_vocabulary_have_the_same_ngrams_and_no_other_ids(encoder):
    ids = tf.constant([2, 3, 4, 2, -1, 0, 1, 5, 2**31 - 1])
    found = encoder.complete(ids, tf.constant([3, 6]))
    assert ngrams_of_tokens(found) == [*expected_ngrams(["the", "sea", ",", "the"]), *[[]] * 5]
    np.testing.assert_array_equal(found.ids, ids)
    assert found.texts.numpy().tolist() == [0] * 3 + [1] * 6


def test_every_setting_of_the_ngrams_is_part_of_the_digest(path):
    changes = [{}, {"ngram_buckets": 999}, {"min_ngram": 2}, {"max_ngram": 5}]
    variants = [dataclasses.replace(SETTINGS, **change) for change in changes]
    digests = {text_encoder(path, each, "query").vocabulary_digest for each in variants}
    words_alone = text_encoder(path, TextSettings(max_query_tokens=3), "query")
    assert not isinstance(words_alone, SubwordTextEncoder)
    assert words_alone.max_tokens == 3
    assert len(digests | {words_alone.vocabulary_digest}) == len(variants) + 1


def by_hand(word: str, shortest: int, longest: int) -> list[str]:
    marked = f"<{word}>" if word else ""
    return [
        marked[begin : begin + length]
        for length in range(shortest, longest + 1)
        for begin in range(len(marked) - length + 1)
    ]


def hashed(texts, buckets=BUCKETS):
    return tf.strings.to_hash_bucket_fast(tf.constant(texts, tf.string), buckets).numpy().tolist()


@cases("shortest, longest", (3, 6), (1, 2), (4, 4), (4, 5))
@cases("words", *[[word] for word in SPELLINGS] + [SPELLINGS, []])
def test_ngrams_are_those_of_fasttext_and_words_of_a_batch_do_not_mix(words, shortest, longest):
    found = ngrams(tf.constant(words, tf.string), BUCKETS, shortest, longest)
    assert found.dtype == tf.int32
    assert by_hand("where", 3, 3) == ["<wh", "whe", "her", "ere", "re>"]  # of the paper
    assert found.to_list() == [hashed(by_hand(word, shortest, longest)) for word in words]


@cases("letter", "x", "ü", "日", "😀")
def test_only_the_first_characters_of_a_very_long_word_count(letter):
    found = ngrams(tf.constant([letter * 100_000]), BUCKETS, 3, 5).to_list()
    assert found == [hashed(by_hand(letter * MAX_CHARACTERS, 3, 5))]


@cases("word", b"\xff\xfea", b"ab\xc3", b"\xed\xa0\x80", b"\xff" * 300)
def test_invalid_utf8_becomes_replacement_characters(word):
    expected = tf.strings.unicode_transcode([word], "UTF-8", "UTF-8").numpy()[0].decode()
    found = ngrams(tf.constant([word]), BUCKETS, 3, 5).to_list()
    assert found == [hashed(by_hand(expected[:MAX_CHARACTERS], 3, 5))]
    assert found[0]


def test_hashes_never_change():
    # Of trained tables they decide what each row means.
    found = ngrams(tf.constant(["über"]), 100_000, 3, 4).to_list()
    assert found == [[84419, 21262, 82089, 96646, 40312, 60773, 19818]]
    words = tf.strings.as_string(tf.range(2000))
    assert set(ngrams(words, 7, 3, 5).flat_values.numpy()) == set(range(7))  # inside the table


@cases(
    "settings, text, level, unknown",
    (TextSettings(), "the Sea", WORDS, "the"),
    (TextSettings(), "日本", WORDS, "日本 本"),
    (TextSettings(), "zebra?", NOTHING, "zebra"),
    (TextSettings(), ".", NOTHING, ""),  # in the vocabulary, but it says nothing
    (TextSettings(), " \t😀", NOTHING, ""),
    (TextSettings(), b"\xff\xfe", NOTHING, ""),
    (TextSettings(max_query_tokens=1), "zebra sea", NOTHING, "zebra"),
    # An unknown word counts if half of its n-grams are known. With 50 rows for n-grams, nearly
    # all have one of the vocabulary: rows say nothing.
    # <mountains>: 8 n-grams of 4 and 7 of 5; <mountain> has the first 6 and 5 of them.
    (NGRAMS_OF_4, "mountains", NGRAMS, "mountains"),
    # <mount>: 4 of 4 and 3 of 5; <mountain> has 3 and 2.
    (NGRAMS_OF_4, "mount", NGRAMS, "mount"),
    # <mouse>: 4 and 3; <mountain> has <mou alone.
    (NGRAMS_OF_4, "mouse", NOTHING, "mouse"),
    (NGRAMS_OF_4, "sea zebra", WORDS, "zebra"),
    (NGRAMS_OF_4, "a", NOTHING, "a"),  # too short for any n-gram
)
def test_evidence_is_words_or_ngrams_or_nothing(tmp_path, settings, text, level, unknown):
    path = tmp_path / "query.txt"
    vocabulary.write_vocabulary(path, VOCABULARY)
    encoder = text_encoder(path, settings, "query")
    levels, words = evidence.word_evidence(VOCABULARY, encoder, settings)(tf.constant([text]))
    assert (levels.numpy().tolist(), words.numpy()[0].decode()) == ([level], unknown)
