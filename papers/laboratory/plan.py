"""From experiments to cells: their settings, and thresholds chosen on validation only."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from tf_smoothclir.papers.laboratory.catalogue import Experiment
from tf_smoothclir.papers.laboratory.cells import Cell, CellDirectory
from tf_smoothclir.papers.laboratory.grids import beyond_edge, highest_score, reachable
from tf_smoothclir.papers.laboratory.systems import CUT_POINTS, System
from tf_smoothclir.papers.yu2020.cells import MatchingCell, MatchingCellDirectory
from tf_smoothclir.papers.yu2020.options import MatchingOptions
from tf_smoothclir.papers.yu2020.systems import MatchingSystem
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.utils.errors import input_error

TUNED_ON = "validation"


@dataclasses.dataclass(frozen=True)
class StudySet:
    """A retrieval set and the settings that its runs share."""

    name: str  # of the set; unique in a study, used in file names
    settings: RunSettings  # the base settings, which systems change
    fingerprint: str  # of the set's content
    published: str = ""  # document language, such as "fr", if the set is the paper's own; else ""
    differences: tuple[str, ...] = ()  # how its settings differ from the paper's
    # setting -> from what value on it is as good as all that the set has
    enough: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def comparable(self) -> str:
        """`published`, if metrics on the set compare with the paper's; else ""."""
        return "" if self.differences else self.published

    def suited(self, experiment: Experiment) -> Experiment:
        """The experiment without systems that would have the figures of another one.

        They ask for more than the set has, or the command's flags make them equal to another.
        """
        kept, left_out = {}, []
        for one in experiment.systems:
            tuned = sorted(one.tuned_with.items()) if one.tuned_with is not None else None
            runs = one.settings(self.settings), one.tuned, repr(tuned), one.part
            asks = any(one.changes.get(name, 0) >= most for name, most in self.enough.items())
            if asks or runs in kept:
                left_out.append(one.name)
            else:
                kept[runs] = one
        systems = tuple(kept.values())
        return dataclasses.replace(experiment, systems=systems, left_out=tuple(left_out))


@dataclasses.dataclass(frozen=True)
class Study:
    """How experiments are run."""

    output_dir: Path  # where all files go
    # each system is trained once with each seed; thresholds are tuned with the first
    seeds: tuple[int, ...]
    # setting -> values to choose from; empty: no tuning, the base settings' values hold
    grids: Mapping[str, tuple[tuple[float, ...], ...]]
    tune_epochs: int  # epochs of a tuning run
    # how the systems of Yu and Allan 2020 are trained and measured
    matching: MatchingOptions = dataclasses.field(default_factory=MatchingOptions)

    @property
    def seeds_note(self) -> str:
        """What the figures of a page are: those of a seed, or means over several."""
        if len(self.seeds) == 1:
            return f"Seed {self.seeds[0]}"
        return f"Mean over the seeds {', '.join(map(str, self.seeds))}"

    @property
    def scores_note(self) -> str:
        """What the scores of queries in a test are."""
        if len(self.seeds) == 1:
            return f"scores of a query are those of seed {self.seeds[0]}"
        return f"scores of a query are means over the seeds {', '.join(map(str, self.seeds))}"

    def tuning_cells(
        self, study_set: StudySet, experiments: Sequence[Experiment]
    ) -> list[CellDirectory]:
        """The cells needed to choose thresholds, as far as it is known by now.

        Once all are finished, there may be more: those beyond the edge that the best one lies on.
        """
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
        """The thresholds, or cut points, that are best on validation.

        Of equally good ones, the first that was tried wins. None if every candidate has failed.
        """
        if not self.grids or system.tuned_with is None:
            return getattr(study_set.settings.model, system.tuned)
        candidates = self._candidates(study_set, system)
        return _best(study_set, {t: cell for t, cell in candidates.items() if cell.finished})

    def cells(self, study_set: StudySet, system: System) -> list[CellDirectory]:
        """The cells of a system, one for each seed; none if it has no thresholds."""
        chosen = self.chosen(study_set, system)
        if chosen is None:
            return []
        of_seeds = ({system.tuned: chosen, "seed": seed} for seed in self.seeds)
        return [self._cell(study_set, system.settings(study_set.settings, one)) for one in of_seeds]

    def final_cells(
        self, study_set: StudySet, experiments: Sequence[Experiment]
    ) -> list[CellDirectory]:
        """The cells of all systems; the tuning cells must have run before."""
        matching = [
            cell
            for experiment in experiments
            for system in sorted(experiment.matching, key=lambda one: one.costly)
            for cell in self.matching_cells(study_set, system)
        ]
        return matching + [
            cell
            for experiment in experiments
            for system in self.trained_systems(experiment)
            for cell in self.cells(study_set, system)
        ]

    def trained_systems(self, experiment: Experiment) -> tuple[System, ...]:
        """The systems that are ordinary training runs; these have no rotations."""
        return () if experiment.matching and self.matching.folds else experiment.systems

    def matching_cells(self, study_set: StudySet, system: MatchingSystem) -> list[CellDirectory]:
        """The cells of a system of Yu and Allan 2020, one for each seed."""
        if system.costly and not self.matching.pyramid_epochs:
            return []
        return [
            MatchingCellDirectory(
                self.output_dir,
                MatchingCell(
                    self.with_seed(study_set, seed),
                    study_set.name,
                    study_set.fingerprint,
                    system,
                    self.matching,
                ),
            )
            for seed in self.seeds
        ]

    def with_seed(self, study_set: StudySet, seed: int) -> RunSettings:
        """The base settings of a set with one of the seeds."""
        return changed(study_set.settings, {"seed": seed})

    def _candidates(
        self, study_set: StudySet, system: System
    ) -> dict[tuple[float, ...], CellDirectory]:
        """Thresholds -> tuning cell: the grid, and once it is finished what lies beyond."""
        if not self.grids:
            return {}
        model = changed(study_set.settings, system.tuned_with).model
        has_limit = system.tuned == "thresholds" and model.tower == "average_pooling"
        limit = highest_score(model.dim, model.epsilon) if has_limit else 1.0
        changes = {**system.tuned_with, "epochs": self.tune_epochs, "seed": self.seeds[0]}
        found, more = {}, reachable(self.grids[system.tuned], limit)
        while more:
            for values in more:
                settings = changed(study_set.settings, {**changes, system.tuned: values})
                found[values] = self._cell(study_set, settings, tuning=True)
            if not all(cell.finished for cell in found.values()):
                break
            more = beyond_edge(_best(study_set, found), found, limit)
        return found

    def _cell(
        self, study_set: StudySet, settings: RunSettings, *, tuning: bool = False
    ) -> CellDirectory:
        cell = Cell(settings, study_set.name, study_set.fingerprint, tuning)
        return CellDirectory(self.output_dir, cell)


def _best(
    study_set: StudySet, cells: Mapping[tuple[float, ...], CellDirectory]
) -> tuple[float, ...] | None:
    """The thresholds whose cell is best on validation; None if there are no cells."""
    select = study_set.settings.training.select_metric
    values = {t: cell.metrics().splits[TUNED_ON][select] for t, cell in cells.items()}
    return max(values, key=values.get, default=None)


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
