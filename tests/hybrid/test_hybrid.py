"""Fusion of lexical and dense scores, and how its share is chosen on validation queries."""

import dataclasses

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.lexical.helpers import tokenized
from tests.training.tiny_set import DOCUMENTS, QUERIES
from tf_smoothclir.hybrid import fusion as fusion_module
from tf_smoothclir.hybrid.fusion import FORMULAS, RECIPROCAL_RANK, SUM, Fusion, reciprocal_ranks
from tf_smoothclir.hybrid.learning import SHARES, _Learner, learn_fusion, may_count
from tf_smoothclir.lexical.learning import FEEDBACK_WEIGHTS
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.lexical.validation import Validation
from tf_smoothclir.utils.errors import InputError

RANDOM = np.random.default_rng(5)
LEXICAL = RANDOM.random((4, 30)).astype(np.float32) * 20
DENSE = RANDOM.random((4, 30)).astype(np.float32) / 3


def refuse(query_rows):
    raise AssertionError("a part without weight was asked")


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 0.5, 0.7, 1.0])
def test_documents_are_in_the_order_of_standardised_scores(share):
    fusion = Fusion(share, 5.5, 0.09)
    expected = (1 - share) * LEXICAL / 5.5 + share * DENSE / 0.09
    found = fusion.rows(LEXICAL.__getitem__, DENSE.__getitem__)(np.arange(4))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(np.argsort(-found), np.argsort(-expected))


def test_lexical_scores_count_as_they_are_and_a_part_without_weight_is_not_asked():
    rows, scale = np.arange(4), 5.5 / 0.09
    assert Fusion(0.5, 5.5, 0.09).weights == (1, pytest.approx(scale))
    assert Fusion(0.2, 5.5, 0.09).weights == (1, pytest.approx(scale / 4))
    lexical, dense = Fusion(0.0, 5.5, 0.09), Fusion(1.0, 5.5, 0.09)
    np.testing.assert_array_equal(lexical.rows(LEXICAL.__getitem__, refuse)(rows), LEXICAL)
    found = dense.rows(refuse, DENSE.__getitem__)(rows)
    np.testing.assert_array_equal(found, np.float32(scale) * DENSE)
    # Scores that are all equal are no error.
    assert Fusion(0.5, 5.5, 0.0).weights == (1, 0)  # untrained towers
    assert Fusion(1.0, 5.5, 0.0).weights == (1, 0)
    assert np.isfinite(Fusion(0.5, 0.0, 0.09).weights).all()  # no word in common


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=200), st.integers(1, 250))
@example([5, -1, 5, 2], 250)  # the two best are equal: both are first, and the next one is third
@example([5, 1, 4, 4], 2)  # what equals the last of the best is not left out
def test_points_are_of_the_number_of_documents_that_score_higher(scores, depth):
    ranks = [1 + sum(other > one for other in scores) for one in scores]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fusion_module, "DEPTH", depth)
        found = reciprocal_ranks(np.array([scores], np.float32))
    expected = [
        60 / (60 + rank) if rank <= depth and one > 0 else 0 for rank, one in zip(ranks, scores)
    ]
    np.testing.assert_allclose(found, [expected], rtol=1e-6)
    assert found.dtype == np.float32


@pytest.mark.parametrize("share", [0.1, 0.5, 0.7])
def test_ranks_are_fused_whatever_the_scores(share):
    fusion = Fusion(share, 5.5, 0.09, formula=RECIPROCAL_RANK)
    ranks = [1 + np.argsort(np.argsort(-half, axis=1), axis=1) for half in (LEXICAL, DENSE)]
    expected = (1 - share) / (60 + ranks[0]) + share / (60 + ranks[1])
    scale = 60 * 15 * 5.5
    for change in (lambda scores: scores, np.exp, lambda scores: 1000 * scores + 7):
        halves = [change(half).__getitem__ for half in (LEXICAL, DENSE)]
        found = fusion.rows(*halves)(np.arange(4))
        np.testing.assert_allclose(found, scale * expected, rtol=1e-5)
    assert fusion.by_ranks
    assert fusion.of_pairs == Fusion(share, 5.5, 0.09)  # pairs are scored by the sum
    assert not fusion.of_pairs.by_ranks


@pytest.mark.parametrize("formula", FORMULAS)
def test_it_is_kept_as_json(formula, tmp_path):
    path = tmp_path / "hybrid.json"
    fusion = Fusion(0.1 + 0.2, 1 / 3, 0.07, 12.5, 3.25, formula)
    fusion.save(path)
    assert Fusion.load(path) == fusion
    path.write_text('{"share": 0.25, "lexical_deviation": 2.0, "dense_deviation": 0.5}')
    assert Fusion.load(path) == Fusion(0.25, 2.0, 0.5)  # without a formula, a sum
    assert Fusion.load(path).weights == (1, pytest.approx(2 / 0.5 / 3))
    Fusion(0.5, 1.0, 1.0, formula=SUM).save(path)
    unknown = path.read_text().replace(SUM, "product")
    for text in ("{}", '{"share": "much"}', "[", "", unknown):
        path.write_text(text)
        with pytest.raises(InputError, match=r"hybrid\.json: .*Restore the file, or train again"):
            Fusion.load(path)


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
    assert may_count(texts, *rows, feedback=0.0) == (0.0 not in shares)
    assert fusion.formula == SUM
    assert fusion.feedback in FEEDBACK_WEIGHTS
    validation = Validation(texts.retrieval_set)
    assert fusion.lexical_deviation == pytest.approx(validation.deviation(rows[0]))
    assert fusion.dense_deviation == pytest.approx(validation.deviation(rows[1]))
    found = validation(texts.with_feedback(fusion.rows(*rows), fusion.feedback).scores)
    assert found >= max(map(validation, rows))  # no part alone does better


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


@pytest.mark.parametrize("best", [(0, 2), (3, 0)])
def test_each_fusion_has_its_best_weight_of_feedback(texts, monkeypatch, best):
    shape = len(best), len(FEEDBACK_WEIGHTS)
    qualities = [0.5 + 0.1 * (best[row] == place) for row, place in np.ndindex(*shape)]
    learner = _Learner(texts, *[lambda rows: np.ones((len(rows), 30), np.float32)] * 2)
    monkeypatch.setattr(Validation, "of_variants", lambda self, variants: qualities)
    fusions = [Fusion(0.0, 1.0, 1.0), Fusion(0.3, 1.0, 1.0)]
    found = [fusion.feedback for fusion in learner.best_weights(fusions)]
    assert found == [FEEDBACK_WEIGHTS[place] for place in best]


@pytest.mark.parametrize(
    ("gain", "chosen"),
    [
        (0.2, 0.3),
        (0.0, 0.0),
        ([1.0, -0.9] * 10, 0.0),  # 0.05 on average with a standard error of 0.2: chance
    ],
)
def test_a_hybrid_ranks_only_if_it_is_better_than_its_better_half(texts, monkeypatch, gain, chosen):
    learner = _Learner(texts, *[lambda rows: np.ones((len(rows), 30), np.float32)] * 2)
    fused = dataclasses.replace(learner._lexical_alone, share=0.3)
    # Of the lexical model, of the fusion, of the towers: three metrics of 20 queries.
    each = [np.zeros(20), np.resize(gain, 20), np.full(20, -0.1)]
    measured = [0.5 + np.tile(gains[:, np.newaxis], 3) for gains in each]
    monkeypatch.setattr(Validation, "per_query", lambda self, variants: measured)
    assert learner.choose([learner._lexical_alone, fused]).share == chosen
