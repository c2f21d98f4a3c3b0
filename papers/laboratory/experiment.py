"""Experiments, their rows and the set they run on, as far as flags need them: no TensorFlow."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from tf_smoothclir.papers.yu2020.options import MatchingOptions
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings


@dataclasses.dataclass(frozen=True)
class Study:
    """A set, and how experiments run on it."""

    name: str  # of the set; unique in a command, used in file names
    settings: RunSettings  # the base settings, which systems change
    fingerprint: str  # of the set's content
    output_dir: Path  # where all files go
    # each system is trained once with each seed; thresholds are tuned with the first
    seeds: tuple[int, ...]
    # setting -> values to choose from; empty: no tuning, the base settings' values hold
    grids: Mapping[str, tuple[tuple[float, ...], ...]] = dataclasses.field(default_factory=dict)
    tune_epochs: int = 0  # epochs of a tuning run
    # how the systems of Yu and Allan 2020 are trained and measured
    matching: MatchingOptions = dataclasses.field(default_factory=MatchingOptions)
    published: str = ""  # document language, such as "fr", if the set is the paper's own; else ""

    @property
    def seeds_note(self) -> str:
        """What the figures of a page are: those of a seed, or means over several."""
        if len(self.seeds) == 1:
            return f"Seed {self.seeds[0]}"
        return f"Mean over the seeds {', '.join(map(str, self.seeds))}"

    def with_seed(self, seed: int) -> RunSettings:
        """The base settings with one of the seeds."""
        return changed(self.settings, {"seed": seed})


class Row(Protocol):
    """A row of a table, or one curve or point of a figure."""

    name: str  # as shown in the table

    def check(self, base: RunSettings, tune_epochs: int) -> None:
        """Checks what its runs will be trained with, before the first one is."""

    def tuning_cells(self, study: Study) -> list:
        """The `Cell`s that choose its thresholds, as far as it is known by now."""

    def cells(self, study: Study) -> list:
        """Its `Cell`s, one for each seed, once the tuning runs are finished."""


class FixedRow:
    """A row whose settings no experiment changes and no run tunes."""

    def check(self, base: RunSettings, tune_epochs: int) -> None:
        """Nothing: the settings of the command are checked already."""

    def tuning_cells(self, study: Study) -> list:
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
