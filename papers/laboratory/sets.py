"""The sets that the flags name, prepared once for all runs."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tf_smoothclir.data.folds import check_folds
from tf_smoothclir.data.sources.wikiclir_files import document_languages
from tf_smoothclir.papers.laboratory.cells import opened_set
from tf_smoothclir.papers.laboratory.experiment import Study
from tf_smoothclir.papers.laboratory.systems import threshold_grids
from tf_smoothclir.papers.liu2020.paper_numbers import is_published
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.utils.errors import input_error

if TYPE_CHECKING:  # it defines flags
    from tf_smoothclir.papers.laboratory.request import Request


def data_settings(
    base: DataSettings,
    data_dirs: Sequence[str] = (),
    tfds_names: Sequence[str] = (),
    languages: Sequence[str] = (),
) -> list[DataSettings]:
    """The data settings of each set that the flags name."""
    of_each_set = []
    for directory in data_dirs:
        for language in _languages_in(directory, languages, base.document_language):
            changes = {"data_dir": directory, "document_language": language}
            of_each_set.append(dataclasses.replace(base, **changes))
    of_each_set += [dataclasses.replace(base, tfds_name=name) for name in tfds_names]
    toys = languages or [base.document_language]
    return of_each_set or [dataclasses.replace(base, document_language=code) for code in toys]


def _languages_in(directory: str, wanted: Sequence[str], default: str) -> list[str]:
    present = document_languages(Path(directory))
    if not present and len(wanted) > 1:
        raise input_error(
            f"--data_dir={directory} --document_language",
            f"its documents are in one language, but the flags name {', '.join(wanted)}",
            "Give one --document_language, and run a command for each language",
        )
    if not present:  # a directory of the user's own, or none at all, as opening it will show
        return list(wanted[:1]) or [default]
    chosen = [code for code in present if code in wanted] if wanted else present
    if not chosen or (not wanted and len(present) > 1):
        raise input_error(
            f"--data_dir={directory}",
            f"its documents are in {', '.join(present)}, but the flags name"
            f" {', '.join(wanted) or 'none'}",
            f"Give --document_language={present[0]}; repeat it for more languages",
        )
    return chosen


def studies_of(request: Request) -> list[Study]:
    """Checks each set and tokenizes it, so that the runs find it in the cache."""
    studies: list[Study] = []
    grids = threshold_grids(*request.thetas) if request.thetas else {}
    for data in data_settings(
        request.base.data, request.directories, request.tfds_names, request.languages
    ):
        study = _opened(dataclasses.replace(request.base, data=data), request, grids)
        if study.name in [other.name for other in studies]:
            raise input_error(
                "--data_dir",
                f"two sets are called {study.name}",
                "Rename one directory: output files are named after it",
            )
        studies.append(study)
    return studies


def _opened(settings: RunSettings, request: Request, grids) -> Study:
    retrieval_set = opened_set(settings).retrieval_set
    data, source = settings.data, retrieval_set.source
    language = source.document_language
    layout = data.tfds_name.startswith("wiki_clir/") or (
        bool(data.data_dir) and language in document_languages(Path(data.data_dir))
    )
    queries, documents = len(np.unique(retrieval_set.query_rows)), len(retrieval_set.document_ids)
    if request.matching.folds:
        check_folds(request.matching.folds, queries, "--matching_folds")
    published = is_published(language, layout=layout, queries=queries, documents=documents)
    return Study(
        re.sub(r"[^\w.+-]+", "_", source.name),
        settings,
        source.fingerprint(),
        request.output_dir,
        request.seeds,
        grids,
        request.tune_epochs,
        request.matching,
        language if published else "",
    )
