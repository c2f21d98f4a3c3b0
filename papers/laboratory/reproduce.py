"""Runs experiments by name: cells, tables, plots and the list of all pages."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.data.folds import check_folds, distinct_queries
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.wikiclir_files import document_languages
from tf_smoothclir.papers.laboratory.catalogue import EXPERIMENTS
from tf_smoothclir.papers.laboratory.cell_processes import run_cells
from tf_smoothclir.papers.laboratory.cells import Cell, opened_set
from tf_smoothclir.papers.laboratory.experiment import Study
from tf_smoothclir.papers.laboratory.tables import Page
from tf_smoothclir.papers.li2018 import tables as li2018
from tf_smoothclir.papers.liu2020 import tables as liu2020
from tf_smoothclir.papers.liu2020.paper_numbers import is_published
from tf_smoothclir.papers.yu2020 import tables as yu2020
from tf_smoothclir.storage.files import make_directory, write_text
from tf_smoothclir.training.evaluated_sets import highest_grade
from tf_smoothclir.utils.errors import input_error

_GRADES = 3  # of the paper: 0, 1 and 2
WRITERS = {**liu2020.WRITERS, **yu2020.WRITERS, **li2018.WRITERS}


def opened(study: Study) -> Study:
    """A study whose set is checked, known by its name, and tokenized for the cache of its runs."""
    data = study.settings.data
    source = source_of(data)
    if (highest := highest_grade(source)) >= _GRADES:
        reason = f"its grades go up to {highest}, and the experiments of the paper use 0, 1 and 2"
        raise input_error(source.name, reason, "Map the grades of its judgments to these three")
    retrieval_set = opened_set(study.settings).retrieval_set
    queries, documents = len(np.unique(retrieval_set.query_rows)), len(retrieval_set.document_ids)
    if study.matching.matching_folds:
        most = distinct_queries(retrieval_set)
        check_folds(study.matching.matching_folds, most, "--matching_folds")
    language = source.document_language
    layout = data.tfds_name.startswith("wiki_clir/") or (
        bool(data.data_dir) and language in document_languages(Path(data.data_dir))
    )
    return dataclasses.replace(
        study,
        name=re.sub(r"[^\w.+-]+", "_", source.name),
        fingerprint=source.fingerprint(),
        is_published=is_published(language, layout=layout, queries=queries, documents=documents),
    )


def reproduce(names: Sequence[str], study: Study, *, processes: int, command: str) -> list[str]:
    """Runs the cells that are missing, then writes tables, plots and `report.md`."""
    study = opened(study)
    output_dir = make_directory(study.output_dir, "--output_dir")
    experiments = [EXPERIMENTS[name] for name in dict.fromkeys(names)]
    rows = [row for experiment in experiments for row in experiment.rows]
    failed: list[Cell] = []
    while True:
        tried = {cell.path for cell in failed}
        cells = [cell for row in rows for cell in row.tuning_cells(study)]
        cells = [cell for cell in cells if not cell.finished and cell.path not in tried]
        if not cells:
            break
        failed += run_cells(cells, processes)
    failed += run_cells([cell for row in rows for cell in row.cells(study)], processes)
    for experiment in experiments:
        directory = make_directory(output_dir / experiment.name, "--output_dir")
        page = Page(experiment, study if experiment.needs_set else None, directory)
        page.write(WRITERS[experiment.name](page), command)
    lines = ["# Experiments", ""]  # of all commands so far
    for name, experiment in EXPERIMENTS.items():
        pages = sorted((output_dir / name).glob("*.md"))
        links = ", ".join(f"[{page.stem}]({name}/{page.name})" for page in pages)
        lines += [f"* {experiment.title}: {links}"] * bool(pages)
    write_text(output_dir / "report.md", "\n".join([*lines, ""]))
    return [f"{cell.path} (see {cell.log})" for cell in failed]
