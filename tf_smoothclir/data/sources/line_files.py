"""Reading line files, UTF-8 TSV and JSONL: every defect is an error with file and line."""

from __future__ import annotations

import abc
import functools
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tf_smoothclir.data.sources.source import Judgment, Source, Text
from tf_smoothclir.storage.digests import joint_digest
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.paths import local_path

_BOM = b"\xef\xbb\xbf"
# What people call columns; no text, id or grade is one of these words alone.
_HEADER = {
    *("id", "_id", "qid", "query_id", "queryid", "docid", "doc_id", "document_id", "documentid"),
    *("corpus_id", "text", "title", "query", "document", "relevance", "rel", "grade", "label"),
    *("score", "split"),
}
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


class Piece(NamedTuple):
    """Consecutive lines of a file."""

    begin: int = 0
    end: int | None = None  # offset after the last byte; None for the end of the file
    line: int = 1  # number of the first line, from 1


WHOLE_FILE = Piece()


def pieces_of(path: Path, size: int) -> Iterator[Piece]:
    """Yields the pieces of a file, each about `size` bytes long and at least one line."""
    begin, line = 0, 1
    with open(path, "rb") as file:
        while content := file.read(size):
            lines = content.count(b"\n")
            if not content.endswith(b"\n"):
                lines += 1
                file.readline()
            yield Piece(begin, file.tell(), line)
            begin, line = file.tell(), line + lines


def read_lines(path: Path, piece: Piece = WHOLE_FILE) -> Iterator[tuple[int, str]]:
    """Yields (line number from 1, line without its ending) of a UTF-8 file or a piece of one.

    Lines end with LF or CRLF; the last line may have no ending. Only a byte order mark at the very
    start is dropped, and blank lines at the very end.
    """
    offset, blank = piece.begin, 0
    try:
        with open(path, "rb") as file:
            if offset:  # a pipe has no other place than its beginning
                file.seek(offset)
            for number, raw in enumerate(file, start=piece.line):
                if offset == piece.end and not blank:
                    break
                line = _decode(raw, path, number, offset)
                offset += len(raw)
                if line.strip() and blank:
                    raise input_error(path, "the line is blank", "Remove it", line=blank)
                if line.strip():
                    yield number, line
                else:  # allowed if no other line follows, in this piece or after it
                    blank = blank or number
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
        raise input_error(path, reason, "Check the path") from None
    if not offset or blank == 1:
        raise input_error(path, "the file is empty", "Give it one record per line")


def _decode(raw: bytes, path: Path, number: int, offset: int) -> str:
    start = len(_BOM) if number == 1 and raw.startswith(_BOM) else 0
    end = len(raw) - raw.endswith(b"\n")
    end -= raw.endswith(b"\r", start, end)
    try:
        line = raw[start:end].decode("utf-8")
    except UnicodeDecodeError as error:
        at = start + error.start
        reason = f"byte 0x{raw[at]:02x} at offset {offset + at} of the file is not UTF-8"
        remedy = "Convert the file to UTF-8, for example with iconv"
        raise input_error(path, reason, remedy, line=number) from None
    return line


def read_tsv(
    path: Path, columns: Sequence[str], piece: Piece = WHOLE_FILE
) -> Iterator[tuple[int, list[str]]]:
    """Yields (line number, fields) of a tab-separated file without header, quoting or escaping.

    A first line that names columns is an error: it would be a text of its own.
    """
    for number, line in read_lines(path, piece):
        yield number, tsv_fields(path, number, line, columns)


def tsv_fields(path: Path, number: int, line: str, columns: Sequence[str]) -> list[str]:
    """The fields of a line; see `read_tsv`."""
    fields = line.split("\t")
    if number == 1 and is_header(fields):
        remedy = f"Remove it: the columns are always {', '.join(columns)}"
        raise input_error(path, f"the line is a header ({', '.join(fields)})", remedy, line=number)
    if len(fields) != len(columns):
        raise input_error(
            path,
            f"{len(fields)} tab-separated columns instead of {len(columns)} ({', '.join(columns)})",
            "Put one tab between columns, and no tab into a text",
            line=number,
        )
    return fields


def is_header(fields: Sequence[str]) -> bool:
    """Whether the fields of a first line name columns."""
    names = [re.sub("[- ]", "_", field.strip().strip('#"').lower()) for field in fields]
    return len(names) > 1 and _HEADER.issuperset(names)


def read_judgments(
    path: Path, columns: Sequence[str], *, has_header: bool = False
) -> Iterator[tuple[int, Judgment]]:
    """Yields (line number, judgment) of a tab-separated file: query, document and grade.

    With a header, a first line that is a judgment is an error: it would be lost without a word.
    """
    for line, text in read_lines(path):
        if has_header and line == 1:
            if text.rpartition("\t")[2].strip().lstrip("+-").isdigit():
                remedy = "Begin with the line " + r"\t".join(columns)
                raise input_error(path, "the first line is a judgment", remedy, line=1)
            continue
        query, document, grade = tsv_fields(path, line, text, columns)
        checked_id(query, columns[0], path, line)
        checked_id(document, columns[1], path, line)
        yield line, Judgment(query, document, checked_grade(grade, path, line))


def read_jsonl(path: Path, piece: Piece = WHOLE_FILE) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields (line number, object) of a file, or a piece of one, with one JSON object per line."""
    for number, line in read_lines(path, piece):
        yield number, json_object(path, number, line)


def json_object(path: Path, number: int, line: str) -> dict[str, Any]:
    """The object of a line; see `read_jsonl`."""
    try:
        record = json.loads(line)
        if "\\u" in line:  # half a surrogate pair is valid JSON, but not text
            json.dumps(record, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        reason, remedy = f"the line is not JSON ({error})", "Give one JSON object per line"
        raise input_error(path, reason, remedy, line=number) from None
    if not isinstance(record, dict):
        raise input_error(
            path,
            f"a JSON {type(record).__name__} instead of an object",
            'Give one object per line, such as {"id": "1", "text": "..."}',
            line=number,
        )
    return record


def checked_id(value: str, name: str, path: Path, line: int) -> str:
    """An id; raises `InputError` if it is empty or contains white space."""
    if value.split() != [value]:
        reason = f"{name} {value!r} is empty or contains white space"
        raise input_error(path, reason, "Give an id without white space", line=line)
    return value


def checked_grade(value: str, path: Path, line: int) -> int:
    """The grade in a TSV field; raises `InputError` if it is not an integer."""
    if not _INTEGER.fullmatch(value):
        reason = f"grade {value!r} is not an integer"
        raise input_error(path, reason, "Give a grade such as 0, 1 or 2", line=line)
    return int(value)


class FileSource(Source):
    """A source whose streams are files with one record per line; workers may read its pieces."""

    # Stream name ("queries", "documents", "judgments" and perhaps "splits") -> file.
    paths: dict[str, Path]

    def __init__(self, directory: Path, document_language: str, query_language: str):
        languages = f"{query_language}-{document_language}"
        name = directory.resolve().name
        self.name = name if name.endswith(languages) else f"{name}-{languages}"
        self.document_language = document_language
        self.query_language = query_language

    @abc.abstractmethod
    def _texts(self, stream: str, piece: Piece = WHOLE_FILE) -> Iterator[tuple[int, Text]]:
        """Yields (line number, text) of a piece of "queries" or "documents"."""

    @abc.abstractmethod
    def _judgments(self) -> Iterator[tuple[int, Judgment]]:
        """Yields (line number, judgment)."""

    def _splits(self) -> Iterator[tuple[int, tuple[str, str]]]:
        """Yields (line number, (query id, split)); `RetrievalSet` checks the names of splits."""
        path, first = self.paths["splits"], {}
        for line, (query_id, split) in read_tsv(path, ("query_id", "split")):
            checked_id(query_id, "query_id", path, line)
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
        return pieces_of(self.paths["documents"], size)

    def documents_in(self, piece: Piece) -> Iterator[tuple[int, Text]]:
        """Yields (row, document) of a piece."""
        return ((line - 1, text) for line, text in self._texts("documents", piece))

    def judgments(self) -> Iterator[Judgment]:
        return (judgment for _, judgment in self._judgments())

    def splits(self) -> dict[str, str] | None:
        return dict(pair for _, pair in self._splits()) if "splits" in self.paths else None

    def place(self, stream: str, index: int) -> str:
        # Read again: only an error asks for a place.
        records = {"judgments": self._judgments, "splits": self._splits}.get(
            stream, lambda: self._texts(stream)
        )()
        line, _ = next(itertools.islice(records, index, None))
        return f"{self.paths[stream]}:{line}"

    def fingerprint(self) -> str:
        return self._fingerprint

    @functools.cached_property
    def _fingerprint(self) -> str:  # takes seconds for a large collection
        return joint_digest(self.paths.values())


def files_named(directory: Path, *names: str) -> list[Path]:
    """The files of these names in a directory, whatever the case of their letters."""
    there = {path.name.lower(): path for path in sorted(directory.iterdir()) if path.is_file()}
    return [there[name] for name in names if name in there]


def checked_directory(directory: str | Path) -> Path:
    """The path of a directory; raises `InputError` if there is none."""
    directory = Path(local_path(directory))
    if not directory.is_dir():
        raise input_error(directory, "there is no such directory", "Check the path")
    return directory
