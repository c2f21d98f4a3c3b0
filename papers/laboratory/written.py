"""What an experiment shows of a set."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from tf_smoothclir.papers.laboratory.tables import Table


@dataclasses.dataclass
class Written:
    """What an experiment shows of a set."""

    tables: list[Table]  # our tables
    plots: list[Path] = dataclasses.field(default_factory=list)  # PNG files
    # the conditions of the measurement, one sentence or two each
    notes: list[str] = dataclasses.field(default_factory=list)
    csv: str = ""  # the unrounded values
