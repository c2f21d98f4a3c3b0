"""Weighted sums of lexical and dense scores."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tf_smoothclir.hybrid import fusion as fusion_module
from tf_smoothclir.hybrid.fusion import FORMULAS, RECIPROCAL_RANK, Fusion, reciprocal_ranks
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


def test_scores_that_are_all_equal_are_no_error():
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
    expected = [60 / (60 + rank) if rank <= depth else 0 for rank in ranks]
    np.testing.assert_allclose(found, [expected], rtol=1e-6)
    assert found.dtype == np.float32


@pytest.mark.parametrize("share", [0.1, 0.5, 0.7])
def test_ranks_are_fused_whatever_the_scores(share):
    fusion = Fusion(share, 5.5, 0.09, formula=RECIPROCAL_RANK)
    ranks = [1 + np.argsort(np.argsort(-half, axis=1), axis=1) for half in (LEXICAL, DENSE)]
    expected = (1 - share) / (60 + ranks[0]) + share / (60 + ranks[1])
    scale = 60 * 15 * 5.5
    for change in (lambda scores: scores, np.exp, lambda scores: 1000 * scores - 7):
        halves = [change(half).__getitem__ for half in (LEXICAL, DENSE)]
        found = fusion.rows(*halves)(np.arange(4))
        np.testing.assert_allclose(found, scale * expected, rtol=1e-5)


def test_a_pair_is_scored_by_the_sum():
    fusion = Fusion(0.3, 5.5, 0.09, feedback=7.0, formula=RECIPROCAL_RANK)
    assert fusion.by_ranks
    assert fusion.of_pairs == Fusion(0.3, 5.5, 0.09, feedback=7.0)
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


SUM = '"share": 0.5, "lexical_deviation": 1.0, "dense_deviation": 1.0'


@pytest.mark.parametrize(
    "text", ["{}", '{"share": "much"}', "[", "", f'{{{SUM}, "formula": "product"}}']
)
def test_another_content_is_a_message(text, tmp_path):
    path = tmp_path / "hybrid.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"hybrid\.json: .*Restore the file, or train again"):
        Fusion.load(path)
