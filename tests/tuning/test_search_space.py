"""The search space: rising thresholds, and no two points with the same effect."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.search import searchable
from tf_smoothclir.tuning import search_space
from tf_smoothclir.tuning.search_space import combinations, threshold_tuples, with_values
from tf_smoothclir.two_tower.builder import configured_loss
from tf_smoothclir.utils.errors import InputError


def settings_of(**changes):
    return changed(RunSettings(), changes)


def points_of(names, **changes):
    return list(combinations(search_space.search_space(names, settings_of(**changes))))


@given(st.integers(1, 9))
def test_thresholds_are_in_order_inside_the_limits_and_all_different(number):
    found = threshold_tuples(number)
    levels = max(11, number + 5)
    assert len(set(found)) == len(found) == math.comb(levels, number)
    for thresholds in found:
        assert len(thresholds) == number
        assert all(low < high for low, high in itertools.pairwise((-1, *thresholds, 1)))
    assert {(0.2, 0.7), (0.0, 0.95)} <= set(threshold_tuples(2))  # of the paper, and the ends


@given(
    st.sets(st.sampled_from(list(searchable())), min_size=1, max_size=3), st.sampled_from([1, 2, 3])
)
def test_every_point_is_different_and_makes_settings_that_can_be_used(names, number):
    rising = tuple(round((i + 1) / (number + 1), 6) for i in range(number))
    settings = settings_of(thresholds=rising, loss="cumulative_logits")
    every = combinations(search_space.search_space(sorted(names), settings))
    some = list(itertools.islice(every, 0, 2000, 97))
    assert len({repr(sorted(point.items())) for point in some}) == len(some)
    for point in some:
        found = with_values(settings, point)
        configured_loss(found)  # does not raise
        assert len(found.model.thresholds) == number


def test_towers_that_exclude_other_settings_are_left_out(built_in_alone):
    towers = [point["tower"] for point in points_of(["tower"])]
    assert towers == ["average_pooling", "cnn", "lstm"]
    weighted = points_of(["epsilon", "tower"], token_weights="idf")
    assert {point["tower"] for point in weighted} == {"average_pooling"}
    with pytest.raises(InputError, match="nothing to choose from"):
        points_of(["tower"], token_weights="idf")


def test_values_of_a_trial_change_their_settings_and_no_others():
    values = {"thresholds": "0.1,0.35", "learning_rate": 0.03, "epochs": 7, "tuner/round": 1}
    found = with_values(settings_of(dim=16), values)
    assert found == settings_of(dim=16, thresholds=(0.1, 0.35), learning_rate=0.03, epochs=7)


def test_what_a_loss_ignores_or_cannot_be_used_with_is_not_searched_with_it():
    space = search_space.search_space(["thresholds", "epsilon"], settings_of())
    assert [(hp.name, len(hp.values)) for hp in space.space] == [("thresholds", 55), ("epsilon", 7)]
    points = points_of(["loss", "thresholds"])
    losses = [point["loss"] for point in points]
    assert losses.count("sosl") == 55
    assert [p for p in points if p["loss"] == "three_part_l2"] == [{"loss": "three_part_l2"}]
    losses = [point["loss"] for point in points_of(["loss", "temperature"])]
    assert losses.count("sosl") == 1
    assert losses.count("cumulative_logits") == len(searchable()["temperature"])

    assert {"loss": "softmax"} in points_of(["loss"], batching="lists")
    assert {"loss": "softmax"} not in points_of(["loss"])  # in batches of pairs
    two_grades = points_of(["loss"], thresholds=(0.5,))
    assert {"loss": "three_part_l2"} not in two_grades
    assert {"loss": "sosl"} in two_grades


@pytest.mark.parametrize(
    ("names", "model", "message"),
    [
        (["threshold"], {}, "'threshold' cannot be searched"),
        (["dim", "dim"], {}, "'dim' is named twice"),
        ([], {}, "nothing is named"),
        (["thresholds"], {"loss": "three_part_l2"}, "nothing to choose from with --loss=three_par"),
        (["loss"], {"thresholds": (0.2, 0.2)}, "--thresholds: thresholds must be strictly increas"),
    ],
)
def test_a_mistake_in_the_searched_names_or_in_thresholds_is_an_error(names, model, message):
    with pytest.raises(InputError, match=message):
        search_space.search_space(names, settings_of(**model))
