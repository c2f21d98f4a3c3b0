"""Systems that are ordinary training runs, with thresholds chosen on validation only."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tf_smoothclir.papers.laboratory.grids import beyond_edge, highest_score, reachable
from tf_smoothclir.papers.laboratory.study import Study
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings

if TYPE_CHECKING:
    from tf_smoothclir.papers.laboratory.training_cell import TrainingCell

TUNED_ON = "validation"


@dataclasses.dataclass(frozen=True)
class System:
    """One row of a table, or one curve or point of a figure."""

    name: str  # as shown in the table
    # setting -> value, the changes to the base settings; "epochs" never raises them
    changes: Mapping[str, object]
    # setting -> value, the changes for which `tuned` is tuned on validation; None if nothing is
    # tuned
    tuned_with: Mapping[str, object] | None = None
    # the setting with the scores between the grades: "thresholds" or "cut_points"
    tuned: str = "thresholds"

    def check(self, base: RunSettings, tune_epochs: int) -> None:
        """Checks what its runs will be trained with, before the first one is."""
        self.settings(base)
        epochs = tune_epochs or base.training.epochs
        changed(base, {**(self.tuned_with or {}), "epochs": epochs})

    def settings(self, base: RunSettings, more: Mapping[str, object] | None = None) -> RunSettings:
        """The settings of its runs, `more` among them."""
        epochs = min(self.changes.get("epochs", base.training.epochs), base.training.epochs)
        return changed(base, {**self.changes, "epochs": epochs, **(more or {})})

    def cells(self, study: Study) -> list[TrainingCell]:
        """Its runs, one for each seed; none if it has no thresholds."""
        chosen = self.chosen(study)
        if chosen is None:
            return []
        of_seeds = ({self.tuned: chosen, "seed": seed} for seed in study.seeds)
        return [_cell(study, self.settings(study.settings, one)) for one in of_seeds]

    def tuning_cells(self, study: Study) -> list[TrainingCell]:
        """The runs to choose thresholds by, as far as known; later, those beyond an edge too."""
        return list(self._candidates(study).values())

    def chosen(self, study: Study) -> tuple[float, ...] | None:
        """The thresholds, or cut points, that are best on validation; None if all runs failed."""
        if not study.grids or self.tuned_with is None:
            return getattr(study.settings.model, self.tuned)
        candidates = self._candidates(study)
        return _best(study, {t: cell for t, cell in candidates.items() if cell.finished})

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
    from tf_smoothclir.papers.laboratory.training_cell import TrainingCell  # needs TensorFlow

    return TrainingCell(study, settings, tuning)


def _best(
    study: Study, cells: Mapping[tuple[float, ...], TrainingCell]
) -> tuple[float, ...] | None:
    """The thresholds whose run is best on validation; None if there are no runs."""
    select = study.settings.training.select_metric
    values = {t: cell.metrics()[TUNED_ON][select] for t, cell in cells.items()}
    return max(values, key=values.get, default=None)
