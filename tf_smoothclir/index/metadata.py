"""Metadata of documents: all columns that are not searched, typed, in a Parquet file.

They are shown with hits, and filters are boolean expressions over them in DuckDB's SQL.
"""

from __future__ import annotations

import datetime
import functools
import json
import math
import numbers
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from absl import logging

from tf_smoothclir.data.sources.cells import Place, is_missing, warn_of_mixed
from tf_smoothclir.storage.files import naming, open_to_write
from tf_smoothclir.utils.errors import InputError, input_error

if TYPE_CHECKING:
    import pyarrow as pa

METADATA = "metadata.parquet"
_NESTED = "metadata"  # a column of objects, as in BEIR, whose entries are columns
_LONGEST_FILTER = 1000  # characters besides constants: for 10,000 `(`, DuckDB takes a minute
_CONSTANT = re.compile(r"'[\w.:@/-]*'|\b[0-9]+\b")  # such as an id, of which a list may have many
_MOST_MASKS = 32  # that are remembered
_MOST_VALUES = 20  # of a column that is a facet
# What an expression may consist of, in DuckDB's tree, and the functions that it may call: nothing
# that reads anything but the table, or whose result may be large.
_CLASSES = {"BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION"}
_CLASSES |= {"CONSTANT", "FUNCTION", "OPERATOR", "TYPE"}
_NAMED = re.findall(
    r"\w+",
    "lower upper trim length contains starts_with ends_with regexp_matches abs round floor ceil"
    " year month day date_part list_contains",
)
_OPERATORS = re.findall(
    r"\S+",
    "+ - * / // % ~~ !~~ ~~* !~~* like_escape ilike_escape not_like_escape not_ilike_escape"
    " list_value array_extract",
)
_FUNCTIONS = {*_OPERATORS, *_NAMED}


def typed_columns(
    rows: Iterable[Mapping[str, Any]], documents: int, place: Place = "row {}".format
) -> dict[str, pa.Array]:
    """The columns of all documents, each with a type; none where not every document has a row."""
    columns: dict[str, list] = {}
    count = 0
    for count, row in enumerate(map(_flat, rows), 1):
        for name, value in row.items():
            column = columns.setdefault(name, [])
            column += [None] * (count - 1 - len(column))
            column.append(value)
    if count != documents:
        return {}
    return {
        name: _typed(name, column + [None] * (documents - len(column)), place)
        for name, column in columns.items()
        if set(map(id, column)) != {id(None)}
    }


def write_metadata(
    path: Path, rows: Iterable[Mapping[str, Any]], documents: int, place: Place = "row {}".format
) -> None:
    """Writes the columns of all documents; no file where there are none."""
    arrays, in_lower = typed_columns(rows, documents, place), {}
    for name in arrays:
        if (other := in_lower.setdefault(name.lower(), name)) != name:
            reason = "the names of these columns differ in case alone, which filters do not read"
            raise input_error(f"{other}, {name}", reason, "Rename one of them")
    if not arrays:
        return
    if "id" in in_lower:
        logging.warning(
            f"The column {in_lower['id']} is shown with hits, but filters read the ids of documents"
            " by this name. Rename it to filter by it."
        )
    import pyarrow as pa
    from pyarrow import parquet

    with naming(path), open_to_write(path) as file:
        parquet.write_table(pa.table(arrays), file)


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    nested = row.get(_NESTED)
    if isinstance(nested, Mapping):
        row = {name: value for name, value in row.items() if name != _NESTED}
        row |= {f"{_NESTED}.{n}" if n in row else n: value for n, value in nested.items()}
    missing = (
        is_missing(value) or (isinstance(value, str) and not value) for value in row.values()
    )
    return {str(name): None if gone else row[name] for name, gone in zip(row, missing)}


def _typed(name: str, values: list, place: Place) -> pa.Array:
    """A column of one type, of dates or times if all of its strings are; else of strings."""
    import pyarrow as pa

    texts = [
        value if value is None or isinstance(value, str) else _as_text(value) for value in values
    ]
    kinds = {*map(type, values)} - {type(None)}
    try:
        array = pa.array(values)
    except (pa.ArrowException, TypeError, OverflowError):  # of several types
        array = pa.array(texts)
        others = [row for row, one in enumerate(values) if one is not None and not _number(one)]
        if others and (count := sum(map(_number, values))):
            warn_of_mixed(name, count, len(others), place(others[0]), values[others[0]])
    # Arrow reads a number among dates as one; only some of its releases have a type of UUIDs.
    is_own = pa.types.is_struct(array.type) or isinstance(array.type, pa.BaseExtensionType)
    if is_own or (pa.types.is_temporal(array.type) and len(kinds) > 1):
        return pa.array(texts)
    if not pa.types.is_string(array.type):
        return _in_utc(array)
    for kind in (pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            return _in_utc(array.cast(kind))
        except pa.ArrowException:
            continue
    return array


def _number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _in_utc(array: pa.Array) -> pa.Array:
    """Times that have a zone as those of UTC, without one: filters compare them as they stand."""
    import pyarrow as pa

    if getattr(array.type, "tz", None) is None:
        return array
    return array.cast(pa.timestamp("us", "UTC"), safe=False).cast(pa.timestamp("us"))


def _as_text(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return json.loads(text) if text.startswith('"') else text  # no quotes around a date


class Metadata:
    """The columns of the documents of an index, read when they are first needed."""

    def __init__(self, path: Path, ids: Callable[[], pa.Array] | None = None):
        # Filters read `ids` of the documents too. The file is kept open, so that an index that
        # replaces this one changes nothing.
        self._ids = ids
        self._file = open(path, "rb") if path.is_file() else None  # noqa: SIM115
        self._mask, self._busy = functools.lru_cache(_MOST_MASKS)(self._evaluated), threading.Lock()

    @functools.cached_property
    def _table(self) -> pa.Table | None:
        if self._file is None:
            return None
        from pyarrow import parquet

        # In this thread alone: one of Arrow's that still holds the file of Python when the process
        # ends would abort it.
        return parquet.ParquetFile(self._file, pre_buffer=False).read(use_threads=False)

    def rows(self, positions: Sequence[int]) -> Iterator[dict[str, Any]]:
        """Yields the values of documents, column -> value, without those that are missing."""
        if self._table is None:
            yield from ({} for _ in positions)
            return
        for position in positions:  # `take` would load pandas
            (row,) = self._table.slice(position, 1).to_pylist()
            yield {name: value for name, value in row.items() if value is not None}

    @property
    def types(self) -> dict[str, str]:
        """Column -> the name of its type."""
        if self._file is None:
            return {}
        from pyarrow import parquet

        schema = parquet.ParquetFile(self._file, pre_buffer=False).schema_arrow
        return {field.name: str(field.type) for field in schema}

    @functools.cached_property
    def facets(self) -> dict[str, list]:
        """Column -> its values, most frequent first; empty where there are too many to choose."""
        values_of: dict[str, list] = {}
        for name in self._table.column_names if self._table is not None else ():
            try:
                counts = self._table[name].drop_null().value_counts()
            except (NotImplementedError, ValueError):  # of lists
                counts = ()
            few = 1 < len(counts) <= _MOST_VALUES
            values = sorted(counts.to_pylist(), key=lambda one: -one["counts"]) if few else ()
            values_of[name] = [plain(one["values"]) for one in values]
        return values_of

    def mask(self, expression: str) -> np.ndarray | None:
        """The documents for which an expression is true, `[documents]` bool; None for ""."""
        with self._busy:
            return self._mask(expression) if expression.strip() else None

    @functools.cached_property
    def _filtered(self) -> pa.Table:
        """The columns that filters read: those of documents, and `id`, which is that of hits."""
        import pyarrow as pa

        table, ids = self._table, None if self._ids is None else self._ids()
        if table is None or ids is None:
            return pa.table({"id": ids}) if table is None else table
        others = [name for name in table.column_names if name.lower() != "id"]
        return table.select(others).append_column("id", ids)

    @functools.cached_property
    def _database(self) -> Any:
        try:
            import duckdb
        except ImportError as error:
            raise input_error(
                "--filter",
                f"it needs the package duckdb ({error})",
                "pip install '.[filters]' in the checkout",
            ) from None
        database = duckdb.connect(":memory:", config={"threads": 1, "memory_limit": "512MB"})
        database.register("columns", self._filtered)
        read = []  # columns that filters read otherwise than they are kept
        for field in self._filtered.schema:
            name, kind = f'"{field.name.replace(chr(34), 2 * chr(34))}"', str(field.type)
            if kind.startswith("timestamp"):  # else the zone of a constant would be dropped
                read.append(f"CAST({name} AS TIMESTAMPTZ) AS {name}")
            elif kind == "string" and field.name == "language":
                read.append(f"{name} COLLATE NOCASE AS {name}")
        replaced = f"REPLACE ({', '.join(read)})" if read else ""
        database.execute(f"CREATE VIEW documents AS SELECT * {replaced} FROM columns")
        database.execute("SET TimeZone = 'UTC'")
        database.execute("SET autoinstall_known_extensions = false")
        database.execute("SET autoload_known_extensions = false")
        database.execute("SET enable_external_access = false")
        database.execute("SET lock_configuration = true")
        return database

    def _evaluated(self, expression: str) -> np.ndarray:
        if len(_CONSTANT.sub("", expression)) > _LONGEST_FILTER:
            reason = f"it has more than {_LONGEST_FILTER} characters besides its constants"
            raise self._no_filter(expression, reason)
        query = f"SELECT ({expression}\n) AS kept FROM documents"
        database = self._database
        import duckdb

        try:
            (tree,) = database.execute("SELECT json_serialize_sql(?)", [query]).fetchone()
            _check_tree(json.loads(tree))
            (kept,) = database.execute(query).fetchnumpy().values()
        except (duckdb.Error, ValueError, RecursionError) as error:
            reason = re.sub(r"^\w+ Error: ", "", str(error).strip().partition("\n")[0])
            if re.search(r"[A-Z]\[\]", reason):  # a type of DuckDB
                reason = (
                    "a list is compared with a value. list_contains(NAME, 'x') holds where a value"
                    " is x, NAME::varchar like '%x%' where one has x in it"
                )
            raise self._no_filter(expression, reason.rstrip("!")) from None
        if kept.dtype != bool:
            reason = "it is no condition, such as year > 2021"
            raise self._no_filter(expression, reason)
        return np.ma.filled(kept, False)

    def _no_filter(self, expression: str, reason: str) -> InputError:
        shown = expression if len(expression) <= 80 else f"{expression[:77]}..."
        kinds = ", ".join(f"{field.name} ({field.type})" for field in self._filtered.schema)
        remedy = f"Give a condition over {kinds.replace('large_', '')}"
        return input_error(f"--filter={shown}", reason.rstrip("."), remedy)


def _check_tree(tree: dict) -> None:
    """Checks that DuckDB's tree of a query is one expression over the table, and nothing else."""
    if tree["error"]:
        raise ValueError(tree.get("error_message", "it is no expression"))
    (statement,) = tree["statements"]
    node = statement["node"]
    expressions, table = node.pop("select_list", ()), node.pop("from_table", {})
    is_one = node.pop("type") == "SELECT_NODE" and len(expressions) == 1
    rest = {key for key, value in node.items() if value and value != {"map": []}}
    if not is_one or table.get("table_name") != "documents" or rest != {"aggregate_handling"}:
        raise ValueError("it is no single expression")
    parts = [*expressions]
    while parts:
        part = parts.pop()
        if isinstance(part, list):
            parts += part
        if not isinstance(part, dict):
            continue
        if part.get("class", "CONSTANT") not in _CLASSES or "node" in part:
            raise ValueError(f"{part.get('class', 'a query').lower()} is not allowed in a filter")
        if "function_name" in part and part["function_name"] not in _FUNCTIONS:
            name = part["function_name"]
            raise ValueError(f"the function {name} is none of {', '.join(_NAMED)}")
        parts += part.values()


def plain(value: Any) -> Any:
    """A value as JSON has it: dates and times as ISO 8601."""
    if isinstance(value, (datetime.date, datetime.datetime, datetime.time)):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    is_json = isinstance(value, (bool, int, str)) or (
        isinstance(value, float) and math.isfinite(value)
    )
    return value if is_json else str(value)
