"""Factors of languages in the first ranks; a model that goes on from another one."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from tests.cases import cases
from tests.lexical.helpers import counts
from tests.lexical.test_scores import MODEL
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.lexical import initial_model, psq, validation, word_weights
from tf_smoothclir.lexical import language_factors as module
from tf_smoothclir.lexical.language_factors import balanced, first_of_each, language_factors
from tf_smoothclir.lexical.model import LexicalModel
from tf_smoothclir.lexical.words import FLAT, Words
from tf_smoothclir.settings.data import DataSettings

# Vocabularies of [PAD], [UNK] and a word of queries; of [PAD], [UNK] and two words of documents.
# Query words 3 to 6 are document words. Later there are two more words of each.
FORMER, SHAPE = (4, 3 + 4), (6, 5 + 6)
FORMER_QUERIES, QUERIES = counts([2, 2, 6], size=FORMER[1]), counts([2, 3, 3, 8, 8], size=SHAPE[1])


def test_the_highest_scores_of_each_language():
    scores = np.arange(24, dtype=np.float32).reshape(2, 12)
    firsts = first_of_each(scores, np.arange(12) % 12 // 11, 3)  # eleven documents, one, none
    np.testing.assert_array_equal(np.sort(firsts[:, 0])[:, ::-1], scores[:, 10:0:-1])
    np.testing.assert_array_equal(firsts[:, 1, :2], [[11, 0], [23, 0]])
    assert not firsts[:, 2].any()


def share(firsts, factors):
    scaled = (firsts * factors[:, np.newaxis]).reshape(len(firsts), -1)
    first = np.argsort(-scaled, axis=1)[:, :10] // 10
    return np.bincount(first.ravel(), minlength=len(factors)) / first.size


@cases("relevant", (300, 300), (300, 100))
@cases("louder", 1.1, 0.93)
def test_languages_get_the_shares_of_what_is_relevant(relevant, louder):
    scores = np.random.default_rng(1).uniform(20, 40, (500, 2, 10)) * [[[louder], [1.0]]]
    factors = language_factors(scores, np.array(relevant))
    wanted = np.array(relevant) / sum(relevant)
    np.testing.assert_allclose(share(scores, factors), wanted, rtol=0.05)
    assert np.prod(factors) == pytest.approx(1)


@cases("louder", 1.03, 1.0)
def test_shares_that_are_about_right_stay(louder):
    scores = np.random.default_rng(1).uniform(20, 40, (500, 2, 10)) * [[[louder], [1.0]]]
    np.testing.assert_allclose(share(scores, np.ones(2)), [0.5, 0.5], rtol=0.1)
    np.testing.assert_array_equal(language_factors(scores, np.array([300, 300])), np.ones(2))


def test_a_language_with_few_relevant_documents_keeps_its_scores():
    scores = np.random.default_rng(2).uniform(20, 40, (500, 3, 10)) * [[[1.1], [1.0], [1.0]]]
    factors = language_factors(scores, np.array([500, 500, 9]))
    assert factors[2] == 1 > factors[0]
    np.testing.assert_array_equal(language_factors(scores, np.array([500, 9, 9])), np.ones(3))


def test_scores_of_documents_and_of_their_passages_are_multiplied():
    ids, spelling = np.tile([1, 2, 3], 4).astype(np.int32), sp.csr_array(np.eye(4, 3, dtype="f4"))
    words = Words(ids, np.array([0, 6, 9, 12]), 4, languages=np.array(["he", "ja", "x"]))
    model = dataclasses.replace(MODEL, passage_words=3, length_power=-0.5, mean_length=2.0)
    plain = model.impacts(model.passages(words), spelling).toarray()
    model = dataclasses.replace(model, language_factors={"he": 0.5, "ja": 2.0})
    found = model.impacts(model.passages(words), spelling).toarray()
    # The first document has four passages; there is no factor for the last one.
    factors = np.array([0.5, 0.5, 0.5, 0.5, 2.0, 1.0])
    np.testing.assert_allclose(found, plain * factors[:, np.newaxis])
    some = model.impacts(model.passages(words.of(np.array([1, 0]))), spelling).toarray()
    np.testing.assert_allclose(some, found[[4, 0, 1, 2, 3]])


@pytest.fixture(scope="module")
def two_languages():
    return RetrievalSet.load(source_of(DataSettings(toy_entities=300, document_language="fr,it")))


@cases("worse", False, True)
def test_factors_are_chosen_on_validation_and_left_out_if_worse(two_languages, monkeypatch, worse):
    codes, languages = two_languages.document_languages
    assert codes == ("fr", "it")
    compared, lengths = [], 1.0 + languages  # the score of "it" is divided by 2
    model = dataclasses.replace(MODEL, length_power=-1.0, mean_length=1.0)

    def rows(query_rows):
        assert np.isin(query_rows, two_languages.queries_in("validation")).all()
        scores = np.random.default_rng(query_rows).uniform(9, 10, (len(query_rows), len(languages)))
        return (scores * np.where(languages, 2.0, 1.05)).astype(np.float32)

    monkeypatch.setattr(module, "is_better", lambda *measured: compared.append(measured) or worse)
    texts = SimpleNamespace(retrieval_set=two_languages)
    found = balanced(model, texts, rows, lengths, validation.Validation(two_languages))
    assert len(compared) == 1
    if worse:
        assert found is model
    else:
        assert found.language_factors["fr"] < 0.99 < 1.01 < found.language_factors["it"]
    french = two_languages.document_languages._replace(codes=("fr",))
    alone = dataclasses.replace(two_languages, document_languages=french)
    assert balanced(model, SimpleNamespace(retrieval_set=alone), rows, lengths, None) is model


def matrix(cells, shape):
    values, places = list(cells.values()), tuple(np.array(list(cells)).T)
    return sp.csr_array((np.array(values, np.float32), places), shape=shape)


@pytest.fixture
def initial():
    model = LexicalModel(
        table=matrix({(2, 2): 1.0, (3, 2): 0.5}, FORMER),
        lookalikes=matrix({(3, 2): 0.25}, FORMER),
        background=psq.background(FORMER_QUERIES),
        counts=FORMER_QUERIES.sum(axis=0),
        fields=(FLAT,),
        weights=np.array([[0.3, 0.3, 0.7, 0.3, 0.3, 0.3, 0.1]], np.float32),
        evidence=np.array([0, 0, 3, 0], np.float32),
    )
    return initial_model.InitialModel(model, SHAPE, QUERIES.sum(axis=0))


def test_a_word_of_both_has_the_translations_of_both_by_their_counts(initial):
    learned = {(2, 3): 1.0, (3, 3): 0.8, (4, 2): 0.2, (4, 3): 0.8, (5, 4): 1.0}
    evidence = np.array([0, 0, 1, 0, 2, 0], np.float32)
    table, counted = initial.table(matrix(learned, SHAPE), evidence)
    expected = {
        **{(2, 2): 3 / 4, (2, 3): 1 / 4},
        (3, 2): 0.5,  # no pair has it now, and words like it do not count
        **{(4, 2): 0.2, (4, 3): 0.8, (5, 4): 1.0},  # new ones, the last by words like it
    }
    np.testing.assert_array_equal(table.toarray(), matrix(expected, SHAPE).toarray())
    assert counted.tolist() == [0, 0, 4, 0, 2, 0]
    # What came from a dictionary counts as if it had occurred once.
    table, _ = initial.table(matrix(learned, SHAPE), np.array([0, 0, 0, 4, 0, 0], np.float32))
    assert table[3, 2] == pytest.approx(0.5 / 5)
    assert table[3, 3] == pytest.approx(0.8 * 4 / 5)


def test_words_that_only_documents_had_move_behind_the_new_ones(initial):
    assert initial.words.tolist() == [0, 1, 2, 5, 6, 7, 8]
    found = matrix({(3, 2): 1.0, (3, 3): 0.5, (4, 2): 0.4, (2, 8): 1.0}, SHAPE)
    expected = {(3, 2): 0.25, (3, 3): 0.5, (4, 2): 0.4}
    found = initial.lookalikes(found).toarray()
    np.testing.assert_array_equal(found, matrix(expected, SHAPE).toarray())


def test_new_words_have_their_share_of_all_queries_and_others_keep_theirs(initial):
    assert np.flatnonzero(initial.is_new).tolist() == [3]  # word 8 was word 6
    # Each word counts 0.1 more than it occurs. In the sum, each that occurs counts that twice.
    former, both = 3 + 2 * 0.2, 8 + 3 * 0.2
    expected = np.full(SHAPE[1], 0.1 / former)
    expected[[2, 3, 8]] = 2.1 / former, 2.1 / both, 1.1 / former
    assert initial.background == pytest.approx(expected)
    assert initial.background[[2, 8]].tolist() == initial.model.background[[2, 6]].tolist()


@cases("begins", 0.3, 0.0)
def test_weights_are_learned_for_new_words_alone(begins):
    """A sign that no query had before counted nothing, and is a new word in the same way."""
    former = np.array([[0.3, 0.0, 0.7, begins]], np.float32)
    # Word 2 is for the wrong document in each query, word 3 for the mate.
    features = [np.tile(np.eye(2, dtype=np.float32)[::-1], (20, 1))]
    queries, is_new = counts(*[[2, 3]] * 20, size=4), np.arange(4) == 3
    found = word_weights.learn_word_weights(queries, features, former=former, is_new=is_new)
    assert found.astype(np.float32)[0, :3].tolist() == former[0, :3].tolist()
    assert found[0, 3] > 0.4
