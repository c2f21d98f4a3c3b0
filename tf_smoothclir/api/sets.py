"""The retrieval set that a caller means: in memory, in a directory, or one that is open already."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path

from tf_smoothclir.api.given import Judgments, Texts, judgments_of, texts_of
from tf_smoothclir.api.keywords import PathText
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.memory import MemorySource
from tf_smoothclir.data.sources.source import SPLITS, Source
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.paths import local_path

Data = PathText | Source | RetrievalSet
_REMEDY = "Give queries, documents and judgments, or data: a directory or a retrieval set"


@dataclasses.dataclass(frozen=True)
class GivenSet:
    """A set that a caller gave, one of two.

    Attributes:
        directory: Of a set in files; None for one in memory, or for none.
        source: A set in memory; None for one in files, or for none.
        splits: Query id -> split, of a set in memory; None where none are given.
    """

    directory: str | None = None
    source: Source | None = None
    splits: dict[str, str] | None = None


def given_set(
    where: str,
    data: Data | None,
    queries: Texts | None,
    documents: Texts | None,
    judgments: Judgments | None,
    splits: Mapping[str, str] | None = None,
    *,
    languages: tuple[str, str],
) -> GivenSet:
    """The set that arguments give."""
    parts = {"queries": queries, "documents": documents, "judgments": judgments}
    given = [name for name, part in parts.items() if part is not None]
    named: dict[str, str] | None
    if data is not None and (given or splits is not None):
        raise input_error(
            f"{where}: data", "queries, documents or judgments are given too", _REMEDY
        )
    if isinstance(data, (str, os.PathLike)):
        return GivenSet(directory=os.path.abspath(local_path(data)))
    if isinstance(data, RetrievalSet):
        rows = {id_: int(split) for id_, split in zip(data.query_ids, data.splits)}
        named = {id_: SPLITS[split] for id_, split in rows.items() if split >= 0}
        return GivenSet(source=data.source, splits=named)
    if isinstance(data, Source):
        return GivenSet(source=data, splits=data.splits())
    if data is not None:
        raise input_error(f"{where}: data", f"it is a {type(data).__name__}", _REMEDY)
    if not given:
        return GivenSet()
    if queries is None or documents is None or judgments is None:
        missing = ", ".join(name for name in parts if name not in given)
        raise input_error(f"{where}: {', '.join(given)}", f"{missing} are missing", _REMEDY)
    named = None if splits is None else {str(id_): split for id_, split in splits.items()}
    source = MemorySource(
        texts_of(queries, "queries"),
        texts_of(documents, "documents"),
        judgments_of(judgments),
        named,
        query_language=languages[0],
        document_language=languages[1],
    )
    return GivenSet(source=source, splits=named)


def directory_holds(directory: Path, written: Path) -> bool:
    """Whether two directories of sets have the same files with the same content."""
    names = sorted(path.name for path in directory.iterdir())
    if names != sorted(path.name for path in written.iterdir()):
        return False
    return all((directory / name).read_bytes() == (written / name).read_bytes() for name in names)
