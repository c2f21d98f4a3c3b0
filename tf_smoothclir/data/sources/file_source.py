"""Sources whose streams are files, and the files of a directory."""

from __future__ import annotations

import abc
import functools
import hashlib
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tf_smoothclir.data.sources.cells import Place, id_of, in_file
from tf_smoothclir.data.sources.line_files import WHOLE_FILE, Piece, pieces_of
from tf_smoothclir.data.sources.source import Judgment, Source, Text
from tf_smoothclir.data.sources.tables import (
    SPLITS,
    SUFFIXES,
    TEXTS,
    Role,
    Row,
    can_be_cut,
    read_table,
)
from tf_smoothclir.storage.digests import joint_digest
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.paths import local_path


class FileSource(Source):
    """A source whose streams are tables with one record per row; workers may read its pieces."""

    # Stream name ("queries", "documents", "judgments" and perhaps "splits") -> file.
    paths: dict[str, Path]

    def __init__(
        self,
        directory: Path,
        document_language: str,
        query_language: str = "en",
        columns: Mapping[str, str] | None = None,
    ) -> None:
        self.columns = columns or {}
        languages = f"{query_language}-{document_language}"
        name = directory.resolve().name
        self.name = name if name.endswith(languages) else f"{name}-{languages}"
        self.document_language = document_language
        self.query_language = query_language

    def _rows(
        self, stream: str, role: Role, piece: Piece = WHOLE_FILE
    ) -> tuple[Iterator[Row], Place]:
        """The rows of the file of a stream, and their places."""
        path = self.paths[stream]
        return read_table(path, role, self.columns, piece), in_file(path)

    @abc.abstractmethod
    def _texts(self, stream: str, piece: Piece = WHOLE_FILE) -> Iterator[tuple[int, Text]]:
        """Yields (line number, text) of a piece of "queries" or "documents"."""

    @abc.abstractmethod
    def _judgments(self) -> Iterator[tuple[int, Judgment]]:
        """Yields (line number, judgment)."""

    def _splits(self) -> Iterator[tuple[int, tuple[str, str]]]:
        """Yields (line number, (query id, split)); `RetrievalSet` checks the names of splits."""
        path, first = self.paths["splits"], {}
        rows, place = self._rows("splits", SPLITS)
        for line, (query_id, split) in rows:
            query_id = id_of(query_id, "query_id", place, line)
            # Checked here, because the dict that `splits` returns hides a repeated id.
            if first.setdefault(query_id, line) != line:
                reason = f"query {query_id!r} already has a split in line {first[query_id]}"
                raise input_error(path, reason, "Keep one of the two lines", line=line)
            yield line, (query_id, split)

    def queries(self) -> Iterator[Text]:
        return (text for _, text in self._texts("queries"))

    def documents(self) -> Iterator[Text]:
        return (text for _, text in self._texts("documents"))

    def document_pieces(self, size: int) -> Iterator[Piece]:
        """Yields pieces of the documents file of about `size` bytes, for different workers."""
        path = self.paths["documents"]
        return (
            pieces_of(path, size) if can_be_cut(path, TEXTS, self.columns) else iter([WHOLE_FILE])
        )

    def documents_in(self, piece: Piece) -> Iterator[tuple[int, Text]]:
        """Yields (row, document) of a piece."""
        texts = (text for _, text in self._texts("documents", piece))
        return enumerate(texts, start=piece.line - 1)  # what can be cut has a record on each line

    def judgments(self) -> Iterator[Judgment]:
        return (judgment for _, judgment in self._judgments())

    def splits(self) -> dict[str, str] | None:
        return dict(pair for _, pair in self._splits()) if "splits" in self.paths else None

    def place(self, stream: str, index: int) -> str:
        # Read again: only an error asks for a place.
        records: Iterator[tuple[int, Any]] = {
            "judgments": self._judgments,
            "splits": self._splits,
        }.get(stream, lambda: self._texts(stream))()
        line, _ = next(itertools.islice(records, index, None))
        return f"{self.paths[stream]}:{line}"

    def fingerprint(self) -> str:
        return self._fingerprint

    @functools.cached_property
    def _fingerprint(self) -> str:  # takes seconds for a large collection
        digest = joint_digest(dict.fromkeys(self.paths.values()))
        if not self.columns:
            return digest
        return hashlib.sha256(f"{digest} {sorted(self.columns.items())}".encode()).hexdigest()


def files_named(directory: Path, *names: str) -> list[Path]:
    """The files of these names in a directory, whatever the case of their letters."""
    there = {path.name.lower(): path for path in sorted(directory.iterdir()) if path.is_file()}
    return [there[name] for name in names if name in there]


def table_named(directory: Path, name: str) -> Path | None:
    """The table of a name in a directory, of whatever kind; None where there is none."""
    tables = files_named(directory, *(f"{name}{suffix}" for suffix in SUFFIXES))
    if len(tables) > 1:
        reason = f"it contains both {tables[0].name} and {tables[1].name}"
        raise input_error(directory, reason, "Keep one of the two")
    return tables[0] if tables else None


def checked_directory(directory: str | Path) -> Path:
    """The path of a directory; raises `InputError` if there is none."""
    directory = Path(local_path(directory))
    if not directory.is_dir():
        raise input_error(directory, "there is no such directory", "Check the path")
    return directory
