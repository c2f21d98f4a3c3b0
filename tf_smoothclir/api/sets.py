"""The retrieval set that a caller means: in memory, in a directory, or one that is open already."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tf_smoothclir.api.given import judgments_of, others_of, rows_of, texts_of
from tf_smoothclir.data.retrieval_set import RetrievalSet, known_judgments
from tf_smoothclir.data.sources.cells import text_of
from tf_smoothclir.data.sources.memory import MemorySource, Tokenizer, segmented_set, write_set
from tf_smoothclir.data.sources.opening import columns_of, source_of
from tf_smoothclir.data.sources.source import SPLITS, Judgment, Source
from tf_smoothclir.data.sources.tables import CLICKS, PAIRS, PARALLEL
from tf_smoothclir.data.sources.user_files import (
    DOCUMENT,
    QUERY,
    judgments_of_clicks,
    judgments_of_pairs,
    texts_of_column,
)
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.storage.files import make_directory
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.paths import PathText, local_path

Data = PathText | Source | RetrievalSet
# Arguments that are a set, and which of them go together.
PARTS = ("queries", "documents", "judgments", "clicks", "pairs", "parallel", "splits")
_FORMS = (
    *({"queries", "documents", "judgments"}, {"documents", "clicks"}, {"pairs"}),
    *({"documents", "parallel"}, {"documents"}),
)
_REMEDY = (
    "Give queries, documents and judgments; or documents and clicks; or pairs; or documents and"
    " parallel sentences, or a dictionary; or data: a directory or a retrieval set"
)


@dataclasses.dataclass(frozen=True)
class GivenSet:
    """A set that a caller gave: in a directory, or in memory with its splits, by query id."""

    directory: str | None = None
    source: Source | None = None
    splits: dict[str, str] | None = None

    def read_by(
        self, tokenizer: Tokenizer | None, settings: DataSettings, parallel: str = ""
    ) -> GivenSet:
        """The set in memory with its texts split into words, if there is a tokenizer."""
        if tokenizer is None:
            return self
        named = dataclasses.replace(settings, parallel=parallel)
        if self.directory is not None:
            named = dataclasses.replace(named, data_dir=self.directory)
        source = source_of(named) if self.source is None else self.source
        splits = source.splits() if self.splits is None else self.splits
        return GivenSet(source=segmented_set(source, tokenizer), splits=splits)


def given_set(
    where: str, data: Data | None, parts: Mapping[str, Any], settings: DataSettings
) -> GivenSet:
    """The set that arguments give; `parts`: those of `PARTS` that are given, by name."""
    parts = {name: part for name, part in parts.items() if part is not None}
    splits = parts.pop("splits", None)
    if data is not None and (parts or splits is not None):
        raise input_error(
            f"{where}: data", f"{', '.join(parts) or 'splits'} are given too", _REMEDY
        )
    if isinstance(data, (str, os.PathLike)):
        return GivenSet(directory=os.path.abspath(local_path(data)))
    if isinstance(data, RetrievalSet):
        rows = {id_: int(split) for id_, split in zip(data.query_ids, data.splits)}
        splits = {id_: SPLITS[split] for id_, split in rows.items() if split >= 0}
        return GivenSet(source=data.source, splits=splits)
    if isinstance(data, Source):
        return GivenSet(source=data, splits=data.splits())
    if data is not None:
        raise input_error(f"{where}: data", f"it is a {type(data).__name__}", _REMEDY)
    if not parts:
        return GivenSet()
    named = None if splits is None else {str(id_): split for id_, split in splits.items()}
    return GivenSet(source=set_in_memory(where, parts, named, settings), splits=named)


def set_in_memory(
    where: str, parts: Mapping[str, Any], splits: dict[str, str] | None, settings: DataSettings
) -> Source:
    """The set that arguments give, those of `PARTS` but for `splits`."""
    form = next((form for form in _FORMS if form == parts.keys()), None)
    if form is None:
        near = next((form for form in _FORMS if form > parts.keys()), parts.keys())
        missing = [name for name in PARTS if name in near - parts.keys()]
        reason = f"{', '.join(missing)} are missing" if missing else "they do not go together"
        raise input_error(f"{where}: {', '.join(parts)}", reason, _REMEDY)
    columns, queries, judgments = columns_of(settings.columns), [], None
    if "pairs" in parts:
        rows, place = rows_of(parts["pairs"], PAIRS, "pairs", columns)
        queries, documents = (
            [text for _, text in texts_of_column(column, rows, place)]
            for column in (QUERY, DOCUMENT)
        )
        judgments = judgments_of_pairs(rows, place)
    else:
        documents = texts_of(parts["documents"], "documents", columns)
    if "clicks" in parts:
        rows, place = rows_of(parts["clicks"], CLICKS, "clicks", columns)
        queries = [text for _, text in texts_of_column(QUERY, rows, place)]
        judgments = judgments_of_clicks(rows, place)
    elif "judgments" in parts:
        queries = texts_of(parts["queries"], "queries", columns)
        judgments = enumerate(judgments_of(parts["judgments"], columns=columns))

    def of(judged: list[Judgment]) -> MemorySource:
        languages = settings.query_language, settings.document_language
        made = MemorySource(queries, documents, judged, splits, *languages)
        made.others = others_of(parts.get("documents"), "documents", columns)
        return made

    source = of([judgment for _, judgment in judgments or ()])
    source.is_judged = judgments is not None
    if "parallel" in parts:
        names = {"query": settings.query_language, "document": settings.document_language}
        rows, place = rows_of(parts["parallel"], PARALLEL, "parallel", {**names, **columns})
        source.parallel = [
            [text_of(text, "the sentence", place, row) for text in pair] for row, pair in rows
        ]
    if "clicks" in parts:
        source.max_skipped = settings.max_skipped
        source = of(known_judgments(source))
    return source


def _directory_holds(directory: Path, written: Path) -> bool:
    """Whether two directories of sets have the same files with the same content."""
    names = sorted(path.name for path in directory.iterdir())
    if names != sorted(path.name for path in written.iterdir()):
        return False
    return all((directory / name).read_bytes() == (written / name).read_bytes() for name in names)


def kept_set(
    source: Source,
    splits: Mapping[str, str] | None,
    settings: RunSettings,
    output_dir: PathText,
    overwrite: bool,
) -> Path:
    """Writes a set into the run directory, after checking it; returns where it is."""
    RetrievalSet.load(
        source, num_grades=len(settings.model.thresholds) + 1, seed=settings.data.split_seed
    )
    directory = RunDirectory(make_directory(output_dir, "output_dir")).data
    if not directory.exists():
        write_set(source, directory, splits)
        return directory
    with tempfile.TemporaryDirectory(dir=output_dir, prefix=".", suffix=".new") as scratch:
        written = Path(scratch, "data")
        write_set(source, written, splits)
        if _directory_holds(directory, written):
            return directory
    if not overwrite:
        raise input_error(
            f"output_dir={os.fspath(output_dir)}",
            "it holds a run on other data",
            "Choose another directory, or give overwrite=True",
        )
    write_set(source, directory, splits, replace=True)
    return directory
