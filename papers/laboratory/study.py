"""A set, and how experiments run on it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

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
