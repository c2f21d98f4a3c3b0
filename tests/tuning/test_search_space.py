"""The search space: rising thresholds, and no two points with the same effect."""

import dataclasses
import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tf_smoothclir.settings.model import ModelSettings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.training import TrainingSettings
from tf_smoothclir.tuning import search_space
from tf_smoothclir.tuning.search_space import (
    VALUES,
    combinations,
    threshold_tuples,
    with_values,
)
from tf_smoothclir.two_tower.builder import configured_loss
from tf_smoothclir.utils.errors import InputError


def settings_of(**model):
    return RunSettings(model=ModelSettings(**model))


def _combinations(names, settings):
    return combinations(search_space.search_space(sorted(names), settings))


def points_of(names, settings):
    """All combinations of a space."""
    return list(_combinations(names, settings))


def rising(number):
    return tuple(round((i + 1) / (number + 1), 6) for i in range(number))


@given(st.integers(1, 9))
def test_thresholds_are_in_order_inside_the_limits_and_all_different(number):
    found = threshold_tuples(number)
    levels = max(9, number + 3)
    assert len(set(found)) == len(found) == math.comb(levels, number)
    for thresholds in found:
        assert len(thresholds) == number
        edges = (-1, *thresholds, 1)
        assert all(low < high for low, high in itertools.pairwise(edges))


def test_the_grid_of_three_grades_holds_the_papers_thresholds():
    found = threshold_tuples(2)
    assert len(found) == 9 * 8 // 2
    assert (0.2, 0.7) in found


@given(
    st.sets(st.sampled_from(search_space.searchable()), min_size=1, max_size=3),
    st.sampled_from([1, 2, 3]),
)
def test_every_point_is_different_and_makes_settings_that_can_be_used(names, number):
    settings = settings_of(thresholds=rising(number), loss="cumulative_logits")
    some = list(itertools.islice(_combinations(names, settings), 0, 2000, 97))
    assert len({repr(sorted(point.items())) for point in some}) == len(some)
    for point in some:
        changed = with_values(settings, point)
        configured_loss(changed)  # does not raise
        assert len(changed.model.thresholds) == number


def test_towers_that_exclude_other_settings_are_left_out(built_in_alone):
    towers = [point["tower"] for point in points_of(["tower"], settings_of())]
    assert towers == ["average_pooling", "cnn", "lstm"]
    weighted = points_of(["tower", "epsilon"], settings_of(token_weights="idf"))
    assert {point["tower"] for point in weighted} == {"average_pooling"}
    with pytest.raises(InputError, match="nothing to choose from"):
        points_of(["tower"], settings_of(token_weights="idf"))


def test_values_of_a_trial_change_their_settings_and_no_others():
    settings = settings_of(dim=16)
    found = with_values(
        settings,
        {"thresholds": "0.1,0.35", "learning_rate": 0.03, "epochs": 7, "tuner/round": 1},
    )
    expected = dataclasses.replace(
        settings,
        model=ModelSettings(dim=16, thresholds=(0.1, 0.35)),
        training=dataclasses.replace(settings.training, learning_rate=0.03, epochs=7),
    )
    assert found == expected


def test_what_a_loss_ignores_is_not_searched_with_it():
    points = points_of(["thresholds", "loss"], settings_of())
    losses = [point["loss"] for point in points]
    assert losses.count("sosl") == 36
    assert [p for p in points if p["loss"] == "three_part_l2"] == [{"loss": "three_part_l2"}]
    losses = [point["loss"] for point in points_of(["loss", "temperature"], settings_of())]
    assert losses.count("sosl") == 1
    assert losses.count("cumulative_logits") == len(VALUES["temperature"])


def test_list_losses_are_left_out_with_batches_of_pairs():
    assert {"loss": "softmax"} not in points_of(["loss"], settings_of())
    lists = dataclasses.replace(settings_of(), training=TrainingSettings(batching="lists"))
    assert {"loss": "softmax"} in points_of(["loss"], lists)


def test_a_loss_that_does_not_take_the_number_of_grades_is_left_out():
    points = points_of(["loss"], settings_of(thresholds=(0.5,)))
    assert {"loss": "three_part_l2"} not in points
    assert {"loss": "sosl"} in points


@pytest.mark.parametrize(
    ("names", "loss", "message"),
    [
        (["threshold"], "sosl", "'threshold' cannot be searched"),
        (["dim", "dim"], "sosl", "'dim' is named twice"),
        ([], "sosl", "nothing is named"),
        (["thresholds"], "three_part_l2", "nothing to choose from with --loss=three_part_l2"),
    ],
)
def test_a_mistake_in_the_searched_names_is_an_error(names, loss, message):
    with pytest.raises(InputError, match=message):
        search_space.search_space(names, settings_of(loss=loss))


@pytest.mark.parametrize("names", [["thresholds"], ["loss"], ["epsilon"]])
@pytest.mark.parametrize("thresholds", [(0.7, 0.2), (0.2, 0.2), (0.2, 1.0)])
def test_unusable_thresholds_are_an_error_even_if_they_are_searched(names, thresholds):
    with pytest.raises(InputError, match=r"--thresholds: thresholds must be strictly increasing"):
        search_space.search_space(names, settings_of(thresholds=thresholds))


def test_keras_tuner_sees_a_choice_for_each_name():
    space = search_space.search_space(["thresholds", "epsilon"], settings_of())
    assert [(hp.name, len(hp.values)) for hp in space.space] == [("thresholds", 36), ("epsilon", 7)]
