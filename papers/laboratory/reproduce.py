"""Runs experiments by name: cells, tables, plots and the report page."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tf_smoothclir.papers.laboratory import page
from tf_smoothclir.papers.laboratory.catalogue import EXPERIMENTS, Experiment
from tf_smoothclir.papers.laboratory.cell_processes import run_cells
from tf_smoothclir.papers.laboratory.cells import CellDirectory
from tf_smoothclir.papers.laboratory.code_version import code_note
from tf_smoothclir.papers.laboratory.outputs import not_comparable, paper_blocks, write_set
from tf_smoothclir.papers.laboratory.plan import Study, StudySet, threshold_grids
from tf_smoothclir.papers.laboratory.sets import data_settings, open_sets
from tf_smoothclir.papers.liu2020 import loss_figures
from tf_smoothclir.papers.liu2020.theory_table import write_theory_table
from tf_smoothclir.papers.yu2020.rotations import check_folds
from tf_smoothclir.storage.files import make_directory
from tf_smoothclir.training.run_config import software_versions

if TYPE_CHECKING:  # it defines flags
    from tf_smoothclir.papers.laboratory.request import Request

_SECTION = ".section.json"
_PAPER = "paper"  # never the name of a set, which ends with its languages
_DRAWN = {"figure1": loss_figures.figure1, "figure2": loss_figures.figure2}


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
            check_folds(request.matching.folds, one.enough["max_queries"])
    return reproduce(request.names, sets, study, processes=request.workers, command=command)


def reproduce(
    names: Sequence[str], sets: Sequence[StudySet], study: Study, *, processes: int, command: str
) -> list[str]:
    """Runs the cells that are missing, then writes tables, plots and `report.html`."""
    make_directory(study.output_dir, "--output_dir")
    experiments = [EXPERIMENTS[name] for name in dict.fromkeys(names)]
    failed = _run(experiments, sets, study, processes)
    for experiment in experiments:
        for key, section in _sections(experiment, sets, study, command):
            section.commands.append(command)
            section.write(_directory(study.output_dir, experiment) / f"{key}{_SECTION}")
    page.write_page(study.output_dir, _all_sections(study.output_dir), note=_note())
    return [_failure(cell) for cell in failed]


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


def _note() -> str:
    made_with = ", ".join(f"{name} {version}" for name, version in software_versions().items())
    machine = f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}"
    return f"{datetime.date.today()}; {made_with}; {machine}."


def _failure(cell: CellDirectory) -> str:
    return f"{cell.path} (see {cell.log})"


def _sections(experiment: Experiment, sets, study: Study, command: str):
    """Yields (key, section): one for each set, or one if the experiment needs no set."""
    directory = _directory(study.output_dir, experiment)
    title, claim = experiment.title, experiment.claim
    text = f"{claim}\n\n{code_note()}"
    if experiment.name == "theory":
        yield "theory", page.Section(title, text, tables=[write_theory_table(directory)])
        return
    if experiment.name in _DRAWN:
        png, _ = _DRAWN[experiment.name](directory)
        yield experiment.name, page.Section(title, text, plots=[png])
        return
    for one in sets:
        suited = one.suited(experiment)
        written = write_set(suited, one, study, directory, command)
        cells = study.tuning_cells(one, [suited]) + study.final_cells(one, [suited])
        failed = [f"Failed: {_failure(cell)}" for cell in cells if not cell.finished]
        text = "\n\n".join([claim, *written.notes, *failed])
        tables = [table.for_page() for table in written.tables]
        yield one.name, page.Section(f"{title}, {one.name}", text, [], tables, written.plots)
    theirs = [table.for_page() for table in paper_blocks(experiment)]
    if theirs and not all(one.comparable for one in sets):
        yield _PAPER, page.Section(f"{title}, {not_comparable(experiment)}", tables=theirs)


def _directory(output_dir: Path, experiment: Experiment) -> Path:
    return make_directory(output_dir / experiment.name, "--output_dir")


def _all_sections(output_dir: Path) -> list[page.Section]:
    """Reads the sections of all commands so far, in the order of the experiments."""
    found = []
    for name in EXPERIMENTS:
        paths = (output_dir / name).glob(f"*{_SECTION}")
        for path in sorted(paths, key=lambda path: (path.name == f"{_PAPER}{_SECTION}", path.name)):
            found.append(page.Section.read(path))
    return found
