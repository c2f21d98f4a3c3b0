"""Choosing the share of the towers on validation queries."""

from __future__ import annotations

import numpy as np
import pytest

from tests.training.tiny_set import DOCUMENTS, QUERIES
from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.hybrid.fusion import FORMULAS, RECIPROCAL_RANK, SUM
from tf_smoothclir.hybrid.learning import SHARES, learn_fusion
from tf_smoothclir.lexical.learning import FEEDBACK_WEIGHTS
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.lexical.validation import Validation
from tf_smoothclir.training.train import retrieval_set_of

NOISE = np.random.default_rng(6).normal(size=(2, QUERIES, DOCUMENTS)).astype(np.float32)


@pytest.fixture(scope="module")
def texts(tiny):
    settings = tiny()
    retrieval_set = retrieval_set_of(source_of(settings.data), settings, ())
    tokenized_set = tokenize_set(retrieval_set, settings.text, settings.data.cache_dir)
    return LexicalTexts(tokenized_set, settings.text.max_query_tokens)


def knowing(texts, number, grades):
    """Noise, but for the documents of some grades, which are far above it."""
    retrieval_set = texts.retrieval_set
    scores = NOISE[number].copy()
    for grade, height in grades.items():
        known = retrieval_set.grades == grade
        scores[retrieval_set.query_rows[known], retrieval_set.document_rows[known]] += height
    return scores


@pytest.mark.parametrize(
    ("lexical", "dense", "shares"),
    [
        ({2: 20, 1: 10}, {}, (0.0,)),
        ({2: -3, 1: -3}, {2: 3, 1: 2}, (1.0,)),
        # One knows the mates, the other one the related documents; only the sum knows both.
        ({2: 9}, {1: 5}, (0.2, 0.3, 0.5, 0.7)),
    ],
    ids=["lexical alone", "towers alone", "both"],
)
def test_the_share_goes_to_what_knows_the_answer(texts, lexical, dense, shares):
    parts = knowing(texts, 0, lexical), knowing(texts, 1, dense) / 100
    rows = [part.__getitem__ for part in parts]
    fusion = learn_fusion(texts, *rows)
    assert fusion.share in shares
    assert fusion.share in (0, *SHARES, 1)
    assert fusion.formula == SUM
    assert fusion.feedback in FEEDBACK_WEIGHTS
    validation = Validation(texts.retrieval_set)
    assert fusion.lexical_deviation == pytest.approx(validation.deviation(rows[0]))
    assert fusion.dense_deviation == pytest.approx(validation.deviation(rows[1]))
    assert fusion.seconds > 0


def test_no_part_alone_does_better_on_the_validation_queries(texts):
    rows = [knowing(texts, 0, {2: 1.5}).__getitem__, knowing(texts, 1, {2: 1, 1: 2}).__getitem__]
    fusion = learn_fusion(texts, *rows)
    validation = Validation(texts.retrieval_set)
    found = validation(texts.with_feedback(fusion.rows(*rows), fusion.feedback).scores)
    for part in rows:
        assert found >= validation(part)
    for weight in FEEDBACK_WEIGHTS:
        assert found >= validation(texts.with_feedback(rows[0], weight).scores)


def with_outliers(texts):
    """Scores of halves that know the answer, but for one document that each scores far too high."""
    halves = [knowing(texts, number, {2: 20, 1: 10}) for number in range(2)]
    unjudged = np.ones((QUERIES, DOCUMENTS), bool)
    unjudged[texts.retrieval_set.query_rows, texts.retrieval_set.document_rows] = False
    for half, place in zip(halves, (0, 1)):
        wrong = [np.flatnonzero(row)[place] for row in unjudged]
        half[np.arange(QUERIES), wrong] += 1000
    return [half.__getitem__ for half in halves]


def test_ranks_are_fused_where_they_say_more_than_scores(texts):
    # In a sum both wrong documents stay before the mate; by ranks the second of both is first.
    fusion = learn_fusion(texts, *with_outliers(texts))
    assert fusion.formula == RECIPROCAL_RANK
    assert fusion.share in SHARES


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_formula_may_be_wanted(texts, formula):
    fusion = learn_fusion(texts, *with_outliers(texts), formulas=[formula])
    assert fusion.formula == formula or fusion.share in (0, 1)


def test_towers_that_know_nothing_have_no_share(texts):
    lexical = knowing(texts, 0, {2: 3, 1: 1})
    rows = [lexical.__getitem__, (NOISE[1] / 100).__getitem__]
    assert learn_fusion(texts, *rows).share == 0
