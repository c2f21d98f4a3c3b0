"""Experiments and their rows, as far as the flags are checked by them: without TensorFlow."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Protocol

from tf_smoothclir.papers.laboratory.study import Study
from tf_smoothclir.settings.run import RunSettings

if TYPE_CHECKING:
    from tf_smoothclir.papers.laboratory.cells import Cell


class Row(Protocol):
    """A row of a table, or one curve or point of a figure."""

    name: str  # as shown in the table

    def check(self, base: RunSettings, tune_epochs: int) -> None:
        """Checks what its runs will be trained with, before the first one is."""

    def tuning_cells(self, study: Study) -> list[Cell]:
        """The runs that choose its thresholds, as far as it is known by now."""

    def cells(self, study: Study) -> list[Cell]:
        """Its runs, one for each seed, once the tuning runs are finished."""


class FixedRow:
    """A row whose settings no experiment changes and no run tunes."""

    def check(self, base: RunSettings, tune_epochs: int) -> None:
        """Nothing: the settings of the command are checked already."""

    def tuning_cells(self, study: Study) -> list[Cell]:
        """None."""
        return []


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A table or a figure."""

    name: str  # its name on the command line
    title: str  # heading
    claim: str  # what the paper concludes from it, and how ours differs
    column: str = ""  # what the systems differ in
    rows: tuple[Row, ...] = ()  # what is trained; may be empty
    needs_set: bool = True
