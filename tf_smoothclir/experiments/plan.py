"""From experiments to cells: the settings of each, and thresholds chosen on validation alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from tf_smoothclir.experiments.catalogue import CUT_POINTS, Experiment, System
from tf_smoothclir.experiments.cells import Cell, CellDirectory
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.utils.errors import input_error

TUNED_ON = "validation"


@dataclasses.dataclass(frozen=True)
class StudySet:
    """A retrieval set and what its runs have in common.

    Attributes:
        name: Of the set, unique in a study; names files.
        settings: What an experiment changes.
        fingerprint: Of the content.
        published: Document language, such as "fr", where the set is the paper's own; else "".
    """

    name: str
    settings: RunSettings
    fingerprint: str
    published: str = ""


@dataclasses.dataclass(frozen=True)
class Study:
    """How experiments are run.

    Attributes:
        output_dir: Where everything goes.
        seeds: Each system is trained once with each; thresholds are tuned with the first.
        grids: Setting -> the values to choose from; empty: those of the settings, for all.
        tune_epochs: Epochs of a run that only helps to choose.
    """

    output_dir: Path
    seeds: tuple[int, ...]
    grids: Mapping[str, tuple[tuple[float, ...], ...]]
    tune_epochs: int

    def tuning_cells(
        self, study_set: StudySet, experiments: Sequence[Experiment]
    ) -> list[CellDirectory]:
        """Returns the cells that choosing thresholds needs."""
        tuned = {
            tuple(sorted(system.tuned_with.items())): system
            for experiment in experiments
            for system in experiment.systems
            if system.tuned_with is not None
        }
        return [
            cell
            for system in tuned.values()
            for cell in self._candidates(study_set, system).values()
        ]

    def chosen(self, study_set: StudySet, system: System) -> tuple[float, ...] | None:
        """Returns the thresholds, or cut points, that are best on validation; of equal ones the
        first of the grid. None where every candidate has failed.
        """
        if not self.grids or system.tuned_with is None:
            return getattr(study_set.settings.model, system.tuned)
        select = study_set.settings.training.select_metric
        values = {
            thresholds: cell.metrics()[TUNED_ON][select]
            for thresholds, cell in self._candidates(study_set, system).items()
            if cell.finished
        }
        return max(values, key=values.get, default=None)

    def cells(self, study_set: StudySet, system: System) -> list[CellDirectory]:
        """Returns the cells of a system, one a seed; none where it has no thresholds."""
        chosen = self.chosen(study_set, system)
        if chosen is None:
            return []
        changes = {**system.changes, system.tuned: chosen}
        return [self._cell(study_set, {**changes, "seed": seed}) for seed in self.seeds]

    def final_cells(
        self, study_set: StudySet, experiments: Sequence[Experiment]
    ) -> list[CellDirectory]:
        """Returns the cells of all systems, whose thresholds are chosen by now."""
        systems = [system for experiment in experiments for system in experiment.systems]
        return [cell for system in systems for cell in self.cells(study_set, system)]

    def _candidates(
        self, study_set: StudySet, system: System
    ) -> dict[tuple[float, ...], CellDirectory]:
        changes = {**system.tuned_with, "epochs": self.tune_epochs, "seed": self.seeds[0]}
        if not self.grids:
            return {}
        return {
            values: self._cell(study_set, {**changes, system.tuned: values}, tuning=True)
            for values in self.grids[system.tuned]
        }

    def _cell(self, study_set: StudySet, changes: Mapping, tuning: bool = False) -> CellDirectory:
        settings = changed(study_set.settings, changes)
        cell = Cell(settings, study_set.name, study_set.fingerprint, tuning)
        return CellDirectory(self.output_dir, cell)


def threshold_grids(lower: Sequence[float], upper: Sequence[float]) -> dict:
    """Returns what is chosen from: the pairs (θ_1, θ_2) with θ_1 < θ_2, and `CUT_POINTS`.

    Raises:
        InputError: There is no pair, or a threshold lies outside (-1, 1).
    """
    pairs = tuple((low, high) for low in lower for high in upper if low < high)
    if not pairs or not all(-1 < value < 1 for value in (*lower, *upper)):
        raise input_error(
            "--theta_1, --theta_2",
            f"no rising pairs inside (-1, 1) in {list(lower)} and {list(upper)}",
            "Give numbers such as --theta_1=0,0.2 --theta_2=0.5,0.7",
        )
    return {"thresholds": pairs, "cut_points": CUT_POINTS}
