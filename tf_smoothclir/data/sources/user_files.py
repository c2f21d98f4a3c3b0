"""Reads a user's own retrieval set: documents, queries and judgments as TSV or JSONL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tf_smoothclir.data.sources.line_files import (
    WHOLE_FILE,
    FileSource,
    Piece,
    checked_directory,
    checked_grade,
    checked_id,
    read_jsonl,
    read_tsv,
)
from tf_smoothclir.data.sources.source import Judgment, Text
from tf_smoothclir.utils.errors import input_error

ROLES = ("documents", "queries", "judgments")


class UserDirectory(FileSource):
    """A directory with documents, queries and judgments, each in a file `.tsv` or `.jsonl`.

    | file | TSV columns | JSONL fields |
    | --- | --- | --- |
    | `documents`, `queries` | id, text | "id", "text", optional "title" |
    | `judgments` | query_id, document_id, grade | "query_id", "document_id", "grade" |
    | `splits` (optional) | query_id, `train`, `validation` or `test` | none: TSV only |

    Ids are strings without white space; in JSON an integer will do. Further JSON fields are
    ignored. The three roles need not have the same format.

    Args:
        directory: Holds the files.
        document_language: ISO 639-1 code, for reports.
        query_language: The same of the queries.

    Raises:
        InputError: A role has no file, or one in each format.
    """

    def __init__(
        self, directory: str | Path, document_language: str, query_language: str = "en"
    ) -> None:
        directory = checked_directory(directory)
        super().__init__(directory, document_language, query_language)
        self.paths = {role: _role_file(directory, role) for role in ROLES}
        splits = directory / "splits.tsv"
        if splits.exists():
            self.paths["splits"] = splits

    def _texts(self, stream: str, piece: Piece = WHOLE_FILE) -> Iterator[tuple[int, Text]]:
        path = self.paths[stream]
        if path.suffix == ".tsv":
            for line, (id_, text) in read_tsv(path, ("id", "text"), piece):
                yield line, Text(checked_id(id_, "id", path, line), "", text)
            return
        for line, record in read_jsonl(path, piece):
            title = _field(record, "title", str, path, line) if "title" in record else ""
            text = _field(record, "text", str, path, line)
            yield line, Text(_json_id(record, "id", path, line), title, text)

    def _judgments(self) -> Iterator[tuple[int, Judgment]]:
        path = self.paths["judgments"]
        if path.suffix == ".tsv":
            for line, fields in read_tsv(path, ("query_id", "document_id", "grade")):
                query = checked_id(fields[0], "query_id", path, line)
                document = checked_id(fields[1], "document_id", path, line)
                yield line, Judgment(query, document, checked_grade(fields[2], path, line))
            return
        for line, record in read_jsonl(path):
            query = _json_id(record, "query_id", path, line)
            document = _json_id(record, "document_id", path, line)
            yield line, Judgment(query, document, _field(record, "grade", int, path, line))


def _role_file(directory: Path, role: str) -> Path:
    found = [
        path for path in (directory / f"{role}.tsv", directory / f"{role}.jsonl") if path.is_file()
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise input_error(
            directory, f"it holds both {role}.tsv and {role}.jsonl", "Keep one of the two"
        )
    raise input_error(
        directory,
        f"it holds neither {role}.tsv nor {role}.jsonl",
        f"Give one file each for {', '.join(ROLES)}",
    )


def _field(record: dict[str, Any], name: str, kind: type, path: Path, line: int) -> Any:
    """Returns a field of exactly this type, so that true is not taken for the integer 1."""
    if name not in record:
        raise input_error(
            path,
            f"the object has no {name!r}; it has: {', '.join(record) or 'nothing'}",
            f"Add {name!r} to it",
            line=line,
        )
    if type(record[name]) is not kind:
        raise input_error(
            path,
            f"{name!r} is {record[name]!r}, a JSON {type(record[name]).__name__}",
            f"Give it a JSON {kind.__name__}",
            line=line,
        )
    return record[name]


def _json_id(record: dict[str, Any], name: str, path: Path, line: int) -> str:
    if type(record.get(name)) is int:
        return str(record[name])
    return checked_id(_field(record, name, str, path, line), name, path, line)
