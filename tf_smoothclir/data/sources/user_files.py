"""A user's own retrieval set: documents, queries and judgments as TSV or JSONL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tf_smoothclir.data.sources.line_files import (
    WHOLE_FILE,
    FileSource,
    Piece,
    checked_directory,
    checked_id,
    files_named,
    read_jsonl,
    read_judgments,
    read_tsv,
)
from tf_smoothclir.data.sources.source import Judgment, Text
from tf_smoothclir.utils.errors import input_error

STREAMS = ("documents", "queries", "judgments")


class UserDirectory(FileSource):
    """A directory with documents, queries and judgments, each in a file `.tsv` or `.jsonl`.

    | file | TSV columns | JSONL fields |
    | --- | --- | --- |
    | `documents`, `queries` | id, text | "id", "text", optional "title" |
    | `judgments` | query_id, document_id, grade | "query_id", "document_id", "grade" |
    | `splits` (optional) | query_id, `train`, `validation` or `test` | none: TSV only |

    Ids are strings without white space; JSON ids may be integers. Other JSON fields are ignored.
    The three files may have different formats.
    """

    def __init__(
        self, directory: str | Path, document_language: str, query_language: str = "en"
    ) -> None:
        directory = checked_directory(directory)
        super().__init__(directory, document_language, query_language)
        self.paths = {stream: _stream_file(directory, stream) for stream in STREAMS}
        for splits in files_named(directory, "splits.tsv"):
            self.paths["splits"] = splits

    def _texts(self, stream: str, piece: Piece = WHOLE_FILE) -> Iterator[tuple[int, Text]]:
        path = self.paths[stream]
        if path.suffix.lower() == ".tsv":
            for line, (id_, text) in read_tsv(path, ("id", "text"), piece):
                yield line, Text(checked_id(id_, "id", path, line), "", text)
            return
        for line, record in read_jsonl(path, piece):
            text = json_field(record, "text", str, path, line)
            id_ = json_id(record, "id", path, line)
            yield line, Text(id_, json_title(record, path, line), text)

    def _judgments(self) -> Iterator[tuple[int, Judgment]]:
        path = self.paths["judgments"]
        if path.suffix.lower() == ".tsv":
            yield from read_judgments(path, ("query_id", "document_id", "grade"))
            return
        for line, record in read_jsonl(path):
            query = json_id(record, "query_id", path, line)
            document = json_id(record, "document_id", path, line)
            yield line, Judgment(query, document, json_field(record, "grade", int, path, line))


def _stream_file(directory: Path, stream: str) -> Path:
    found = files_named(directory, f"{stream}.tsv", f"{stream}.jsonl")
    if len(found) == 1:
        return found[0]
    if found:
        reason = f"it contains both {stream}.tsv and {stream}.jsonl"
        raise input_error(directory, reason, "Keep one of the two")
    reason = f"it contains neither {stream}.tsv nor {stream}.jsonl"
    raise input_error(directory, reason, f"Give one file each for {', '.join(STREAMS)}")


def json_field(record: dict[str, Any], name: str, kind: type, path: Path, line: int) -> Any:
    """A field of exactly this type: true is not the integer 1; `InputError` otherwise."""
    if name not in record:
        reason = f"the object has no {name!r}; it has: {', '.join(record) or 'nothing'}"
        raise input_error(path, reason, f"Add {name!r} to it", line=line)
    if type(record[name]) is not kind:
        reason = f"{name!r} is {record[name]!r}, a JSON {type(record[name]).__name__}"
        raise input_error(path, reason, f"Give it a JSON {kind.__name__}", line=line)
    return record[name]


def json_title(record: dict[str, Any], path: Path, line: int) -> str:
    """The title of a text; "" where it has none, or null."""
    if record.get("title") is None:
        return ""
    return json_field(record, "title", str, path, line)


def json_id(record: dict[str, Any], name: str, path: Path, line: int) -> str:
    """An id, which may be an integer; see `json_field`."""
    if type(record.get(name)) is int:
        return str(record[name])
    return checked_id(json_field(record, name, str, path, line), name, path, line)
