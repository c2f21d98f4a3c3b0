"""The search space: rising thresholds, and no two points with the same effect."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tf_smoothclir.settings.model import ModelSettings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.training import TrainingSettings
from tf_smoothclir.tuning import search_space
from tf_smoothclir.tuning.search_space import VALUES, SearchSpace, threshold_tuples, with_values
from tf_smoothclir.two_tower.builder import configured_loss
from tf_smoothclir.utils.errors import InputError


def settings_of(**model):
    return RunSettings(model=ModelSettings(**model))


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
    space = SearchSpace.of(sorted(names), settings)
    assert len(set(space.points)) == len(space.points)
    for point in range(0, len(space.points), 97):
        changed = with_values(settings, space.values(point))
        configured_loss(changed)  # does not raise
        assert len(changed.model.thresholds) == number


def test_towers_that_exclude_other_settings_are_left_out(built_in_alone):
    assert set(SearchSpace.of(["tower"], settings_of()).points) == {
        ("average_pooling",),
        ("cnn",),
        ("lstm",),
    }
    weighted = SearchSpace.of(["tower", "epsilon"], settings_of(token_weights="idf"))
    assert {tower for tower, _ in weighted.points} == {"average_pooling"}
    with pytest.raises(InputError, match="nothing to choose from"):
        SearchSpace.of(["tower"], settings_of(token_weights="idf"))


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


def test_a_loss_with_cut_points_is_tried_once_not_for_all_thresholds():
    space = SearchSpace.of(["loss", "thresholds"], settings_of())
    losses = [loss for loss, _ in space.points]
    assert losses.count("sosl") == 36
    assert [p for p in space.points if p[0] == "three_part_l2"] == [("three_part_l2", "0.2,0.7")]


def test_a_loss_without_temperature_is_tried_once_not_at_each():
    space = SearchSpace.of(["loss", "temperature"], settings_of())
    losses = [loss for loss, _ in space.points]
    assert losses.count("sosl") == 1
    assert losses.count("cumulative_logits") == len(VALUES["temperature"])


def test_list_losses_are_left_out_with_batches_of_pairs():
    space = SearchSpace.of(["loss"], settings_of())
    assert ("softmax",) not in space.points
    lists = dataclasses.replace(settings_of(), training=TrainingSettings(batching="lists"))
    assert ("softmax",) in SearchSpace.of(["loss"], lists).points


def test_a_loss_that_does_not_take_the_number_of_grades_is_left_out():
    space = SearchSpace.of(["loss"], settings_of(thresholds=(0.5,)))
    assert ("three_part_l2",) not in space.points
    assert ("sosl",) in space.points


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
        SearchSpace.of(names, settings_of(loss=loss))


@pytest.mark.parametrize("names", [["thresholds"], ["loss"], ["epsilon"]])
@pytest.mark.parametrize("thresholds", [(0.7, 0.2), (0.2, 0.2), (0.2, 1.0)])
def test_unusable_thresholds_are_an_error_even_if_they_are_searched(names, thresholds):
    with pytest.raises(InputError, match=r"--thresholds: thresholds must be strictly increasing"):
        SearchSpace.of(names, settings_of(thresholds=thresholds))


def test_too_large_a_space_is_an_error(monkeypatch):
    monkeypatch.setattr(search_space, "_LARGEST", 36 * 7 - 1)
    with pytest.raises(InputError, match="252 combinations are too many"):
        SearchSpace.of(["thresholds", "epsilon"], settings_of())


def test_features_are_thresholds_places_and_one_hot_names():
    space = SearchSpace(
        ("thresholds", "dim", "loss"), (("0.1,0.4", 32, "a"), ("0.2,0.9", 128, "b"))
    )
    expected = [[0.1, 0.4, 0, 1, 0], [0.2, 0.9, 1, 0, 1]]
    np.testing.assert_allclose(space.features(), expected)


def test_keras_tuner_sees_a_choice_for_each_name():
    space = SearchSpace.of(["thresholds", "epsilon"], settings_of()).hyperparameters()
    assert [(hp.name, len(hp.values)) for hp in space.space] == [("thresholds", 36), ("epsilon", 7)]
