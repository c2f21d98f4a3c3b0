"""Settings of a search for other settings."""

import dataclasses
from collections.abc import Collection

from tf_smoothclir.plugins import LOSSES, any_part
from tf_smoothclir.settings.base import Rule, Settings, setting
from tf_smoothclir.settings.run import all_groups


def searchable() -> dict[str, Collection]:
    """Name -> values of each setting that can be searched, those of plug-ins last."""
    fields = (field for group in all_groups().values() for field in dataclasses.fields(group))
    return {
        field.name: field.metadata["searched"] for field in fields if field.metadata["searched"]
    }


def _lacks(loss: str, name: str) -> bool:
    """Whether a loss is without a setting that only some losses have."""
    having = LOSSES.plugin(loss).fact("settings", ("thresholds", "temperature"))
    return name in ("thresholds", "temperature") and name not in having


RULES = (
    Rule(
        lambda tune, distribution: distribution != "none",
        "only smoothclir-train trains in another way than one process on the whole set",
        "Leave it out here, and give it to smoothclir-train with the settings found here",
    ),
    Rule(
        lambda tune, retriever: bool(tune) and not any_part(retriever, "has_task"),
        "it has no towers, and only they have settings to search",
        "Leave --retriever out, or add towers by --retriever=hybrid",
    ),
    Rule(
        lambda tune, loss: "loss" not in tune and any(_lacks(loss, name) for name in tune),
        "this loss does not have one of these settings",
        "Name other settings, or another --loss",
    ),
    Rule(
        lambda tune, objects: bool(objects) and not {*tune}.isdisjoint(("loss", "tower", "dim")),
        "an object that Python gave has its own",
        "Name other settings",
    ),
)


def _what_can_be_searched() -> str:
    shown = {name: tuple(values) for name, values in searchable().items()}
    ranges = (
        f"{name} ({'all choices' if isinstance(first, str) else f'{first} to {last}'})"
        for name, (first, *_, last) in shown.items()
    )
    return f"Settings to search: {', '.join(ranges)}. Thresholds rise."


@dataclasses.dataclass(frozen=True)
class Search(Settings):
    """How to search."""

    tune: tuple[str, ...] = setting(("thresholds",), _what_can_be_searched)
    search: str = setting(
        "grid",
        "grid: all combinations in order, as in the paper. random: in random order, each at most"
        " once. bayesian: guided by a Gaussian process. hyperband: many short trials, the best ones"
        " repeated with more epochs, up to --epochs.",
        choices=("grid", "random", "bayesian", "hyperband"),
    )
    max_trials: int = setting(
        55,
        "Most trials; the whole grid of thresholds for three grades has 55. May be raised later.",
        minimum=1,
    )
    folds: int = setting(
        0,
        "Folds of cross-validation over the training and validation queries. 0 or 1: no"
        " cross-validation, but the validation split of the set.",
        minimum=0,
    )
