"""Fusion of lexical and dense scores, and how its share is chosen on validation queries."""

import dataclasses
import itertools
import time

import numpy as np
import pytest

from tests.cases import cases
from tests.training.tiny_set import DOCUMENTS, QUERIES
from tf_smoothclir.hybrid.fusion import Fusion, times_counted
from tf_smoothclir.hybrid.learning import SHARES, _Learner, learn_fusion, may_count
from tf_smoothclir.lexical.validation import FEEDBACK_WEIGHTS, Validation
from tf_smoothclir.utils.errors import InputError

RANDOM = np.random.default_rng(5)
LEXICAL = RANDOM.random((4, 30)).astype(np.float32) * 20
DENSE = RANDOM.random((4, 30)).astype(np.float32) / 3
NOISE = np.random.default_rng(6).normal(size=(3, QUERIES, DOCUMENTS)).astype(np.float32)
CHANCE = np.array([1.0, -0.9] * 10)  # 0.05 on average with a standard error of 0.2


def rows_of(*halves):
    return {part: own.__getitem__ for part, own in zip(("lexical", "dense", "encoder"), halves)}


def weights(fusion):
    assert fusion.weights["encoder"] == 0
    return fusion.weights["lexical"], fusion.weights["dense"]


def test_lexical_scores_count_as_they_are_and_a_part_without_weight_is_not_asked():
    rows, scale = np.arange(4), 5.5 / 0.09
    lexical, dense = Fusion(0.0, 5.5, 0.09), Fusion(1.0, 5.5, 0.09)
    np.testing.assert_array_equal(lexical.rows({"lexical": LEXICAL.__getitem__})(rows), LEXICAL)
    found = dense.rows({"dense": DENSE.__getitem__})(rows)
    np.testing.assert_array_equal(found, np.float32(scale) * DENSE)
    # Scores that are all equal are no error.
    assert weights(Fusion(0.5, 5.5, 0.0)) == (1, 0)  # untrained towers
    assert weights(Fusion(1.0, 5.5, 0.0)) == (1, 0)
    assert weights(Fusion(0.5, 0.0, 0.09)) == (1, pytest.approx(1 / 0.09))  # no word in common


@cases(
    "shares",
    *((share, 0.0) for share in (0.0, *SHARES, 1.0)),
    *((0.0, share) for share in SHARES),
    *((0.3, 0.2), (0.05, 0.95), (0.5, 0.5), (0.0, 1.0)),
)
def test_parts_have_the_shares_that_they_were_given(shares):
    dense, encoder = shares
    fusion = Fusion(dense, 5.5, 0.09, encoder_share=encoder, encoder_deviation=2.0)
    halves = {"lexical": LEXICAL, "dense": DENSE, "encoder": -LEXICAL[::-1] + 21}
    expected = (1 - dense - encoder) * LEXICAL / 5.5 + dense * DENSE / 0.09
    expected += encoder * halves["encoder"] / 2
    asked = {part: halves[part].__getitem__ for part in fusion.parts}  # and no others
    scale = 5.5 / (fusion.shares["lexical"] or 1)
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
        assert Fusion(1.0, 5.5, 0.09).with_share("encoder", share).parts == {"dense", "encoder"}


@cases("share", 0.1, 0.5, 0.7)
def test_it_is_described_by_the_shares_of_its_parts(share):
    fusion = Fusion(share, 5.5, 0.09)
    assert str(fusion) == f"vectors have {share:.0%} of the score, feedback 0"
    of_three = dataclasses.replace(fusion.with_share("encoder", 0.5), feedback=2.5)
    parts = f"vectors have {share / 2:.0%} of the score, the encoder 50%"
    assert str(of_three) == f"{parts}, feedback 2.5"


def test_vectors_count_once_for_each_known_word_and_at_least_once():
    assert times_counted(np.array([0, 1, 3, 25])).tolist() == [1, 1, 3, 25]
    assert times_counted(np.array([2])).dtype == np.float32


def test_it_is_kept_as_json(tmp_path):
    path = tmp_path / "hybrid.json"
    fusion = Fusion(0.1 + 0.2, 1 / 3, 0.07, 12.5, 3.25, 0.25, 1.5)
    fusion.save(path)
    assert Fusion.load(path) == fusion
    path.write_text('{"share": 0.25, "lexical_deviation": 2.0, "dense_deviation": 0.5}')
    assert Fusion.load(path) == Fusion(0.25, 2.0, 0.5, 0.0, 0.0, 0.0, 0.0)
    assert weights(Fusion.load(path)) == (1, pytest.approx(2 / 0.5 / 3))
    for text in ("{}", '{"share": "much"}', "[", ""):
        path.write_text(text)
        with pytest.raises(InputError, match=r"hybrid\.json: .*Restore the file, or train again"):
            Fusion.load(path)


def knowing(texts, number, grades):
    """Noise, but for the documents of some grades, which are far above it."""
    retrieval_set = texts.retrieval_set
    scores = NOISE[number].copy()
    for grade, height in grades.items():
        known = retrieval_set.grades == grade
        scores[retrieval_set.query_rows[known], retrieval_set.document_rows[known]] += height
    return scores


@cases(
    "lexical, dense, shares",
    ({2: 20, 1: 10}, {}, (0.0,)),
    ({2: -3, 1: -3}, {2: 3, 1: 2}, (1.0,)),
    ({2: 3, 1: 1}, {}, (0.0,)),
    # One knows the mates, the other one the related documents; only the sum knows both.
    ({2: 9}, {1: 5}, (0.2, 0.3, 0.5, 0.7)),
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
    assert fusion.feedback in FEEDBACK_WEIGHTS
    validation = Validation(texts.retrieval_set)
    assert fusion.lexical_deviation == pytest.approx(validation.deviation(rows["lexical"]))
    assert fusion.dense_deviation == pytest.approx(validation.deviation(rows["dense"]))
    found = validation(texts.with_feedback(fusion.rows(rows), fusion.feedback).scores)
    assert found >= max(map(validation, rows.values()))  # no part alone does better


@cases("knowing_part", *itertools.permutations([9, 5, 0]))
def test_what_knows_nothing_has_no_share_beside_two_that_do(texts, knowing_part):
    """Of three parts one knows the mates, one the related documents, and one nothing."""
    grades = {9: {2: 9}, 5: {1: 5}, 0: {}}
    halves = [knowing(texts, place, grades[one]) for place, one in enumerate(knowing_part)]
    fusion = learn_fusion(texts, rows_of(*halves))
    names = dict(zip(knowing_part, rows_of(*halves)))
    assert {part for part, share in fusion.shares.items() if share} == {names[9], names[5]}


@cases("towers_know", True, False)
def test_towers_have_to_add_to_a_table_and_an_encoder_together(texts, towers_know):
    """Beside the table alone they would be a gain even where they only know what the other does."""
    encoder = knowing(texts, 2, {1: 5})
    towers = knowing(texts, 1, {2: 9}) if towers_know else encoder
    rows = rows_of(knowing(texts, 0, {}), towers, encoder)
    others = learn_fusion(texts, {part: rows[part] for part in ("lexical", "encoder")})
    assert may_count(texts, rows, others, early=False) == towers_know
    assert may_count(texts, rows, Fusion(0.0, 1.0, 1.0), early=False)
    assert len(learn_fusion(texts, rows).parts - {"lexical"}) == 1 + towers_know


@cases(
    "gain, alone, early, expected",
    (0.1, 0.1, False, True),
    (0.0009, 0.1, False, False),  # not worth their time
    ([1.0, -0.9] * 10, 0.1, False, False),  # 0.05 on average with a standard error of 0.2
    (0.001, 0.1, True, True),
    (0.0, 0.1, True, False),
    (0.0, 0.39, True, True),  # nearly as good alone as the others, which have 0.5
)
def test_towers_count_if_they_add_enough(texts, monkeypatch, gain, alone, early, expected):
    others = np.full((QUERIES, 3), 0.5)
    measured = [others, others + np.resize(gain, QUERIES)[:, np.newaxis]]
    of_shares = [0.5, 0.5, 0, 0, 0, alone]
    monkeypatch.setattr(_Learner, "_qualities", lambda *_: of_shares)
    monkeypatch.setattr(Validation, "per_query", lambda self, variants: measured)
    rows = rows_of(*np.ones((2, QUERIES, 30), np.float32))
    assert may_count(texts, rows, Fusion(0.0, 1.0, 1.0), early) == expected


@cases("best", (0, 2), (3, 0))
@cases("gain", 0.1, CHANCE)
def test_each_fusion_has_its_best_weight_of_feedback(texts, monkeypatch, best, gain):
    """No feedback, which costs, where it is better by chance."""
    shape = len(best), len(FEEDBACK_WEIGHTS)
    gains = np.resize(gain, (QUERIES, 1)) * np.ones(3)
    measured = [0.5 + gains * (best[row] == place) for row, place in np.ndindex(*shape)]
    learner = _Learner(texts, rows_of(*np.ones((2, QUERIES, 30), np.float32)))
    monkeypatch.setattr(Validation, "per_query", lambda self, variants: measured)
    fusions = [Fusion(0.0, 1.0, 1.0), Fusion(0.3, 1.0, 1.0)]
    found = [fusion.feedback for fusion in learner.best_weights(fusions)]
    assert found == [FEEDBACK_WEIGHTS[place] * (gain is not CHANCE) for place in best]


@cases(
    "fused, towers, chosen",
    (0.2, -0.1, 0.3),
    (0.0, -0.1, 0.0),
    (CHANCE, -0.1, 0.0),
    (0.2, 0.3, 1.0),
    # Hazard: on few validation queries an encoder alone took everything from a table.
    (0.2, 0.2 + CHANCE, 0.3),
    (CHANCE, CHANCE, 0.0),
)
@cases("feedback", 0.0, 5.0)
def test_what_ranks_beats_what_costs_less(texts, monkeypatch, fused, towers, chosen, feedback):
    learner = _Learner(texts, rows_of(*np.ones((2, QUERIES, 30), np.float32)))
    fusion = dataclasses.replace(learner._lexical_alone, share=0.3)
    # Of the lexical model, of the fusion, of the towers: three metrics of 20 queries.
    measured = [0.5 + np.tile(np.resize(gain, (20, 1)), 3) for gain in (0, fused, towers)]
    monkeypatch.setattr(Validation, "per_query", lambda self, variants: measured)
    alone = dataclasses.replace(learner._vectors_alone[0], feedback=feedback)
    learner._vectors_alone = [alone]  # with feedback, by words, or without
    assert learner.choose([learner._lexical_alone, fusion]).share == chosen
