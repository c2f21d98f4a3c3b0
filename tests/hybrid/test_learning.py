"""Choosing the share of the towers on validation queries."""

import numpy as np
import pytest

from tests.lexical.helpers import tokenized
from tests.training.tiny_set import DOCUMENTS, QUERIES
from tf_smoothclir.hybrid.fusion import RECIPROCAL_RANK, SUM
from tf_smoothclir.hybrid.learning import SHARES, learn_fusion
from tf_smoothclir.lexical.learning import FEEDBACK_WEIGHTS
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.lexical.validation import Validation

NOISE = np.random.default_rng(6).normal(size=(2, QUERIES, DOCUMENTS)).astype(np.float32)


@pytest.fixture(scope="module")
def texts(tiny):
    return LexicalTexts(tokenized(tiny()), tiny().text.max_query_tokens)


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
        ({2: 3, 1: 1}, {}, (0.0,)),
        # One knows the mates, the other one the related documents; only the sum knows both.
        ({2: 9}, {1: 5}, (0.2, 0.3, 0.5, 0.7)),
    ],
    ids=["lexical alone", "towers alone", "towers know nothing", "both"],
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


@pytest.mark.parametrize("formulas", [None, [SUM], [RECIPROCAL_RANK]])
def test_ranks_are_fused_where_they_say_more_than_scores_or_a_formula_is_wanted(texts, formulas):
    """Both halves know the answer, but for one document that each scores far too high.

    In a sum both wrong documents stay before the mate; by ranks the second of both is first.
    """
    halves = [knowing(texts, number, {2: 20, 1: 10}) for number in range(2)]
    unjudged = np.ones((QUERIES, DOCUMENTS), bool)
    unjudged[texts.retrieval_set.query_rows, texts.retrieval_set.document_rows] = False
    for place, half in enumerate(halves):
        wrong = [np.flatnonzero(row)[place] for row in unjudged]
        half[np.arange(QUERIES), wrong] += 1000
    options = {"formulas": formulas} if formulas else {}
    fusion = learn_fusion(texts, *(half.__getitem__ for half in halves), **options)
    if formulas == [SUM]:
        assert fusion.formula == SUM or fusion.share in (0, 1)
    else:
        assert (fusion.formula, fusion.share in SHARES) == (RECIPROCAL_RANK, True)
