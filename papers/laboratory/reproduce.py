"""Runs experiments by name: cells, tables, plots and the list of all pages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tf_smoothclir.papers.laboratory.catalogue import EXPERIMENTS
from tf_smoothclir.papers.laboratory.cell_processes import run_cells
from tf_smoothclir.papers.laboratory.cells import Cell
from tf_smoothclir.papers.laboratory.experiment import Study
from tf_smoothclir.papers.laboratory.sets import studies_of
from tf_smoothclir.papers.laboratory.tables import write_page
from tf_smoothclir.papers.li2018 import tables as li2018
from tf_smoothclir.papers.liu2020 import tables as liu2020
from tf_smoothclir.papers.yu2020 import tables as yu2020
from tf_smoothclir.storage.files import make_directory, write_text

if TYPE_CHECKING:  # it defines flags
    from tf_smoothclir.papers.laboratory.request import Request

WRITERS = {**liu2020.WRITERS, **yu2020.WRITERS, **li2018.WRITERS}


def run_request(request: Request, command: str) -> list[str]:
    """Runs what a command asks for; see `reproduce`."""
    studies = studies_of(request)
    return reproduce(
        request.names, studies, request.output_dir, processes=request.workers, command=command
    )


def reproduce(
    names: Sequence[str],
    studies: Sequence[Study],
    output_dir: Path,
    *,
    processes: int,
    command: str,
) -> list[str]:
    """Runs the cells that are missing, then writes tables, plots and `report.md`."""
    make_directory(output_dir, "--output_dir")
    experiments = [EXPERIMENTS[name] for name in dict.fromkeys(names)]
    rows = [
        (row, study) for study in studies for experiment in experiments for row in experiment.rows
    ]
    failed: list[Cell] = []
    while True:
        tried = {cell.path for cell in failed}
        cells = [cell for row, study in rows for cell in row.tuning_cells(study)]
        cells = [cell for cell in cells if not cell.finished and cell.path not in tried]
        if not cells:
            break
        failed += run_cells(cells, processes)
    failed += run_cells([cell for row, study in rows for cell in row.cells(study)], processes)
    for experiment in experiments:
        directory = make_directory(output_dir / experiment.name, "--output_dir")
        for study in studies if experiment.needs_set else [None]:
            write_page(WRITERS[experiment.name], experiment, study, directory, command)
    _list_pages(output_dir)
    return [f"{cell.path} (see {cell.log})" for cell in failed]


def _list_pages(output_dir: Path) -> None:
    """Writes the list of the pages of all commands so far, in the order of the experiments."""
    lines = ["# Experiments", ""]
    for name, experiment in EXPERIMENTS.items():
        pages = sorted((output_dir / name).glob("*.md"))
        links = ", ".join(f"[{page.stem}]({name}/{page.name})" for page in pages)
        lines += [f"* {experiment.title}: {links}"] * bool(pages)
    write_text(output_dir / "report.md", "\n".join([*lines, ""]))
