"""The search space: a choice for each searched setting, so that trials can be counted."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import keras_tuner

from tf_smoothclir.losses.base import check_thresholds
from tf_smoothclir.plugins import LOSSES, Registry
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.search import searchable
from tf_smoothclir.training.tasks import check_model
from tf_smoothclir.utils.errors import InputError, input_error

_OF_SOME_LOSSES = ("thresholds", "temperature")


def search_space(names: Sequence[str], settings: RunSettings) -> keras_tuner.HyperParameters:
    """A choice for each name, after checks; see `declare`."""
    for name in names:
        if name not in searchable() or list(names).count(name) > 1:
            wrong = "is named twice" if name in searchable() else "cannot be searched"
            raise _wrong(names, f"{name!r} {wrong}")
    if not names:
        raise _wrong(names, "nothing is named")
    try:
        check_thresholds("thresholds", settings.model.thresholds)
    except ValueError as error:
        raise InputError(f"--thresholds: {error}.") from error
    space = keras_tuner.HyperParameters()
    declare(space, names, settings)
    if count_combinations(space, 2) < 2:
        reason = f"there is nothing to choose from with --loss={settings.model.loss} and the other"
        raise _wrong(names, f"{reason} settings")
    return space


def _wrong(names: Sequence[str], reason: str) -> InputError:
    remedy = f"Name settings of {', '.join(searchable())}"
    return input_error(f"--tune={','.join(names)}", reason, remedy)


def declare(
    space: keras_tuner.HyperParameters, names: Sequence[str], settings: RunSettings
) -> None:
    """Declares the choices of some settings, the loss first, which some others go with."""
    # Thresholds are one choice, of texts as in their flag, so that they rise by construction.
    losses = [settings.model.loss]
    for name in sorted(names, key=lambda name: name != "loss"):
        values = _values_of(name, names, settings)
        if name == "loss":
            losses = values
        users = [loss for loss in losses if name in LOSSES[loss].settings]
        if name not in _OF_SOME_LOSSES or users == losses:
            space.Choice(name, values)
        elif users and "loss" in names:
            space.Choice(name, values, parent_name="loss", parent_values=users)


def _values_of(name: str, names: Sequence[str], settings: RunSettings) -> list:
    if name == "thresholds":
        found = threshold_tuples(len(settings.model.thresholds))
        return [",".join(f"{threshold:g}" for threshold in one) for one in found]
    values = searchable()[name]
    if not isinstance(values, Registry):
        return list(values)
    return [
        value
        for value in values
        if values.plugin(value).fact("is_searched", True)
        and _is_usable(name, value, names, settings)
    ]


def _is_usable(name: str, value: str, names: Sequence[str], settings: RunSettings) -> bool:
    """Whether a loss or tower fits the other settings, such as batching or token weights."""
    try:
        trial = changed(settings, {name: value}, varied={*names} - {name})
        if name == "loss":
            check_model(trial)
    except InputError:
        return False
    return True


def combinations(space: keras_tuner.HyperParameters) -> Iterator[dict[str, Any]]:
    """Yields all values that make a difference; the last name varies fastest."""

    def extended(values: dict[str, Any], choices: Sequence) -> Iterator[dict[str, Any]]:
        if not choices:
            yield values
            return
        choice, *others = choices
        parents = choice.conditions
        if all(values.get(parent.name) in parent.values for parent in parents):
            for value in choice.values:
                yield from extended({**values, choice.name: value}, others)
        else:
            yield from extended(values, others)

    return extended({}, space.space)


def count_combinations(space: keras_tuner.HyperParameters, most: int) -> int:
    """The number of combinations, at most `most`."""
    return sum(1 for _ in itertools.islice(combinations(space), most))


def threshold_tuples(count: int) -> list[tuple[float, ...]]:
    """The searched thresholds: all rising choices of `count` levels."""
    # The levels are those of the setting, with more, evenly spaced, for more than six thresholds.
    # None is below 0: untrained towers score about 0.
    levels, steps = searchable()["thresholds"], count + 4
    if steps >= len(levels):
        rising = (round(level / steps, 6) for level in range(steps))
        levels = (*rising, round(1 - 0.5 / steps, 6))
    return list(itertools.combinations(levels, count))


def parse_thresholds(text: str) -> tuple[float, ...]:
    """The thresholds that a flag's text gives."""
    return tuple(map(float, text.split(",")))


def setting_values(values: Mapping[str, Any], settings: RunSettings) -> dict[str, Any]:
    """The settings among the values of a trial, in the types of their fields."""
    names = settings.values().keys()
    return {
        name: parse_thresholds(value) if name == "thresholds" else value
        for name, value in values.items()
        if name in names
    }


def with_values(settings: RunSettings, values: Mapping[str, Any]) -> RunSettings:
    """Settings with the values of a trial."""
    return changed(settings, setting_values(values, settings))
