"""The encoder with n-grams: what towers take, from raw strings and from token ids."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.text.subword_encoder import SubwordTextEncoder, text_encoder
from tf_smoothclir.text.subwords import ngrams
from tf_smoothclir.text.vocabulary import PADDING, UNKNOWN, write_vocabulary
from tf_smoothclir.text.word_encoder import TextEncoder

SETTINGS = TextSettings(max_document_tokens=4, ngram_buckets=1000, min_ngram=3, max_ngram=4)
TEXTS = ["the sea, the", "", "unseen sea ünseen unseen cut", "\xff"]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "document.txt"
    write_vocabulary(path, [PADDING, UNKNOWN, "the", "sea", ","])
    return path


@pytest.fixture(scope="module")
def encoder(path):
    return text_encoder(path, SETTINGS, "document")


def ngrams_of_tokens(tokens):
    """Returns the buckets of the n-grams of each token of all texts."""
    rows = tf.RaggedTensor.from_row_lengths(tokens.ngrams.ids, tokens.ngrams.lengths)
    np.testing.assert_array_equal(tokens.ngrams.texts, rows.value_rowids())
    return tf.gather(rows, tokens.positions).to_list()


def expected_ngrams(words):
    return ngrams(tf.constant(words), 1000, 3, 4).to_list()


def test_ids_lengths_and_texts_are_those_of_the_encoder_without_ngrams(encoder, path):
    plain = TextEncoder(path, max_tokens=4)(tf.constant(TEXTS))
    found = encoder(tf.constant(TEXTS))
    for name in ("ids", "lengths", "texts"):
        np.testing.assert_array_equal(getattr(found, name), getattr(plain, name))
        assert getattr(found, name).dtype == tf.int32
    assert found.texts.numpy().tolist() == [0] * 4 + [2] * 4 + [3]


def test_every_word_has_its_ngrams_even_unknown_words(encoder):
    found = ngrams_of_tokens(encoder(tf.constant(TEXTS)))
    words = ["the", "sea", ",", "the", "unseen", "sea", "ünseen", "unseen", "ÿ"]
    assert found == expected_ngrams(words)
    assert found[4] != found[6]  # both unknown, and told apart


def test_by_ids_the_words_of_the_vocabulary_have_the_same_ngrams(encoder):
    ids = tf.constant([2, 3, 4, 2])
    found = encoder.complete(ids, tf.constant([3, 1]))
    assert ngrams_of_tokens(found) == expected_ngrams(["the", "sea", ",", "the"])
    np.testing.assert_array_equal(found.ids, ids)
    assert found.texts.numpy().tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("id_", [-1, 0, 1, 5, 2**31 - 1])
def test_by_ids_padding_unknown_and_impossible_ones_have_none(id_, encoder):
    found = encoder.complete(tf.constant([id_, 2]), tf.constant([2]))
    assert ngrams_of_tokens(found) == [[], *expected_ngrams(["the"])]


def test_no_text_is_no_row(encoder):
    found = encoder(tf.constant([], tf.string))
    assert found.lengths.shape == found.ngrams.lengths.shape == 0


def test_every_setting_of_the_ngrams_is_part_of_the_digest(path):
    variants = [
        SETTINGS,
        TextSettings(ngram_buckets=999, min_ngram=3, max_ngram=4),
        TextSettings(ngram_buckets=1000, min_ngram=2, max_ngram=4),
        TextSettings(ngram_buckets=1000, min_ngram=3, max_ngram=5),
    ]
    digests = {text_encoder(path, each, "query").vocabulary_digest for each in variants}
    digests.add(TextEncoder(path, 4).vocabulary_digest)
    assert len(digests) == len(variants) + 1


def test_without_buckets_it_is_the_encoder_of_words_alone(path):
    found = text_encoder(path, TextSettings(max_query_tokens=3), "query")
    assert not isinstance(found, SubwordTextEncoder)
    assert found.max_tokens == 3


def test_a_saved_model_answers_the_same_without_the_files_it_was_made_from(tmp_path):
    path = tmp_path / "query.txt"
    write_vocabulary(path, [PADDING, UNKNOWN, "the", "sea"])
    encoder = text_encoder(path, SETTINGS, "query")
    texts, ids, lengths = tf.constant(TEXTS), tf.constant([2, 1, 3]), tf.constant([2, 1])
    expected = [encoder(texts), encoder.complete(ids, lengths)]
    tf.saved_model.save(encoder, tmp_path / "saved")
    path.unlink()
    loaded = tf.saved_model.load(tmp_path / "saved")
    found = [loaded(texts), loaded.complete(ids, lengths)]
    tf.nest.map_structure(np.testing.assert_array_equal, found, expected)
