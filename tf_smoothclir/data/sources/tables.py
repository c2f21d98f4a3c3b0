"""The one reader of tables: TSV, CSV, JSONL and Parquet, whose columns have names.

| kind | names of columns |
| --- | --- |
| `.tsv` | those of the first line, if it has names of columns; else the order of the role |
| `.csv` | those of the first line; separated by commas or semicolons, quoted where needed |
| `.jsonl` | those of the fields of each object |
| `.parquet` | those of its columns |

All but Parquet may be compressed (`.gz`). A column may have one of several usual names, or of those
that `--columns` gives, here with commas between them; case, `-`, `_` and spaces do not matter.
Other columns are metadata of documents, and ignored elsewhere.
"""

from __future__ import annotations

import collections
import csv
import functools
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from absl import logging

from tf_smoothclir.data.sources.line_files import (
    any_lines,
    empty_file,
    is_compressed,
    without_blank,
)
from tf_smoothclir.utils.errors import InputError, input_error

# (number of the line or row from 1, the value of each column of a role)
Row = tuple[int, list[Any]]
ABSENT: Any = ...  # in the place of a value whose column is not there; an empty value is None
KINDS = {
    **dict.fromkeys((".tsv", ".documents", ".queries", ".rel"), "tsv"),  # those of WikiCLIR too
    **{".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"},
}
SUFFIXES = tuple(
    f"{suffix}{end}"
    for suffix in (".tsv", ".csv", ".jsonl", ".parquet")
    for end in ("", ".gz")
    if (suffix, end) != (".parquet", ".gz")
)
# Other usual names of a column.
_ALIASES = {
    "id": ("qid", "query_id", "doc_id", "document_id", "corpus_id", "docno"),
    "text": ("query", "document"),
    "query_id": ("qid", "query", "topic"),
    "document_id": ("doc_id", "corpus_id", "docno", "document"),
    "grade": ("score", "relevance", "rel", "label"),
    "count": ("clicks",),
    "language": ("lang",),
}
_DELIMITERS = (",", ";", "\t")
_ROWS_PER_BATCH = 256
# How large the texts of a Parquet file may be, beside its size: few bytes can stand for gigabytes.
_MOST_TIMES, _FREE_BYTES = 1000, 1 << 28
_OTHER_KIND = "Write them as another kind of file"


class Role(NamedTuple):
    """The columns of a table."""

    columns: tuple[str, ...]  # in the order of a TSV file without their names
    needed: int  # how many of them, the first ones, must be there
    by_name: tuple[str, ...] = ()  # further columns, which are not needed
    others: bool = False  # whether a row ends with all other columns, name -> value

    @property
    def names(self) -> tuple[str, ...]:
        """All columns, in the order of the values of a row."""
        return (*self.columns, *self.by_name)


TEXTS = Role(("id", "text"), 2, ("title", "language"))
TITLED_TEXTS = Role(("id", "title", "text"), 3)
JUDGMENTS = Role(("query_id", "document_id", "grade"), 2, ("weight",))
SPLITS = Role(("query_id", "split"), 2)
PAIRS = Role(("query", "document", "grade"), 2, ("query_language", "document_language"))
CLICKS = Role(("query", "document_id", "count"), 2, ("query_language",))
PARALLEL = Role(("query", "document"), 2)
_ROLES = (TEXTS, JUDGMENTS, SPLITS, PAIRS, CLICKS)
COLUMNS = tuple(dict.fromkeys(name for role in _ROLES for name in role.names))
_KNOWN = (*COLUMNS, *itertools.chain(*_ALIASES.values()))


def read_table(path: Path, role: Role, columns: Mapping[str, str] | None = None) -> Iterator[Row]:
    """Yields the rows of a file; `columns`: column -> its name there, if it is another one."""
    if kind_of(path) == "parquet":
        return _parquet(path, role, columns or {})
    return rows_of_lines(kind_of(path), path, role, any_lines(path), columns)


def kind_of(path: Path) -> str:
    """The kind of a table by the name of its file; "" if it is none."""
    if is_compressed(path):
        kind = KINDS.get(Path(path.stem).suffix.lower(), "")
        return "" if kind == "parquet" else kind
    return KINDS.get(path.suffix.lower(), "")


def rows_of_lines(
    kind: str,
    path: Path,
    role: Role,
    lines: Iterable[tuple[int, str]],
    columns: Mapping[str, str] | None = None,
) -> Iterator[Row]:
    """Yields the rows of the lines of a file, of `any_lines`; see `read_table`."""
    if kind == "csv":
        return _csv(path, role, columns or {}, iter(lines))
    read = {"tsv": _tsv, "jsonl": _jsonl}[kind]
    return read(path, role, columns or {}, without_blank(path, lines))


def as_texts(rows: Iterable[Row]) -> Iterator[Row]:
    """Rows of `TITLED_TEXTS` as those of `TEXTS`."""
    return ((line, [id_, text, title, None]) for line, (id_, title, text) in rows)


def chosen_columns(
    names: Iterable[str],
    role: Role,
    columns: Mapping[str, str] | None,
    where: str | Path,
    line: int | None = None,
) -> list[str | None]:
    """The name in a table of each column of a role; None for one that is not there."""
    names, columns = list(names), columns or {}
    by_plain = {plain(name): name for name in reversed(names)}
    ((most, times),) = collections.Counter(filter(None, names)).most_common(1) or [("", 1)]
    if times > 1:
        raise input_error(where, f"{times} columns have the name {most!r}", "Rename one", line=line)
    chosen = [_name_in(by_plain, column, columns) for column in role.names]
    needed = zip(role.columns[: role.needed], chosen)
    if missing := [column for column, name in needed if name is None]:
        others = [*(name for name in names if name not in chosen), *["NAME"] * len(missing)]
        said = ",".join(f"{column}={name_there}" for column, name_there in zip(missing, others))
        raise input_error(
            where,
            f"there is no column {missing[0]!r}; there are: {', '.join(names) or 'none'}",
            f"Rename one of them, or say which is which, such as --columns={said}",
            line=line,
        )
    others = tuple(name for name in names if name not in chosen)
    is_missing = role.needed < len(role.columns) and chosen[len(role.columns) - 1] is None
    if others and is_missing and not role.others:
        _warn_of_ignored(re.sub(r"\[\d+\]$", "", str(where)), role.columns[-1], others)
    return chosen


@functools.cache  # once, however often a table is read
def _warn_of_ignored(where: str, column: str, others: tuple[str, ...]) -> None:
    reason = "%s: there is no column %r, so each row counts 1; ignored are: %s."
    remedy = "If one of them is meant, give --columns=%s=NAME"
    logging.warning(f"{reason} {remedy}", where, column, ", ".join(map(str, others)), column)


def is_header(fields: Sequence[str], role: Role, columns: Mapping[str, str] | None = None) -> bool:
    """Whether the fields of a first line name columns: all of them, or all that are needed."""
    by_plain, columns = {plain(field): field for field in fields}, columns or {}
    if len(fields) < 2:
        return False
    given = ",".join(columns.values()).split(",")
    if by_plain.keys() <= {*map(plain, (*_KNOWN, *given))}:
        return True
    return all(_name_in(by_plain, column, columns) for column in role.columns[: role.needed])


def plain(name: object) -> str:
    """A name as it is compared."""
    return re.sub(r"[-_\s]", "", str(name).strip().strip('#"').lower())


def _name_in(by_plain: Mapping[str, str], column: str, columns: Mapping[str, str]) -> str | None:
    wanted = (*columns.get(column, column).split(","), column, *_ALIASES.get(column, ()))
    return next((by_plain[name] for name in map(plain, wanted) if name in by_plain), None)


def values_of(
    role: Role, record: Any, chosen: Sequence, places: Mapping[str, int] | None = None
) -> list[Any]:
    """The values of a row; `places` are those of all columns of a record that is a list."""
    values = [ABSENT if key is None else record[key] for key in chosen]
    if role.others:
        keys = zip(record, record) if places is None else places.items()
        read = [key for key, column in zip(chosen, role.names) if column != "language"]
        values.append({name: record[key] for name, key in keys if key not in read})
    return values


def _tsv(path: Path, role: Role, columns: Mapping, lines: Iterable[tuple[int, str]]):
    order: list[int | None] = []
    places: dict[str, int] = {}
    widths = sorted({role.needed, len(role.columns)})
    width, shown = 0, f"{' or '.join(map(str, widths))} ({', '.join(role.columns)})"
    for line, text in lines:
        fields = text.split("\t")
        if line == 1 and (is_header(fields, role, columns) or _is_no_row(fields, role)):
            order, width = _order(fields, role, columns, path), len(fields)
            places = dict(zip(fields, range(width)))
            shown = f"{width} ({', '.join(fields)})"
            continue
        if line == 1 and role is not PARALLEL and (given := columns.keys() & {*role.names}):
            names = ", ".join(f"{column}={columns[column]}" for column in sorted(given))
            reason = f"--columns gives {names}, but this is no line of names"
            remedy = "Give the names of this file too, or put a line of names first"
            raise input_error(path, reason, remedy, line=line)
        if not width and role.needed <= len(fields) <= len(role.columns):
            width = len(fields)
            order = [place if place < width else None for place in range(len(role.names))]
            shown = f"{width} ({', '.join(role.columns[:width])})"
        if len(fields) != width:
            raise input_error(
                path,
                f"{len(fields)} tab-separated columns instead of {shown}",
                "Put one tab between columns, and no tab into a text; other columns need a first"
                " line with the names of all",
                line=line,
            )
        yield line, values_of(role, fields, order, places)


def _is_no_row(fields: Sequence[str], role: Role) -> bool:
    """Whether a first line begins with the name of a column of ids, or names one of too many."""
    known, name = {*map(plain, _KNOWN)}, plain(fields[0])
    if len(fields) > len(role.columns):
        return not known.isdisjoint(map(plain, fields))
    return role.columns[0].endswith("id") and name.endswith("id") and name in known


def _order(fields: list[str], role: Role, columns: Mapping, path: Path) -> list[int | None]:
    """The place of each column of a role among the fields of a header."""
    names = chosen_columns(fields, role, columns, path, 1)
    return [None if name is None else fields.index(name) for name in names]


def _csv(path: Path, role: Role, columns: Mapping, lines: Iterator[tuple[int, str]]):
    csv.field_size_limit(_FREE_BYTES)
    at, first = next(lines, (0, ""))
    if not at:
        raise empty_file(path)
    headers = {d: next(csv.reader([first], delimiter=d), []) for d in _DELIMITERS}
    named = (d for d, fields in headers.items() if is_header(fields, role, columns))
    # Of a header that does not name what is needed, the error shows the columns that there are.
    delimiter = next(named, None) or max(headers, key=lambda d: len(headers[d]))
    begin, last, order = 1, 1, None

    def texts() -> Iterator[str]:
        nonlocal last
        for at, text in itertools.chain([(1, first)], lines):
            last = at
            yield f"{text}\n"

    records = csv.reader(texts(), delimiter=delimiter, strict=True)
    try:
        for fields in records:
            at, begin = begin, last + 1
            if order is None:
                order, width = _order(fields, role, columns, path), len(fields)
                places = dict(zip(fields, range(width)))
            elif len(fields) == width:
                yield at, values_of(role, fields, order, places)
            elif fields:
                reason = f"{len(fields)} values instead of {width}, as in the first line"
                raise input_error(path, reason, _QUOTE, line=at)
    except csv.Error as error:
        raise input_error(path, f"this is no CSV ({error})", _QUOTE, line=begin) from None
    if begin == 2:
        raise empty_file(path)


_QUOTE = "Put texts into quotation marks that hold one, a separator or a line end"


def _jsonl(path: Path, role: Role, columns: Mapping, lines: Iterable[tuple[int, str]]):
    chosen: dict[tuple[str, ...], list[str | None]] = {}
    for line, text in lines:
        record = _json_object(path, line, text)
        names = tuple(record)
        if names not in chosen:
            if len(chosen) > _ROWS_PER_BATCH:  # objects of any names
                chosen.clear()
            chosen[names] = chosen_columns(names, role, columns, path, line)
        yield line, values_of(role, record, chosen[names])


def _json_object(path: Path, line: int, text: str) -> dict[str, Any]:
    try:
        record = json.loads(text, object_pairs_hook=_fields)
        if "\\u" in text:  # half a surrogate pair is valid JSON, but not text
            json.dumps(record, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        reason, remedy = f"the line is not JSON ({error})", "Give one JSON object per line"
        raise input_error(path, reason, remedy, line=line) from None
    if not isinstance(record, dict):
        raise input_error(
            path,
            f"a JSON {type(record).__name__} instead of an object",
            'Give one object per line, such as {"id": "1", "text": "..."}',
            line=line,
        )
    return record


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(record := dict(pairs)) < len(pairs):
        raise ValueError("an object has a field twice")
    return record


def _parquet(path: Path, role: Role, columns: Mapping) -> Iterator[Row]:
    import pyarrow
    from pyarrow import parquet

    row, size = 0, path.stat().st_size
    left = _FREE_BYTES + _MOST_TIMES * size
    too_large = f"its texts are more than {_MOST_TIMES} times as large as it"
    try:
        with parquet.ParquetFile(path) as file:
            names = chosen_columns(file.schema_arrow.names, role, columns, path)
            groups = map(file.metadata.row_group, range(file.num_row_groups))
            chunks = [group.total_byte_size for group in groups]
            if sum(chunks) > left:
                raise input_error(path, too_large, _OTHER_KIND)
            # Each row may repeat the longest text, which the file may hold once, and compressed.
            rows = (_FREE_BYTES // 4 + 16 * size) // max([1, *chunks])
            wanted = None if role.others else list(filter(None, names))
            for batch in file.iter_batches(min(max(1, rows), _ROWS_PER_BATCH), columns=wanted):
                for record in batch.to_pylist():
                    row += 1
                    left -= sum(
                        len(value) for value in record.values() if hasattr(value, "__len__")
                    )
                    if left < 0:
                        raise input_error(path, too_large, _OTHER_KIND)
                    yield row, values_of(role, record, names)
    except InputError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:
        reason = f"it cannot be read as Parquet ({' '.join(str(error).split())})"
        raise input_error(path, reason, "Write the file again", line=row + 1) from None
    if not row:
        raise empty_file(path)
