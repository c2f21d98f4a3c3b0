"""The one reader of tables: TSV, CSV, JSONL and Parquet, whose columns have names.

A TSV file whose first line has no names of columns has those of the role, in its order. All but
Parquet may be compressed (`.gz`). `columns` says which names a column may have.
"""

import csv
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tf_smoothclir.data.sources import line_files
from tf_smoothclir.data.sources.cells import short
from tf_smoothclir.data.sources.columns import (
    JUDGMENTS,
    PARALLEL,
    TEXTS,
    TITLED_TEXTS,
    Role,
    Row,
    chosen_columns,
    is_header,
    is_no_row,
    is_record,
    values_of,
)
from tf_smoothclir.utils.errors import InputError, input_error

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
_DELIMITERS = (",", ";", "\t")
_ROWS_PER_BATCH = 256
# How large the texts of a Parquet file may be, beside its size: few bytes can stand for gigabytes.
_MOST_TIMES, _FREE_BYTES = 1000, 1 << 28
_OTHER_KIND = "Write them as another kind of file"


def read_table(path: Path, role: Role, columns: Mapping[str, str] | None = None) -> Iterator[Row]:
    """Yields the rows of a file; `columns`: column -> its name there, if it is another one."""
    if kind_of(path) == "parquet":
        return _parquet(path, role, columns or {})
    return rows_of_lines(kind_of(path), path, role, line_files.any_lines(path), columns)


def kind_of(path: Path) -> str:
    """The kind of a table by the name of its file; "" if it is none."""
    kind = KINDS.get(line_files.suffix_of(path), "")
    return "" if kind == "parquet" and line_files.is_compressed(path) else kind


def texts_role(path: Path) -> Role:
    """The columns of a file of texts: an id, a title and a text in those of WikiCLIR."""
    return TITLED_TEXTS if line_files.suffix_of(path) in (".documents", ".queries") else TEXTS


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
    return read(path, role, columns or {}, line_files.without_blank(path, lines))


def _tsv(path: Path, role: Role, columns: Mapping, lines: Iterable[tuple[int, str]]):
    header: Sequence[str] = ()
    chosen: list[str | None] = []
    widths = sorted({role.needed, len(role.columns)})
    shown = f"{' or '.join(map(str, widths))} ({', '.join(role.columns)})"
    for line, text in lines:
        fields = text.split("\t")
        if line == 1 and (is_header(fields, role, columns) or is_no_row(fields, role)):
            header, chosen = fields, chosen_columns(fields, role, columns, path, 1)
            shown = f"{len(header)} ({', '.join(header)})"
            continue
        if line == 1 and role is not PARALLEL and (given := columns.keys() & {*role.names}):
            names = ", ".join(f"{column}={columns[column]}" for column in sorted(given))
            reason = f"--columns gives {names}, but this is no line of names"
            remedy = "Put a line of names first; or give --columns= where no table has such names"
            raise input_error(path, reason, remedy, line=line)
        if not header and role.needed <= len(fields) <= len(role.columns):
            header = role.columns[: len(fields)]
            chosen = [name if name in header else None for name in role.names]
            shown = f"{len(header)} ({', '.join(header)})"
        if len(fields) != len(header):
            remedy = (
                "Put one tab between columns, and no tab into a text; other columns need a first"
                " line with the names of all"
            )
            if role is JUDGMENTS and re.fullmatch(r"\S+\s\S+\s\S+\s-?\d+", text.strip()):
                remedy = "Make a table of TREC's qrels: awk -v OFS='\\t' '{print $1, $3, $4}' FILE"
            reason = f"{len(fields)} tab-separated columns instead of {shown}"
            raise input_error(path, reason, remedy, line=line)
        yield line, values_of(role, dict(zip(header, fields)), chosen)


def _csv(path: Path, role: Role, columns: Mapping, lines: Iterator[tuple[int, str]]):
    csv.field_size_limit(_FREE_BYTES)
    at, first = next(lines, (0, ""))
    if not at:
        raise line_files.empty_file(path)
    try:
        headers = {d: next(csv.reader([first], delimiter=d), []) for d in _DELIMITERS}
    except csv.Error as error:
        raise _no_csv(path, error, at) from None
    named = (d for d, fields in headers.items() if is_header(fields, role, columns))
    # Of a header that does not name what is needed, the error shows the columns that there are.
    delimiter = next(named, None) or max(headers, key=lambda d: len(headers[d]))
    begin, header = 1, None
    texts = (f"{text}\n" for _, text in itertools.chain([(1, first)], lines))
    records = csv.reader(texts, delimiter=delimiter, strict=True)
    try:
        for fields in records:
            at, begin = begin, records.line_num + 1
            if header is None:
                _check_names(path, role, columns, fields)
                header, chosen = fields, chosen_columns(fields, role, columns, path, 1)
            elif len(fields) == len(header):
                yield at, values_of(role, dict(zip(header, fields)), chosen)
            elif fields:
                reason = f"{len(fields)} values instead of {len(header)}, as in the first line"
                raise input_error(path, reason, _QUOTE, line=at)
    except csv.Error as error:
        raise _no_csv(path, error, begin) from None
    if begin == 2:
        raise line_files.empty_file(path)


def _check_names(path: Path, role: Role, columns: Mapping, fields: Sequence[str]) -> None:
    """Checks that a first line, which has the names of the columns, is not something else."""
    needed = role.columns[: role.needed]
    if fields[:1] and fields[0].lower().startswith("sep="):
        reason, remedy = "this line is for Excel, and names no columns", "Remove it"
    elif len(fields) < len(needed) and re.search(r"[^\w\s-]", "".join(fields)):
        reason = f"neither commas, semicolons nor tabs separate columns: {short(fields[0])}"
        remedy = "Separate them by one of these"
    elif needed and is_record(fields, columns):
        reason = f"this looks like a record, not like names of columns: {short(','.join(fields))}"
        said = "=NAME,".join((*needed, ""))[:-1]
        remedy = f"Put {','.join(needed)} first"
        remedy += f"; or, if these are names, give --columns={said}" * role.renamed
    else:
        return
    raise input_error(path, reason, remedy, line=1)


def _no_csv(path: Path, error: csv.Error, line: int) -> InputError:
    return input_error(path, f"this is no CSV ({error})", _QUOTE, line=line)


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
        raise line_files.empty_file(path)
