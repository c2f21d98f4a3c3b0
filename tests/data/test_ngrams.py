"""Tokenized sets with n-grams: ids of unseen words, their n-grams, and batches that bring them."""

from __future__ import annotations

import dataclasses
import os

import numpy as np
import pytest
import tensorflow as tf

from tests.small_world import DOCUMENTS, QUERIES
from tf_smoothclir.data import preparation
from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.pipeline import PIPELINES, token_batches
from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.text import batches
from tf_smoothclir.text.subword_encoder import text_encoder
from tf_smoothclir.text.subwords import ngrams
from tf_smoothclir.text.tokenizer import tokenize
from tf_smoothclir.text.vocabulary import PADDING, UNKNOWN, write_vocabulary
from tf_smoothclir.towers.average_pooling import AveragePoolingTower

SETTINGS = TextSettings(ngram_buckets=1000, vocabulary_size=9)
TEXTS = {"query": list(QUERIES.values()), "document": list(DOCUMENTS.values())}


@pytest.fixture(scope="module", params=[False, True], ids=["two vocabularies", "shared"])
def settings(request):
    return dataclasses.replace(SETTINGS, shared_vocabulary=request.param)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def world(small_set, settings, cache):
    return tokenize_set(small_set, settings, cache)


def words_of(role, settings):
    rows = tokenize(tf.constant(TEXTS[role]), settings.max_tokens(role)).to_list()
    return [word.decode() for row in rows for word in row]


@pytest.mark.parametrize("role", ROLES)
def test_each_spelling_has_one_id_and_those_of_the_vocabulary_keep_theirs(role, world, settings):
    vocabulary, words = world.vocabulary(role), words_of(role, settings)
    assert len(vocabulary) == 9
    by_word = {}
    for word, id_ in zip(words, world.tokens(role).values.tolist()):
        assert by_word.setdefault(word, id_) == id_
        if word in vocabulary:
            assert id_ == vocabulary.index(word)
        else:
            assert id_ >= len(vocabulary)
    assert len(set(by_word.values())) == len(by_word) > 9


@pytest.mark.parametrize("role", ROLES)
def test_the_ngrams_of_an_id_are_those_of_its_word(role, world, settings):
    store, words = world.ngrams(role), words_of(role, settings)
    assert store[0].size == store[1].size == 0  # padding and unknown
    expected = ngrams(tf.constant(words), 1000, 3, 5).to_list()
    for id_, buckets in zip(world.tokens(role).values, expected):
        assert store[id_].tolist() == buckets
    assert len(store) > world.tokens(role).values.max()


def test_a_shared_vocabulary_has_the_same_ids_in_both_languages(small_set, cache):
    found = tokenize_set(small_set, dataclasses.replace(SETTINGS, shared_vocabulary=True), cache)
    stores = [found.ngrams(role) for role in ROLES]
    for part in ("values", "offsets"):
        np.testing.assert_array_equal(*(getattr(store, part) for store in stores))


def test_ngrams_do_not_change_vocabulary_files(world, small_set, settings, tmp_path):
    plain = tokenize_set(small_set, dataclasses.replace(settings, ngram_buckets=0), tmp_path)
    for role in ROLES:
        assert plain.vocabulary(role) == world.vocabulary(role)
        assert plain.ngrams(role) is None
    # Counting does not depend on n-grams, so that both find each other's vocabularies.
    assert plain.vocabulary_dir.name == world.vocabulary_dir.name
    assert plain.directory.name != world.directory.name


@pytest.mark.parametrize("role", ROLES)
def test_stored_texts_have_the_vectors_of_their_raw_strings(role, world, settings):
    # Of validation and test queries, most words are in no vocabulary.
    tower = AveragePoolingTower(len(world.vocabulary(role)), 4, ngram_buckets=1000)
    encoder = text_encoder(world.vocabulary_dir / f"{role}.txt", settings, role)
    expected = tower(encoder(tf.constant(TEXTS[role])))
    (batch,) = token_batches(world, role, 100)
    np.testing.assert_array_equal(tower(batch), expected)
    rows = world.tokens(role).lengths > 0
    assert (np.abs(expected[rows]).max(axis=1) > 0).all()


def test_a_query_of_unseen_words_is_encoded_by_their_ngrams(world):
    assert set(world.tokens("query")[4]) - set(range(9))  # "white snow", of test
    tower = AveragePoolingTower(9, 4, ngram_buckets=1000)
    (batch,) = token_batches(world, "query", 100)
    found = tower(batch)[4]
    table = tower.ngram_embeddings.numpy()
    of_words = [
        table[buckets].sum(axis=0) / np.sqrt(len(buckets))
        for buckets in ngrams(["white", "snow"], 1000, 3, 5).to_list()
    ]
    np.testing.assert_allclose(found, np.tanh(np.mean(of_words, axis=0)), rtol=1e-5)


@pytest.mark.parametrize("name", PIPELINES)
def test_every_batch_has_the_ngrams_of_its_distinct_words(name, world, small_set):
    lists = candidate_lists(small_set, "train", negatives=2, seed=1)
    pipeline = PIPELINES[name](world, batch_size=5, seed=13)
    for inputs, _ in pipeline.epoch(lists, 0):
        for role in ROLES:
            tokens = getattr(inputs.texts, role)
            assert len(set(tokens.distinct.numpy())) == len(tokens.distinct)
            rows = tf.RaggedTensor.from_row_lengths(tokens.ngrams.ids, tokens.ngrams.lengths)
            expected = [world.ngrams(role)[id_].tolist() for id_ in tokens.distinct]
            assert rows.to_list() == expected
            assert len(set(tokens.ngrams.distinct.numpy())) == len(tokens.ngrams.distinct)


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_files_depend_neither_on_threads_nor_on_whether_the_vocabulary_was_known(
    world, small_set, settings, tmp_path, monkeypatch
):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(batches, "TEXTS_PER_BATCH", 3)
    found = tokenize_set(small_set, settings, tmp_path / "counted")
    again = tokenize_set(small_set, settings, tmp_path / "given", world.vocabulary_dir)
    assert contents(found.directory) == contents(again.directory) == contents(world.directory)


@pytest.mark.parametrize(
    "change", [{"ngram_buckets": 999}, {"min_ngram": 2}, {"max_ngram": 6}, {"ngram_buckets": 0}]
)
def test_other_ngrams_are_another_store(change, world, small_set, settings, cache):
    found = tokenize_set(small_set, dataclasses.replace(settings, **change), cache)
    assert found.directory != world.directory
    assert found.vocabulary_dir == world.vocabulary_dir


def test_a_second_call_does_no_work(world, small_set, settings, cache, monkeypatch):
    def fail(*_, **__):
        raise AssertionError

    monkeypatch.setattr(preparation.TokenCounter, "split", fail)
    assert tokenize_set(small_set, settings, cache) == world


def test_words_outside_the_vocabulary_of_an_earlier_run_have_ngrams(small_set, tmp_path):
    given = tmp_path / "run"
    given.mkdir()
    write_vocabulary(given / "query.txt", [PADDING, UNKNOWN, "sea"])
    write_vocabulary(given / "document.txt", [PADDING, UNKNOWN, "meer"])
    found = tokenize_set(small_set, SETTINGS, tmp_path / "cache", given)
    the, blue, sea = found.tokens("query")[1]
    assert sea == 2
    assert min(the, blue) > 2
    assert found.ngrams("query")[blue].tolist() == ngrams(["blue"], 1000, 3, 5).to_list()[0]
    assert sorted(path.name for path in given.iterdir()) == ["document.txt", "query.txt"]


def test_a_crash_while_writing_ngrams_leaves_only_complete_files(small_set, tmp_path, monkeypatch):
    def fail(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(preparation, "_write_ngrams", fail)
        with pytest.raises(KeyboardInterrupt):
            tokenize_set(small_set, SETTINGS, tmp_path)
    assert [path.name.split("-")[3] for path in tmp_path.iterdir()] == ["vocabulary"]
    assert len(tokenize_set(small_set, SETTINGS, tmp_path).ngrams("document")) > 9
