"""Collections to index: the documents of a retrieval set, or files of documents. All stream."""

from __future__ import annotations

import abc
import hashlib
import itertools
from collections.abc import Iterator
from pathlib import Path

from tf_smoothclir.data.sources.line_files import checked_id, read_lines, read_tsv
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import Source, Text
from tf_smoothclir.data.sources.user_files import UserDirectory
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.storage.digests import joint_digest
from tf_smoothclir.utils.errors import InputError, input_error
from tf_smoothclir.utils.paths import local_path

_SUFFIXES = (".documents", ".jsonl", ".parquet", ".tsv")
_ROWS_PER_BATCH = 256
# How large the texts of a Parquet file may be, beside its size: few bytes can stand for gigabytes.
_MOST_TIMES, _FREE_BYTES = 1000, 1 << 28
_OTHER_KIND = "Write them as another kind of file"


class Collection(abc.ABC):
    """Documents in a fixed order."""

    name: str

    @abc.abstractmethod
    def documents(self) -> Iterator[Text]:
        """Yields the documents, always in the same order."""

    @abc.abstractmethod
    def place(self, index: int) -> str:
        """File and line of document `index` (from 0)."""

    @abc.abstractmethod
    def fingerprint(self) -> str:
        """A hex digest that changes whenever the content changes."""


class SourceCollection(Collection):
    """The documents of a retrieval set."""

    def __init__(self, source: Source):
        self.name, self._source = source.name, source

    def documents(self) -> Iterator[Text]:
        return self._source.documents()

    def place(self, index: int) -> str:
        return self._source.place("documents", index)

    def fingerprint(self) -> str:
        return self._source.fingerprint()


class FileCollection(Collection):
    """The documents of several files, in order.

    | suffix | content |
    | --- | --- |
    | `.tsv` | id and text, separated by a tab |
    | `.documents` | id, title and text, separated by tabs, as in WikiCLIR |
    | `.jsonl` | objects with "id", "text" and optionally "title" |
    | `.parquet` | columns `id` (string or integer), `text` and optionally `title` |
    """

    def __init__(self, paths: list[Path]):
        self.name = str(paths[0]) if len(paths) == 1 else str(paths[0].parent)
        self.paths = paths

    def documents(self) -> Iterator[Text]:
        return (text for path in self.paths for _, text in _records(path))

    def place(self, index: int) -> str:
        records = ((path, line) for path in self.paths for line, _ in _records(path))
        path, line = next(itertools.islice(records, index, None))
        return f"{path}:{line}"

    def fingerprint(self) -> str:
        if len(self.paths) == 1:
            return joint_digest(self.paths)
        return hashlib.sha256("".join(joint_digest([p]) for p in self.paths).encode()).hexdigest()


def open_files(path: str | Path, flag: str) -> FileCollection:
    """Opens a file of documents, or a directory of such files, as Spark writes them."""
    path = Path(local_path(path))
    if path.is_dir():
        there = (file for file in path.iterdir() if _kind(file) in _SUFFIXES)
        files = sorted(filter(Path.is_file, there))
        kinds = set(map(_kind, files))
        if len(kinds) == 1:
            return FileCollection(files)
        reason = f"the directory holds {' and '.join(sorted(kinds)) or 'no'} files of documents"
    elif not path.exists():
        reason = "there is no such file"
    elif not path.is_file():
        reason = "it is not a regular file, and documents are read more than once"
    elif _kind(path) in _SUFFIXES:
        return FileCollection([path])
    else:
        reason = f"the suffix {path.suffix!r} is not a known kind of file"
    remedy = f"Give a file, or a directory of files of one kind, ending in {', '.join(_SUFFIXES)}"
    raise input_error(f"{flag}={path}", reason, remedy)


def open_collection(path: str, data: DataSettings) -> Collection:
    """Opens the files at `path` or, if it is empty, the documents of a retrieval set."""
    if path:
        return open_files(path, "--collection")
    return SourceCollection(source_of(data))


def read_ids(path: str | Path) -> list[str]:
    """Reads ids from a file, one per line; returns each once, in order."""
    path = Path(path)
    return list(dict.fromkeys(checked_id(line, "id", path, n) for n, line in read_lines(path)))


def _kind(path: Path) -> str:
    return path.suffix.lower()


def _records(path: Path) -> Iterator[tuple[int, Text]]:
    """Yields (line or row from 1, document)."""
    if _kind(path) == ".parquet":
        return _parquet(path)
    if _kind(path) == ".documents":
        return _titled(path)
    return _UserDocuments(path).records()


class _UserDocuments(UserDirectory):
    """The documents of a user's set, without its queries and judgments."""

    def __init__(self, path: Path):
        self.paths = {"documents": path}

    def records(self) -> Iterator[tuple[int, Text]]:
        return self._texts("documents")


def _titled(path: Path) -> Iterator[tuple[int, Text]]:
    for line, fields in read_tsv(path, ("doc_id", "title", "text")):
        checked_id(fields[0], "doc_id", path, line)
        yield line, Text(*fields)


def _parquet(path: Path) -> Iterator[tuple[int, Text]]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:  # missing, or built for another NumPy
        raise input_error(
            path,
            f"reading Parquet needs the package pyarrow ({error})",
            "pip install '.[parquet]' in the checkout",
        ) from None
    row, size = 0, path.stat().st_size
    left = _FREE_BYTES + _MOST_TIMES * size
    too_large = f"its texts are more than {_MOST_TIMES} times as large as it"
    try:
        with parquet.ParquetFile(path) as file:
            columns = _columns(path, file.schema_arrow)
            chunks = [
                file.metadata.row_group(n).total_byte_size for n in range(file.num_row_groups)
            ]
            if sum(chunks) > left:
                raise input_error(path, too_large, _OTHER_KIND)
            # Each row may repeat the longest text, which the file may hold once, and compressed.
            rows = (_FREE_BYTES // 4 + 16 * size) // max([1, *chunks])
            for batch in file.iter_batches(min(max(1, rows), _ROWS_PER_BATCH), columns=columns):
                for record in batch.to_pylist():
                    row += 1
                    text = _parquet_text(record, path, row)
                    left -= len(text.title) + len(text.text)
                    if left < 0:
                        raise input_error(path, too_large, _OTHER_KIND)
                    yield row, text
    except InputError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:
        reason = f"it cannot be read as Parquet ({' '.join(str(error).split())})"
        raise input_error(path, reason, "Write the file again", line=row + 1) from None
    if not row:
        raise input_error(path, "the file is empty", "Write one record per row")


def _columns(path: Path, schema) -> list[str]:
    missing = [name for name in ("id", "text") if name not in schema.names]
    if missing:
        reason = f"it has no column {missing[0]!r}; it has: {', '.join(schema.names)}"
        raise input_error(path, reason, "Write the columns id, text and optionally title")
    return [name for name in Text._fields if name in schema.names]


def _parquet_text(record: dict, path: Path, row: int) -> Text:
    if type(record["id"]) is int:
        record["id"] = str(record["id"])
    if record.setdefault("title") is None:
        record["title"] = ""
    for name in Text._fields:
        if type(record[name]) is not str:
            reason = f"{name!r} of the row is {record[name]!r}, not a string"
            raise input_error(path, reason, "Write a string there in every row", line=row)
    checked_id(record["id"], "id", path, row)
    return Text(**record)
