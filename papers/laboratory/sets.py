"""The retrieval sets of a study: named by the flags, prepared once for all runs."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.selection import RELATED
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.data.sources.wikiclir_files import document_languages
from tf_smoothclir.papers.laboratory.plan import StudySet
from tf_smoothclir.papers.li2018.settings import AdversarialSettings
from tf_smoothclir.papers.liu2020.paper_numbers import differences_from_paper, is_published
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.training.run_data import retrieval_set_of
from tf_smoothclir.utils.errors import input_error


def data_settings(
    base: DataSettings,
    data_dirs: Sequence[str] = (),
    tfds_names: Sequence[str] = (),
    languages: Sequence[str] = (),
) -> list[DataSettings]:
    """The data settings of each set that the flags name."""
    found = []
    for directory in data_dirs:
        for language in _languages_in(directory, languages, base.document_language):
            changes = {"data_dir": directory, "document_language": language}
            found.append(dataclasses.replace(base, **changes))
    found += [dataclasses.replace(base, tfds_name=name) for name in tfds_names]
    toys = languages or [base.document_language]
    return found or [dataclasses.replace(base, document_language=code) for code in toys]


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


def open_sets(base: RunSettings, data: Sequence[DataSettings]) -> list[StudySet]:
    """Checks each set and tokenizes it, so that the runs find it in the cache."""
    found = []
    for settings in data:
        one = _open(dataclasses.replace(base, data=settings))
        if one.name in [other.name for other in found]:
            raise input_error(
                "--data_dir",
                f"two sets are called {one.name}",
                "Rename one directory: output files are named after it",
            )
        found.append(one)
    return found


def _open(settings: RunSettings) -> StudySet:
    source = source_of(settings.data)
    retrieval_set = retrieval_set_of(source, settings, SPLITS)
    if settings.of(AdversarialSettings).translated_by == "human":
        next(source.translated_queries(), None)  # an error now rather than in every run
    tokenize_set(retrieval_set, settings.text, settings.data.cache_dir)
    data, language = settings.data, source.document_language
    layout = data.tfds_name.startswith("wiki_clir/") or (
        bool(data.data_dir) and language in document_languages(Path(data.data_dir))
    )
    _, judged = np.unique(retrieval_set.query_rows, return_counts=True)
    queries, documents = len(judged), len(retrieval_set.document_ids)
    published = is_published(language, layout=layout, queries=queries, documents=documents)
    enough = {
        "max_queries": queries,
        "max_train_queries": len(retrieval_set.queries_in("train")),
        "related_per_query": float(np.sum(retrieval_set.grades == RELATED) / queries),
        "negatives": documents - judged.min() + 1,
    }
    return StudySet(
        re.sub(r"[^\w.+-]+", "_", source.name),
        settings,
        source.fingerprint(),
        language if published else "",
        tuple(differences_from_paper(settings)),
        enough,
    )
