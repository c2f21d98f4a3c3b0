"""Runs experiments by name: cells, then tables, plots and `report.md`, which leads to them."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Sequence
from pathlib import Path

from tf_smoothclir.papers.laboratory.catalogue import EXPERIMENTS
from tf_smoothclir.papers.laboratory.cell_processes import run_cells
from tf_smoothclir.papers.laboratory.cells import CellDirectory
from tf_smoothclir.papers.laboratory.outputs import write_set
from tf_smoothclir.papers.laboratory.plan import Study, StudySet
from tf_smoothclir.papers.liu2020 import loss_figures
from tf_smoothclir.papers.liu2020.theory_table import write_theory_table
from tf_smoothclir.training.run_config import software_versions
from tf_smoothclir.utils.files import make_directory, write_text

_WITHOUT_SETS = {
    "figure1": loss_figures.figure1,
    "figure2": loss_figures.figure2,
    "theory": write_theory_table,
}


def reproduce(
    names: Sequence[str], sets: Sequence[StudySet], study: Study, *, processes: int, command: str
) -> list[str]:
    """Runs the cells that are missing, then writes tables, plots and `report.md`.

    Returns the cells that failed, as text.
    """
    make_directory(study.output_dir, "--output_dir")
    experiments = [EXPERIMENTS[name] for name in dict.fromkeys(names)]
    failed = _run(experiments, sets, study, processes)
    for experiment in experiments:
        directory = make_directory(study.output_dir / experiment.name, "--output_dir")
        if experiment.name in _WITHOUT_SETS:
            _WITHOUT_SETS[experiment.name](directory)
        else:
            for one in sets:
                write_set(experiment, one, study, directory, command)
    _remember(study.output_dir / "commands.txt", command)
    _write_report(study.output_dir)
    return [f"{cell.path} (see {cell.log})" for cell in failed]


def _run(experiments, sets, study: Study, processes: int) -> list[CellDirectory]:
    """Runs the tuning cells, then the others; returns those that failed."""
    failed = []
    while cells := [c for one in sets for c in study.tuning_cells(one, experiments)]:
        tried = {cell.path for cell in failed}
        cells = [cell for cell in cells if not cell.finished and cell.path not in tried]
        if not cells:
            break
        failed += run_cells(cells, processes)
    final = [c for one in sets for c in study.final_cells(one, experiments)]
    return failed + run_cells(final, processes)


def _write_report(output_dir: Path) -> None:
    """Writes the page that leads to what all commands so far have written."""
    made_with = ", ".join(f"{name} {version}" for name, version in software_versions().items())
    machine = f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}"
    parts = ["# Experiments", f"{datetime.date.today()}; {made_with}; {machine}."]
    for name, experiment in EXPERIMENTS.items():
        pages = sorted((output_dir / name).glob("*.md"))
        plots = [] if pages else sorted((output_dir / name).glob("*.png"))
        if pages or plots:
            parts += [f"## {experiment.title}", experiment.claim]
            parts += [f"* [{page.stem}]({name}/{page.name})" for page in pages]
            parts += [f"![{experiment.title}]({name}/{plot.name})" for plot in plots]
    commands = (output_dir / "commands.txt").read_text(encoding="utf-8")
    parts += ["## Commands", f"```\n{commands}```"]
    write_text(output_dir / "report.md", "\n\n".join(parts) + "\n")


def _remember(path: Path, command: str) -> None:
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    if command not in lines:
        write_text(path, "\n".join([*lines, command]) + "\n")
