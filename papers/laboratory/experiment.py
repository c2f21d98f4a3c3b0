"""Experiments, their rows and the set they run on, as far as flags need them: no TensorFlow."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from tf_smoothclir.papers.yu2020.options import MatchingOptions
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings


@dataclasses.dataclass(frozen=True)
class Study:
    """A set, and how experiments run on it; `reproduce.opened` opens the set and names it."""

    settings: RunSettings  # the base settings, which systems change
    output_dir: Path  # where all files go
    # each system is trained once with each seed; thresholds are tuned with the first
    seeds: tuple[int, ...]
    # setting -> values to choose from; empty: no tuning, the base settings' values hold
    grids: Mapping[str, tuple[tuple[float, ...], ...]] = dataclasses.field(default_factory=dict)
    tune_epochs: int = 0  # epochs of a tuning run
    # how the systems of Yu and Allan 2020 are trained and measured
    matching: MatchingOptions = dataclasses.field(default_factory=MatchingOptions)
    name: str = ""  # of the set, as file names have it
    fingerprint: str = ""  # of the set's content
    is_published: bool = False  # whether the set is that of Liu et al. 2020

    @property
    def seeds_note(self) -> str:
        """What the figures of a page are: those of a seed, or means over several."""
        if len(self.seeds) == 1:
            return f"Seed {self.seeds[0]}"
        return f"Mean over the seeds {', '.join(map(str, self.seeds))}"

    def with_seed(self, seed: int) -> RunSettings:
        """The base settings with one of the seeds."""
        return changed(self.settings, {"seed": seed})


class Row:
    """A row of a table, or one curve or point of a figure; here of settings that nothing tunes."""

    name: str  # as shown in the table

    def check(self, base: RunSettings, tune_epochs: int) -> None:
        """Checks what its runs will be trained with, before the first one is."""

    def tuning_cells(self, study: Study) -> list:
        """The `Cell`s that choose its thresholds, as far as it is known by now."""
        return []

    def cells(self, study: Study) -> list:
        """Its `Cell`s, one for each seed, once the tuning runs are finished."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A table or a figure."""

    name: str  # its name on the command line
    title: str  # heading
    claim: str  # what the paper concludes from it, and how ours differs
    column: str = ""  # what the systems differ in
    rows: tuple[Row, ...] = ()  # what is trained; may be empty
    needs_set: bool = True
