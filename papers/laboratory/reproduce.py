"""Runs experiments by name: cells, tables, plots and the list of all pages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tf_smoothclir.data.folds import check_folds
from tf_smoothclir.papers.laboratory.catalogue import EXPERIMENTS
from tf_smoothclir.papers.laboratory.cell_processes import run_cells
from tf_smoothclir.papers.laboratory.cells import CellDirectory
from tf_smoothclir.papers.laboratory.outputs import write_page, write_set
from tf_smoothclir.papers.laboratory.plan import Study, StudySet, threshold_grids
from tf_smoothclir.papers.laboratory.sets import data_settings, open_sets
from tf_smoothclir.papers.liu2020 import loss_figures
from tf_smoothclir.papers.liu2020.theory_table import write_theory
from tf_smoothclir.storage.files import make_directory, write_text

if TYPE_CHECKING:  # it defines flags
    from tf_smoothclir.papers.laboratory.request import Request

_WITHOUT_SETS = {
    "theory": write_theory,
    "figure1": loss_figures.figure1,
    "figure2": loss_figures.figure2,
}


def run_request(request: Request, command: str) -> list[str]:
    """Runs what a command asks for; see `reproduce`."""
    grids = threshold_grids(*request.thetas) if request.thetas else {}
    data = data_settings(
        request.base.data, request.directories, request.tfds_names, request.languages
    )
    study = Study(request.output_dir, request.seeds, grids, request.tune_epochs, request.matching)
    sets = open_sets(request.base, data)
    if request.matching.folds and any(EXPERIMENTS[name].matching for name in request.names):
        for one in sets:
            check_folds(request.matching.folds, one.enough["max_queries"], "--matching_folds")
    return reproduce(request.names, sets, study, processes=request.workers, command=command)


def reproduce(
    names: Sequence[str], sets: Sequence[StudySet], study: Study, *, processes: int, command: str
) -> list[str]:
    """Runs the cells that are missing, then writes tables, plots and `report.md`."""
    make_directory(study.output_dir, "--output_dir")
    experiments = [EXPERIMENTS[name] for name in dict.fromkeys(names)]
    failed = _run(experiments, sets, study, processes)
    for experiment in experiments:
        directory = make_directory(study.output_dir / experiment.name, "--output_dir")
        if experiment.name in _WITHOUT_SETS:
            written = _WITHOUT_SETS[experiment.name](directory)
            write_page(directory / experiment.name, experiment, written, command)
            continue
        for one in sets:
            write_set(one.suited(experiment), one, study, directory, command)
    _list_pages(study.output_dir)
    return [f"{cell.path} (see {cell.log})" for cell in failed]


def _run(experiments, sets, study: Study, processes: int) -> list[CellDirectory]:
    """Runs the tuning cells, then the others; returns those that failed."""
    failed, on_sets = [], [(one, [*map(one.suited, experiments)]) for one in sets]
    while cells := [c for on_set in on_sets for c in study.tuning_cells(*on_set)]:
        tried = {cell.path for cell in failed}
        cells = [cell for cell in cells if not cell.finished and cell.path not in tried]
        if not cells:
            break
        failed += run_cells(cells, processes)
    final = [c for on_set in on_sets for c in study.final_cells(*on_set)]
    return failed + run_cells(final, processes)


def _list_pages(output_dir: Path) -> None:
    """Writes the list of the pages of all commands so far, in the order of the experiments."""
    lines = ["# Experiments", ""]
    for name, experiment in EXPERIMENTS.items():
        pages = sorted((output_dir / name).glob("*.md"))
        links = ", ".join(f"[{page.stem}]({name}/{page.name})" for page in pages)
        lines += [f"* {experiment.title}: {links}"] * bool(pages)
    write_text(output_dir / "report.md", "\n".join([*lines, ""]))
