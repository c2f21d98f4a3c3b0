"""The search space: finite lists of values, so that trials can be counted and never repeat."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import keras_tuner
import numpy as np

from tf_smoothclir import plugins
from tf_smoothclir.losses.arguments import check_thresholds
from tf_smoothclir.plugins import LOSSES, TOWERS
from tf_smoothclir.settings.combinations import broken_rules
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.training import TrainingSettings
from tf_smoothclir.training.tasks import check_model
from tf_smoothclir.utils.errors import InputError, input_error

# In addition to the thresholds. The paper suggests ε from 0.25 to 1 and plots 0 to 2 (Figure 4);
# the plain cosine, ε = 0, is for comparison only.
VALUES = {
    "epsilon": (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0),
    "learning_rate": (0.001, 0.003, 0.01, 0.03, 0.1),
    "dim": (32, 64, 128),
    "temperature": (0.05, 0.1, 0.2, 0.5, 1.0),
    "loss": LOSSES,
    "psq_alpha": (0.003, 0.01, 0.03, 0.1, 0.3),
    "psq_beta": (0.0, 0.1, 0.3, 0.5, 0.7),
    "tower": TOWERS,
    "optimizer": TrainingSettings.__dataclass_fields__["optimizer"].metadata["choices"],
}
_LARGEST = 1_000_000


@dataclasses.dataclass(frozen=True)
class SearchSpace:
    """All combinations of values that make a difference.

    Attributes:
        names: The searched settings.
        points: The combinations, each with a value for every name; thresholds are written as in
            their flag, "0.2,0.7". The last name varies fastest.
    """

    names: tuple[str, ...]
    points: tuple[tuple, ...]

    @classmethod
    def of(cls, names: Sequence[str], settings: RunSettings) -> SearchSpace:
        """The space over some settings."""
        _check_names(names)
        try:
            check_thresholds("thresholds", settings.model.thresholds)
        except ValueError as error:
            raise InputError(f"--thresholds: {error}.") from error
        lists = {name: _values_of(name, settings) for name in names}
        size = int(np.prod([len(values) for values in lists.values()], dtype=np.float64))
        if size > _LARGEST:
            raise input_error(
                f"--tune={','.join(names)}",
                f"{size:,} combinations are too many",
                "Name fewer",
            )
        points = tuple(itertools.product(*lists.values()))
        points = tuple(_without_idle_values(tuple(names), points, settings))
        if len(points) < 2:
            raise input_error(
                f"--tune={','.join(names)}",
                f"there is nothing to choose from with --loss={settings.model.loss} and the other"
                " settings",
                f"Name other settings of {_listed()}",
            )
        return cls(tuple(names), points)

    def hyperparameters(self) -> keras_tuner.HyperParameters:
        """The space for keras-tuner: a choice for each name."""
        space = keras_tuner.HyperParameters()
        for name, column in zip(self.names, zip(*self.points)):
            space.Choice(name, list(dict.fromkeys(column)))
        return space

    def values(self, point: int) -> dict:
        """Name -> value of a point."""
        return dict(zip(self.names, self.points[point]))

    def features(self) -> np.ndarray:
        """`[points, features]` in [0, 1]; similar points are close.

        A threshold is its own feature. Other numbers become their place in the list of values,
        which is even on the scale that they are searched on. Names, as of losses, are one-hot.
        """
        columns = []
        for name, column in zip(self.names, zip(*self.points)):
            listed = list(dict.fromkeys(column))
            if name == "thresholds":
                columns += np.array([parse_thresholds(text) for text in column]).T.tolist()
            elif isinstance(listed[0], str):
                columns += [[value == one for value in column] for one in listed]
            else:
                place = {value: index for index, value in enumerate(listed)}
                columns.append([place[value] / max(len(listed) - 1, 1) for value in column])
        return np.array(columns, np.float64).T


def threshold_tuples(number: int) -> list[tuple[float, ...]]:
    """The searched thresholds: all rising choices of `number` levels.

    The levels are 0.1, 0.2, ..., 0.9. For more than six thresholds there are `number + 3` levels,
    evenly spaced between 0 and 1. None is below 0, because untrained towers score about 0.
    """
    levels = max(9, number + 3)
    rising = [round(level / (levels + 1), 6) for level in range(1, levels + 1)]
    return list(itertools.combinations(rising, number))


def thresholds_text(thresholds: Sequence[float]) -> str:
    """Thresholds as written in their flag: "0.2,0.7"."""
    return ",".join(f"{threshold:g}" for threshold in thresholds)


def parse_thresholds(text: str) -> tuple[float, ...]:
    """The thresholds that a flag's text gives."""
    return tuple(map(float, text.split(",")))


def uses_thresholds(loss: str) -> bool:
    """Whether the value of a loss depends on the thresholds."""
    return "thresholds" in LOSSES[loss].settings


def _uses_temperature(loss: str) -> bool:
    return "temperature" in LOSSES[loss].settings


def with_values(settings: RunSettings, values: dict) -> RunSettings:
    """Settings with the values of a trial; keys that name no setting are ignored."""
    names = settings.values().keys()
    return changed(
        settings,
        {
            name: parse_thresholds(value) if name == "thresholds" else value
            for name, value in values.items()
            if name in names
        },
    )


def _values_of(name: str, settings: RunSettings) -> Sequence:
    if name == "thresholds":
        return [thresholds_text(t) for t in threshold_tuples(len(settings.model.thresholds))]
    if name in ("loss", "tower"):
        registry = VALUES[name]
        offered = (one for one in registry if registry.plugin(one).fact("is_searched", True))
        return [value for value in offered if _is_usable(name, value, settings)]
    return _searched()[name]


def searchable() -> tuple[str, ...]:
    """The settings that can be searched, those of registered plug-ins too."""
    return ("thresholds", *_searched())


def _searched() -> dict[str, Sequence]:
    of_plugins = {
        field.name: field.metadata["searched"]
        for group in plugins.groups().values()
        for field in dataclasses.fields(group)
        if field.metadata["searched"]
    }
    return {**VALUES, **of_plugins}


def _is_usable(name: str, value: str, settings: RunSettings) -> bool:
    """Whether a loss or tower fits the other settings, such as batching or token weights."""
    trial = with_values(settings, {name: value})
    if any(name in rule.names for rule, _ in broken_rules(trial)):
        return False
    try:
        if name == "loss":
            check_model(trial)
    except InputError:
        return False
    return True


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if name not in searchable() or list(names).count(name) > 1:
            wrong = "is named twice" if name in searchable() else "cannot be searched"
            raise input_error(
                f"--tune={','.join(names)}", f"{name!r} {wrong}", f"Name settings of {_listed()}"
            )
    if not names:
        raise input_error("--tune=", "nothing is named", f"Name settings of {_listed()}")


def _listed() -> str:
    return ", ".join(searchable())


def _without_idle_values(names, points, settings):
    """Yields the points, of those that differ only in what their loss ignores just the first."""
    seen = set()
    for point in points:
        values = dict(zip(names, point))
        loss = values.get("loss", settings.model.loss)
        if "thresholds" in values and not uses_thresholds(loss):
            values["thresholds"] = thresholds_text(settings.model.thresholds)
        if "temperature" in values and not _uses_temperature(loss):
            values["temperature"] = settings.model.temperature
        point = tuple(values[name] for name in names)
        if point not in seen:
            seen.add(point)
            yield point
