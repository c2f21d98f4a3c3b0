"""Fusion of lexical and dense scores, and how its share is chosen on validation queries."""

import dataclasses
import itertools
import time

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


def rows_of(*halves):
    return {part: own.__getitem__ for part, own in zip(("lexical", "dense", "encoder"), halves)}


def weights(fusion):
    assert fusion.weights["encoder"] == 0
    return fusion.weights["lexical"], fusion.weights["dense"]


def test_lexical_scores_count_as_they_are_and_a_part_without_weight_is_not_asked():
    rows, scale = np.arange(4), 5.5 / 0.09
    assert weights(Fusion(0.5, 5.5, 0.09)) == (1, pytest.approx(scale))
    assert weights(Fusion(0.2, 5.5, 0.09)) == (1, pytest.approx(scale / 4))
    lexical, dense = Fusion(0.0, 5.5, 0.09), Fusion(1.0, 5.5, 0.09)
    np.testing.assert_array_equal(lexical.rows({"lexical": LEXICAL.__getitem__})(rows), LEXICAL)
    found = dense.rows({"dense": DENSE.__getitem__})(rows)
    np.testing.assert_array_equal(found, np.float32(scale) * DENSE)
    # Scores that are all equal are no error.
    assert weights(Fusion(0.5, 5.5, 0.0)) == (1, 0)  # untrained towers
    assert weights(Fusion(1.0, 5.5, 0.0)) == (1, 0)
    assert weights(Fusion(0.5, 0.0, 0.09)) == (1, pytest.approx(1 / 0.09))  # no word in common


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize(
    "shares",
    [*((share, 0.0) for share in (0.0, *SHARES, 1.0)), *((0.0, share) for share in SHARES),
     (0.3, 0.2), (0.05, 0.95), (0.5, 0.5), (0.0, 1.0)],
)  # fmt: skip
def test_parts_have_the_shares_that_they_were_given(shares, formula):
    dense, encoder = shares
    fusion = Fusion(dense, 5.5, 0.09, formula=formula, encoder_share=encoder, encoder_deviation=2.0)
    halves = {"lexical": LEXICAL, "dense": DENSE, "encoder": -LEXICAL[::-1] + 21}
    expected = (1 - dense - encoder) * LEXICAL / 5.5 + dense * DENSE / 0.09
    expected += encoder * halves["encoder"] / 2
    if formula == RECIPROCAL_RANK:
        ranks = {p: 1 + np.argsort(np.argsort(-own, axis=1), axis=1) for p, own in halves.items()}
        expected = sum(fusion.shares[part] / (60 + own) for part, own in ranks.items())
    asked = {part: halves[part].__getitem__ for part in fusion.parts}  # and no others
    scale = 60 * 15 * 5.5 if fusion.by_ranks else 5.5 / (fusion.shares["lexical"] or 1)
    scores = fusion.rows(asked)(np.arange(4))
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, scale * expected, rtol=1e-4)


def test_a_part_takes_its_share_from_all_others_alike():
    both = Fusion(0.5, 5.5, 0.09, feedback=2.0).with_share("encoder", 0.2)
    assert (both.share, both.encoder_share, both.feedback) == (0.4, 0.2, 2.0)
    alone = both.with_share("encoder", 1)
    assert alone.shares == {"lexical": 0, "dense": 0, "encoder": 1}
    assert alone.parts == {"encoder", "lexical"}  # whose words feedback reads
    for share in SHARES:  # whatever rounding leaves is no share
        of_two = dataclasses.replace(alone, feedback=0.0).with_share("dense", share)
        assert of_two.parts == {"dense", "encoder"}
        swapped = Fusion(1.0, 5.5, 0.09).with_share("encoder", share)
        assert swapped.parts == {"dense", "encoder"}


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
    expected = fusion.rows(rows_of(LEXICAL, DENSE))(np.arange(4))
    for change in (np.exp, lambda scores: 1000 * scores + 7):
        found = fusion.rows(rows_of(*map(change, (LEXICAL, DENSE))))(np.arange(4))
        np.testing.assert_array_equal(found, expected)
    assert fusion.by_ranks
    assert fusion.of_pairs == Fusion(share, 5.5, 0.09)  # pairs are scored by the sum
    assert not fusion.of_pairs.by_ranks
    assert str(fusion.of_pairs) == f"vectors have {share:.0%} of the score, feedback 0"
    of_three = dataclasses.replace(fusion.with_share("encoder", 0.5), feedback=2.5)
    parts = f"vectors have {share / 2:.0%} of the score, the encoder 50%, by reciprocal ranks"
    assert str(of_three) == f"{parts}, feedback 2.5"


@pytest.mark.parametrize("formula", FORMULAS)
def test_it_is_kept_as_json(formula, tmp_path):
    path = tmp_path / "hybrid.json"
    fusion = Fusion(0.1 + 0.2, 1 / 3, 0.07, 12.5, 3.25, formula)
    fusion.save(path)
    assert Fusion.load(path) == fusion
    path.write_text('{"share": 0.25, "lexical_deviation": 2.0, "dense_deviation": 0.5}')
    assert Fusion.load(path) == Fusion(0.25, 2.0, 0.5, 0.0, 0.0, SUM, 0.0, 0.0)  # a sum
    assert weights(Fusion.load(path)) == (1, pytest.approx(2 / 0.5 / 3))
    Fusion(0.5, 1.0, 1.0, formula=SUM).save(path)
    unknown = path.read_text().replace(SUM, "product")
    for text in ("{}", '{"share": "much"}', "[", "", unknown):
        path.write_text(text)
        with pytest.raises(InputError, match=r"hybrid\.json: .*Restore the file, or train again"):
            Fusion.load(path)


NOISE = np.random.default_rng(6).normal(size=(3, QUERIES, DOCUMENTS)).astype(np.float32)


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
    rows = rows_of(knowing(texts, 0, lexical), knowing(texts, 1, dense) / 100)
    begin = time.monotonic()
    fusion = learn_fusion(texts, rows)
    assert 0 < fusion.seconds < time.monotonic() - begin + 0.001  # which is rounded
    assert fusion.share in shares
    for early in (True, False):
        assert may_count(texts, rows, Fusion(0.0, 1.0, 1.0), early) == (0.0 not in shares)
    assert fusion.formula == SUM
    assert fusion.feedback in FEEDBACK_WEIGHTS
    validation = Validation(texts.retrieval_set)
    assert fusion.lexical_deviation == pytest.approx(validation.deviation(rows["lexical"]))
    assert fusion.dense_deviation == pytest.approx(validation.deviation(rows["dense"]))
    found = validation(texts.with_feedback(fusion.rows(rows), fusion.feedback).scores)
    assert found >= max(map(validation, rows.values()))  # no part alone does better


@pytest.mark.parametrize("knowing_part", [*itertools.permutations([9, 5, 0])])
def test_what_knows_nothing_has_no_share_beside_two_that_do(texts, knowing_part):
    """Of three parts one knows the mates, one the related documents, and one nothing."""
    grades = {9: {2: 9}, 5: {1: 5}, 0: {}}
    halves = [knowing(texts, place, grades[one]) for place, one in enumerate(knowing_part)]
    fusion = learn_fusion(texts, rows_of(*halves))
    names = dict(zip(knowing_part, rows_of(*halves)))
    assert {part for part, share in fusion.shares.items() if share} == {names[9], names[5]}


@pytest.mark.parametrize("towers_know", [True, False])
def test_towers_have_to_add_to_a_table_and_an_encoder_together(texts, towers_know):
    """Beside the table alone they would be a gain even where they only know what the other does."""
    encoder = knowing(texts, 2, {1: 5})
    towers = knowing(texts, 1, {2: 9}) if towers_know else encoder
    rows = rows_of(knowing(texts, 0, {}), towers, encoder)
    others = learn_fusion(texts, {part: rows[part] for part in ("lexical", "encoder")})
    assert may_count(texts, rows, others, early=False) == towers_know
    assert may_count(texts, rows, Fusion(0.0, 1.0, 1.0), early=False)
    assert len(learn_fusion(texts, rows).parts - {"lexical"}) == 1 + towers_know
    extended = _Learner(texts, rows)._extended([Fusion(0.5, 1.0, 1.0)], FORMULAS)
    assert {fusion.formula for fusion in extended} == {SUM}  # two parts keep their formula


@pytest.mark.parametrize(
    ("gain", "alone", "early", "expected"),
    [
        (0.1, 0.1, False, True),
        (0.001, 0.1, False, False),  # not worth their time
        ([1.0, -0.9] * 10, 0.1, False, False),  # 0.05 on average with a standard error of 0.2
        (0.001, 0.1, True, True),
        (0.0, 0.1, True, False),
        (0.0, 0.39, True, True),  # nearly as good alone as the others, which have 0.5
    ],
)
def test_towers_count_if_they_add_what_is_worth_it(
    texts, monkeypatch, gain, alone, early, expected
):
    others = np.full((QUERIES, 3), 0.5)
    measured = [others, others + np.resize(gain, QUERIES)[:, np.newaxis]]
    monkeypatch.setattr(
        Validation, "of_variants", lambda self, variants: [0.5, 0.5, 0, 0, 0, alone]
    )
    monkeypatch.setattr(Validation, "per_query", lambda self, variants: measured)
    rows = rows_of(*np.ones((2, QUERIES, 30), np.float32))
    assert may_count(texts, rows, Fusion(0.0, 1.0, 1.0), early) == expected


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
    fusion = learn_fusion(texts, rows_of(*halves), **options)
    if formulas == [SUM]:
        assert fusion.formula == SUM or fusion.share in (0, 1)
    else:
        assert (fusion.formula, fusion.share in SHARES) == (RECIPROCAL_RANK, True)


@pytest.mark.parametrize("best", [(0, 2), (3, 0)])
def test_each_fusion_has_its_best_weight_of_feedback(texts, monkeypatch, best):
    shape = len(best), len(FEEDBACK_WEIGHTS)
    qualities = [0.5 + 0.1 * (best[row] == place) for row, place in np.ndindex(*shape)]
    learner = _Learner(texts, rows_of(*np.ones((2, QUERIES, 30), np.float32)))
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
    learner = _Learner(texts, rows_of(*np.ones((2, QUERIES, 30), np.float32)))
    fused = dataclasses.replace(learner._lexical_alone, share=0.3)
    # Of the lexical model, of the fusion, of the towers: three metrics of 20 queries.
    each = [np.zeros(20), np.resize(gain, 20), np.full(20, -0.1)]
    measured = [0.5 + np.tile(gains[:, np.newaxis], 3) for gains in each]
    monkeypatch.setattr(Validation, "per_query", lambda self, variants: measured)
    assert learner.choose([learner._lexical_alone, fused]).share == chosen
