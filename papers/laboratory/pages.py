"""What an experiment shows of a set, and its page."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from tf_smoothclir.papers.laboratory.code_version import code_note
from tf_smoothclir.papers.laboratory.experiment import Experiment
from tf_smoothclir.papers.laboratory.study import Study
from tf_smoothclir.papers.laboratory.system_metrics import SystemMetrics, read_system_metrics
from tf_smoothclir.papers.laboratory.tables import Table
from tf_smoothclir.storage.files import write_text


@dataclasses.dataclass
class Written:
    """What an experiment shows of a set."""

    tables: list[Table]
    plots: list[Path] = dataclasses.field(default_factory=list)  # PNG files
    # the conditions of the measurement, one sentence or two each
    notes: list[str] = dataclasses.field(default_factory=list)
    csv: str = ""  # the unrounded values


# From an experiment, a set (None for one that needs none) and a directory for plots.
Writer = Callable[[Experiment, Study | None, Path], Written]


def finished_systems(experiment: Experiment, study: Study) -> list[SystemMetrics]:
    """The figures of the systems that have finished with some seed, in their order."""
    read = (read_system_metrics(row.name, row.cells(study)) for row in experiment.rows)
    return [system for system in read if system is not None]


def write_page(
    write: Writer, experiment: Experiment, study: Study | None, directory: Path, command: str
) -> None:
    """Writes `<set>.md`, `.csv` and `.png`, and the tables as `.tex`."""
    written = write(experiment, study, directory)
    notes, heading, name = [*written.notes], experiment.title, experiment.name
    if study is not None:
        rows = experiment.rows
        unfinished = [row.name for row in rows if not all(c.finished for c in row.cells(study))]
        notes += [f"Not finished with all seeds: {'; '.join(unfinished)}."] * bool(unfinished)
        heading, name = f"{heading}, {study.name}", study.name
    parts = [f"# {heading}\n", f"{experiment.claim}\n"]
    parts += [table.markdown() for table in written.tables]
    parts += [f"![{experiment.title}]({plot.name})\n" for plot in written.plots]
    parts += ["".join(f"* {note}\n" for note in (*notes, code_note()))]
    texts = {"md": "\n".join([*parts, f"```\n{command}\n```\n"]), "csv": written.csv}
    if written.tables:
        texts["tex"] = "\n".join(table.latex() for table in written.tables)
    for kind, text in texts.items():
        write_text(directory / f"{name}.{kind}", text)
