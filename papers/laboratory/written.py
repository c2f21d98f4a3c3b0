"""What an experiment shows of a set."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from tf_smoothclir.papers.laboratory.tables import Table


@dataclasses.dataclass
class Written:
    """What an experiment shows of a set.

    Attributes:
        tables: Our tables.
        plots: PNG files.
        notes: The conditions of the measurement, one sentence or two each.
        csv: The unrounded values.
    """

    tables: list[Table]
    plots: list[Path] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    csv: str = ""
