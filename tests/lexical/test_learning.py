"""Learning a lexical model from a tokenized set."""

import copy
import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from tests.lexical.helpers import tokenized
from tf_smoothclir.lexical import training_pairs
from tf_smoothclir.lexical.feedback import Feedback, tf_idf
from tf_smoothclir.lexical.learning import (
    FEEDBACK_WEIGHTS,
    LENGTH_POWERS,
    LexicalTexts,
    _Learner,
    feedback_variants,
    learn_lexical_model,
    unjudged_top,
)
from tf_smoothclir.lexical.positions import FLAT, PROFILES
from tf_smoothclir.lexical.training_pairs import LOWER_GRADES
from tf_smoothclir.lexical.validation import Validation
from tf_smoothclir.utils.errors import InputError


@pytest.fixture(scope="module")
def texts(tiny):
    return LexicalTexts(tokenized(tiny()), tiny().text.max_query_tokens)


@pytest.fixture(scope="module")
def model(texts):
    return learn_lexical_model(texts, seed=13)


def test_words_are_translated_by_their_counterparts_and_unseen_queries_are_ranked(texts, model):
    table = model.table.toarray()
    assert table.shape == (texts.spelling.shape[0], texts.queries.shape[1])
    assert (table.sum(axis=1) <= 1 + 1e-5).all()
    assert np.count_nonzero(table.max(axis=1) > 0.3) >= 5
    assert FLAT in model.fields
    assert model.weights.shape == (len(model.fields), len(model.background))
    assert model.feedback in FEEDBACK_WEIGHTS
    assert model.seconds > 0
    # It ranks queries that it has not seen.
    retrieval_set = texts.retrieval_set
    (ranking,) = texts.retriever(model).rank(retrieval_set.queries_in("test"), 10)
    assert (ranking.grades(retrieval_set) == 2).any(axis=1).all()


def test_the_same_seed_gives_the_same_model(texts, model):
    again = learn_lexical_model(texts, seed=13)
    assert (again.fields, again.feedback) == (model.fields, model.feedback)
    np.testing.assert_array_equal(again.weights, model.weights)
    np.testing.assert_array_equal(again.table.toarray(), model.table.toarray())


@pytest.mark.parametrize(("lead", "chosen"), [(0.004, FLAT), (0.006, PROFILES[1])])
def test_positions_count_alike_unless_another_is_clearly_better(texts, monkeypatch, lead, chosen):
    qualities = iter([0.8, 0.8 + lead, *[0.7] * (len(PROFILES) - 2)])
    monkeypatch.setattr(Validation, "__call__", lambda self, rows: next(qualities))
    monkeypatch.setattr(Validation, "of_variants", lambda self, variants: [0.0])
    model = learn_lexical_model(texts, seed=13)
    assert model.fields == tuple(dict.fromkeys([chosen, FLAT]))


@pytest.mark.parametrize(
    ("gains", "chosen"),
    [
        ([0.1, 0.2], LOWER_GRADES[1]),
        ([0.1, 0.1], LOWER_GRADES[0]),  # no more than is better
        ([0.1, 0.05], LOWER_GRADES[0]),
        ([0.0, 0.2], 0.0),
        ([-0.1, 0.2], 0.0),
    ],
)
def test_pairs_of_lower_grades_count_while_that_is_better(texts, monkeypatch, gains, chosen):
    found = dict(zip((0.0, *LOWER_GRADES), (0.0, *gains)))

    def measured(self, profile, weight):
        return np.full((4, 3), 0.5 + found[weight])

    monkeypatch.setattr(_Learner, "_measured", measured)
    assert _Learner(texts, 13, None).model().lower_grades == chosen


@pytest.mark.parametrize("power", [0.0, -0.05, -0.15])
def test_long_documents_score_lower_as_far_as_that_is_better(texts, model, monkeypatch, power):
    best = LENGTH_POWERS.index(power)
    gains = [0.1 * min(place, 2 * best - place) for place in range(len(LENGTH_POWERS))]
    measured = [np.full((4, 3), 0.5 + gain) for gain in gains]
    monkeypatch.setattr(Validation, "per_query", lambda self, variants: measured)
    found = _Learner(texts, 13, None).with_best_length(model)
    assert found.length_power == power
    assert found.mean_length == np.diff(texts.documents.offsets).mean()


def test_a_table_of_lower_grades_is_that_of_the_model(texts, monkeypatch):
    monkeypatch.setattr(training_pairs, "_COMMON", 1.0)  # the tiny set has few words
    monkeypatch.setattr(_Learner, "_best_lower_grades", lambda self, profile: 0.1)
    model = learn_lexical_model(texts, seed=13)
    assert model.lower_grades == 0.1
    pairs = training_pairs.TrainingPairs(texts, texts.documents.matrix)
    expected = pairs.whole_table(model.fields[0], 0.1)
    np.testing.assert_array_equal(model.table.toarray(), expected.toarray())
    without = pairs.whole_table(model.fields[0], 0.0)
    assert np.abs(expected - without).max() > 0.001


def test_a_set_that_fits_on_a_page_is_enough(tokenized_set):
    texts = LexicalTexts(tokenized_set, 200)
    model = learn_lexical_model(texts, seed=1)  # three training queries, some folds empty
    scores = texts.retriever(model).scores(np.arange(len(texts.retrieval_set.query_ids)))
    assert np.isfinite(scores).all()
    assert (np.ptp(scores[5]) == 0) == (model.feedback == 0)  # a query without a word


def test_training_queries_without_a_relevant_document_are_an_error(texts):
    retrieval_set = texts.retrieval_set
    training = np.isin(retrieval_set.query_rows, retrieval_set.queries_in("train"))
    without, grades = copy.copy(texts), np.where(training, 0, retrieval_set.grades)
    without.retrieval_set = dataclasses.replace(retrieval_set, grades=grades)
    with pytest.raises(InputError, match="train split has a relevant document"):
        learn_lexical_model(without, seed=1)


def test_the_variants_of_feedback_are_what_it_adds():
    random = np.random.default_rng(2)
    vectors = tf_idf(sp.csr_array(random.integers(0, 3, (20, 7)).astype(np.float32)))
    scores = random.random((3, 20)).astype(np.float32)
    found = list(feedback_variants(Feedback.of(vectors, 1.0), scores))
    for weight, variant in zip(FEEDBACK_WEIGHTS, found):
        np.testing.assert_array_equal(variant, Feedback.of(vectors, weight).added_to(scores))


def test_the_best_that_nobody_judged_are_found(small_set):
    documents = len(small_set.document_ids)
    falling = np.arange(documents, 0, -1, dtype=np.float32)
    rows = np.array([0, 1])
    found = unjudged_top(lambda asked: np.tile(falling, (len(asked), 1)), small_set, rows, 3)
    for query, best in zip(rows, found):
        judged = set(small_set.document_rows[small_set.query_rows == query].tolist())
        expected = [row for row in range(documents) if row not in judged][:3]
        assert sorted(best.tolist()) == expected
