"""Systems that are ordinary training runs, with thresholds chosen on validation only."""

from __future__ import annotations

import dataclasses
import itertools
import math
import operator
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from tf_smoothclir.papers.laboratory.experiment import Row, Study
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.utils.errors import input_error

if TYPE_CHECKING:
    from tf_smoothclir.papers.laboratory.cells import TrainingCell

TUNED_ON = "validation"
CUT_POINTS = tuple(itertools.product((0.0, 0.2), (0.4, 0.55), (0.7, 0.9)))  # of 3PartL2
_SMALLEST_STEP = 0.05
_FIRST_STEP = 0.2  # where all values of a grid are alike


@dataclasses.dataclass(frozen=True)
class System(Row):
    """One row of a table, or one curve or point of a figure."""

    name: str  # as shown in the table
    # setting -> value, the changes to the base settings; "epochs" never raises them
    changes: Mapping[str, object]
    # setting -> value, the changes for which `tuned` is tuned on validation; None if nothing is
    # tuned
    tuned_with: Mapping[str, object] | None = None
    # the setting with the scores between the grades: "thresholds" or "cut_points"
    tuned: str = "thresholds"

    def check(self, base, tune_epochs):
        self.settings(base)
        epochs = tune_epochs or base.training.epochs
        changed(base, {**(self.tuned_with or {}), "epochs": epochs})

    def settings(self, base: RunSettings, more: Mapping[str, object] | None = None) -> RunSettings:
        """The settings of its runs, `more` among them."""
        epochs = min(self.changes.get("epochs", base.training.epochs), base.training.epochs)
        return changed(base, {**self.changes, "epochs": epochs, **(more or {})})

    def cells(self, study):
        """Its runs, one for each seed; none if it has no thresholds."""
        chosen = self.chosen(study)
        if chosen is None:
            return []
        of_seeds = ({self.tuned: chosen, "seed": seed} for seed in study.seeds)
        return [_cell(study, self.settings(study.settings, changes)) for changes in of_seeds]

    def chosen(self, study: Study) -> tuple[float, ...] | None:
        """The thresholds, or cut points, that are best on validation; None if all runs failed."""
        if not study.grids or self.tuned_with is None:
            return getattr(study.settings.model, self.tuned)
        return _best(study, self._candidates(study))

    def tuning_cells(self, study):
        """The runs to choose thresholds by, as far as known; later, those beyond an edge too."""
        return list(self._candidates(study).values())

    def _candidates(self, study: Study) -> dict[tuple[float, ...], TrainingCell]:
        """Thresholds -> tuning run: the grid, and once it is finished what lies beyond."""
        if not study.grids or self.tuned_with is None:
            return {}
        model = changed(study.settings, self.tuned_with).model
        has_limit = self.tuned == "thresholds" and model.tower == "average_pooling"
        limit = highest_score(model.dim, model.epsilon) if has_limit else 1.0
        changes = {**self.tuned_with, "epochs": study.tune_epochs, "seed": study.seeds[0]}
        candidates, more = {}, reachable(study.grids[self.tuned], limit)
        while more:
            for values in more:
                settings = changed(study.settings, {**changes, self.tuned: values})
                candidates[values] = _cell(study, settings, tuning=True)
            if not all(cell.finished for cell in candidates.values()):
                break
            more = beyond_edge(_best(study, candidates), candidates, limit)
        return candidates


def _cell(study: Study, settings: RunSettings, *, tuning: bool = False) -> TrainingCell:
    from tf_smoothclir.papers.laboratory.cells import TrainingCell  # needs TensorFlow

    return TrainingCell(study, settings, tuning)


def _best(
    study: Study, cells: Mapping[tuple[float, ...], TrainingCell]
) -> tuple[float, ...] | None:
    """The thresholds whose run is best on validation; None if no run has finished."""
    select = study.settings.training.select_metric
    finished = {values: cell for values, cell in cells.items() if cell.finished}
    quality = {values: cell.metrics()[TUNED_ON][select] for values, cell in finished.items()}
    return max(quality, key=quality.get, default=None)


def threshold_grids(lower: Sequence[float], upper: Sequence[float]) -> dict:
    """The grids to tune over: all pairs θ_1 < θ_2, and `CUT_POINTS`."""
    pairs = tuple((low, high) for low in lower for high in upper if low < high)
    if not pairs or not all(-1 < value < 1 for value in (*lower, *upper)):
        raise input_error(
            "--theta_1, --theta_2",
            f"{list(lower)} and {list(upper)} give no pairs θ_1 < θ_2 inside (-1, 1)",
            "Give values such as --theta_1=0,0.2 --theta_2=0.5,0.7",
        )
    return {"thresholds": pairs, "cut_points": CUT_POINTS}


def highest_score(dim: int, epsilon: float) -> float:
    """What SCS stays below for two vectors of tanh, which are below √dim: (√dim / (√dim + ε))²."""
    root = math.sqrt(dim)
    return (root / (root + epsilon)) ** 2


def reachable(grid: Collection[Sequence[float]], limit: float) -> tuple[tuple[float, ...], ...]:
    """The thresholds of a grid that lie below a limit; if none do, all times the limit."""
    below = tuple(tuple(values) for values in grid if values[-1] < limit)
    return below or tuple(tuple(round(v * limit, 3) for v in values) for values in grid)


def beyond_edge(
    best: tuple[float, ...], tried: Collection[tuple[float, ...]], limit: float
) -> list[tuple[float, ...]]:
    """What to try next: one step further where the best thresholds lie at an edge."""
    # Each threshold is moved alone, then all together. A step that would pass the next threshold or
    # the limit goes half the way there, unless that is less than 0.05.
    candidates = []
    bounds = (-1.0, *best, limit)
    for index, value in enumerate(best):
        before, after = best[:index], best[index + 1 :]
        values = sorted(t[index] for t in tried if (t[:index], t[index + 1 :]) == (before, after))
        if value == values[-1]:
            candidates.append((*before, _moved(value, values, bounds[index + 2]), *after))
        if value == values[0]:
            mirrored = [-tried_value for tried_value in reversed(values)]
            candidates.append((*before, -_moved(-value, mirrored, -bounds[index]), *after))
    if candidates:
        for step in (_FIRST_STEP, -_FIRST_STEP):
            candidates.append(tuple(round(value + step, 3) for value in best))
    # x + 0.0 takes the sign of -0, which would name another cell.
    unsigned = dict.fromkeys(tuple(value + 0.0 for value in values) for values in candidates)
    rising = [t for t in unsigned if all(map(operator.lt, (-1.0, *t), (*t, limit)))]
    return [t for t in rising if t not in tried]


def _moved(value: float, values: Sequence[float], bound: float) -> float:
    """The last of some values one step up, or half the way to the bound, or as it is."""
    target = value + (values[-1] - values[-2] if len(values) > 1 else _FIRST_STEP)
    if target >= bound:
        target = (value + bound) / 2
    target = round(target, 3)
    return target if round(target - value, 3) >= _SMALLEST_STEP else value
