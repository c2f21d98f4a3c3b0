"""Triplets, translated queries and queries made of documents, on the tiny set."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tests.cases import cases, word
from tests.training.tiny_set import QUERIES, words_of
from tf_smoothclir.data.candidate_lists import pair_key
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.lexical.words import Words
from tf_smoothclir.papers.laboratory.cells import opened_set
from tf_smoothclir.papers.li2018 import translations as module
from tf_smoothclir.papers.li2018.translations import (
    NONE_FOUND,
    POSITIVES,
    OpeningQueries,
    WordTranslations,
)
from tf_smoothclir.papers.li2018.triplets import TripletBatches
from tf_smoothclir.utils.errors import InputError

LONGEST = 20


@pytest.fixture(scope="module")
def prepared(tiny):
    settings = tiny()
    tokenized_set = opened_set(settings)
    texts = LexicalTexts(tokenized_set, LONGEST)
    return settings.training, tokenized_set, texts, WordTranslations.learn(texts, seed=13)


@pytest.fixture(scope="module")
def translations(prepared):
    _, _, texts, words = prepared
    return words.queries(texts)


def test_queries_are_translated_word_by_word_in_their_order(prepared, translations):
    """In the tiny set, "motd" stands for "wordd"; a table of 12 pairs knows most of them."""
    vocabulary = np.array(prepared[1].vocabulary("document"))
    found = [vocabulary[words].tolist() for words in translations]
    expected = [[word("mot", w) for w in words_of(n)[:2]] for n in range(QUERIES)]
    same = [one == other for one, other in zip(found, expected, strict=True) if len(one) == 2]
    assert np.mean(same) > 0.6


def test_each_judged_pair_comes_once_with_a_document_that_nobody_judged(prepared, translations):
    training, tokenized_set, _, _ = prepared
    batches = TripletBatches(tokenized_set, translations, training)
    found = tokenized_set.retrieval_set
    judged = pair_key(found.query_rows, found.document_rows)
    of_training = found.splits[found.query_rows] == 0
    first, second = batches.triplets(0), batches.triplets(1)
    pairs = pair_key(first.queries, first.relevant)
    assert sorted(pairs) == sorted(judged[of_training])
    grades = dict(zip(judged, found.grades))
    assert first.grades.tolist() == [grades[pair] for pair in pairs]
    assert not np.isin(pair_key(first.queries, first.others), judged).any()
    assert (first.others != second.others).any()


def test_batches_hold_the_texts_of_their_triplets(prepared, translations):
    training, tokenized_set, _, _ = prepared
    batches = TripletBatches(tokenized_set, translations, training)
    triplets, epoch = batches.triplets(0), batches.epoch(0)
    batch = next(iter(epoch.batches(1)))  # the second one
    rows = triplets.some(slice(training.batch_size, 2 * training.batch_size))
    for found, store, expected in (
        (batch.query, tokenized_set.tokens("query"), rows.queries),
        (batch.documents, tokenized_set.tokens("document"), [*rows.relevant, *rows.others]),
        (batch.translation, [*translations], rows.queries),
    ):
        np.testing.assert_array_equal(found.ids, np.concatenate([store[row] for row in expected]))
    np.testing.assert_array_equal(batch.grades, rows.grades)
    assert [len(epoch.rows(step)) for step in range(epoch.steps)] == [8, 8, 8]


@cases("texts", [[2, 3, 4], [2, 3], [5], [5, 5]], [[2, 3, 4], [2, 3]], ids=len)
def test_a_document_that_shares_no_word_with_a_query_is_not_relevant_to_it(texts):
    """BM25 gives it 0; with fewer than `POSITIVES` others, there is none to fill up with."""
    offsets = np.append(0, np.cumsum([len(text) for text in texts]))
    documents = Words(np.concatenate(texts).astype(np.int32), offsets, 6)
    read = type("Texts", (), {"documents": documents})()
    found = module._found_by_bm25(read, documents.of(np.array([0])), [0])
    assert found.tolist() == [[1, NONE_FOUND, NONE_FOUND]]


def test_documents_of_held_out_queries_make_no_queries(prepared):
    _, tokenized_set, texts, words = prepared
    found = tokenized_set.retrieval_set
    pseudo = OpeningQueries.of(tokenized_set, texts, words)
    held_out = set(found.document_rows[found.splits[found.query_rows] != 0])
    store = tokenized_set.tokens("document")
    used = [tuple(opening.numpy()) for opening in pseudo.translations]
    assert set(used) <= {tuple(store[row]) for row in range(len(store)) if row not in held_out}
    assert pseudo.relevant.shape == (len(used), POSITIVES)
    for own, relevant in zip(used, pseudo.relevant, strict=True):
        assert len(set(relevant)) == POSITIVES
        assert set(own) & set(store[relevant[0]])  # BM25 finds what shares words


def made_of_documents(relevant):
    one = tf.ragged.constant([[2]], tf.int32)
    openings = OpeningQueries(one, one, np.array([relevant], np.int32))
    return {"openings": openings, "opening_epochs": 1}


def test_only_found_documents_make_triplets_and_none_at_all_is_an_error(prepared, translations):
    training, tokenized_set, _, _ = prepared
    options = made_of_documents([4, 1, NONE_FOUND])
    found = TripletBatches(tokenized_set, translations, training, **options).triplets(0)
    assert sorted(found.relevant) == [1, 4]
    assert found.queries.tolist() == [QUERIES, QUERIES]
    found = tokenized_set.retrieval_set
    without_mates = dataclasses.replace(found, grades=np.minimum(found.grades, 1))
    tokenized_set = dataclasses.replace(tokenized_set, retrieval_set=without_mates)
    for options, reason in (
        ({"best_only": True}, "no query of the train split has a document of the highest grade"),
        (made_of_documents([NONE_FOUND] * POSITIVES), "no document makes a query"),
    ):
        with pytest.raises(InputError, match=reason):
            TripletBatches(tokenized_set, translations, training, **options)
