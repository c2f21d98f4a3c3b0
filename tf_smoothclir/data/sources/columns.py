"""Columns of tables: which ones each kind of table has, and by which names.

A column may have one of several usual names, or the one that `--columns` gives; case, `-`, `_` and
spaces do not matter. Other columns are metadata of documents, and ignored elsewhere. `--columns`
may give several names, here with commas between them: each file has one.
"""

import collections
import functools
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from absl import logging

from tf_smoothclir.data.sources.languages import is_code, plain_code
from tf_smoothclir.utils.errors import input_error

# (number of the line or row from 1, the value of each column of a role)
Row = tuple[int, list[Any]]
ABSENT: Any = ...  # in the place of a value whose column is not there; an empty value is None
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


class Role(NamedTuple):
    """The columns of a table."""

    columns: tuple[str, ...]  # in the order of a TSV file without their names
    needed: int  # how many of them, the first ones, must be there
    by_name: tuple[str, ...] = ()  # further columns, which are not needed
    others: bool = False  # whether a row ends with all other columns, name -> value
    order: tuple[str, ...] = ()  # of the values of a row, if it is another one
    renamed: bool = True  # whether --columns says which names they have

    @property
    def names(self) -> tuple[str, ...]:
        """All columns, in the order of the values of a row."""
        return self.order or (*self.columns, *self.by_name)


TEXTS = Role(("id", "text"), 2, ("title", "language"))
QUERIES = TEXTS._replace(renamed=False)  # to search for
TITLED_TEXTS = Role(("id", "title", "text"), 3, order=TEXTS.names)  # of WikiCLIR
JUDGMENTS = Role(("query_id", "document_id", "grade"), 2, ("weight",))
SPLITS = Role(("query_id", "split"), 2)
PAIRS = Role(("query", "document", "grade"), 2, ("query_language", "document_language"))
CLICKS = Role(("query", "document_id", "count"), 2, ("query_language",))
PARALLEL = Role(("query", "document"), 2)
# Stream -> its table, where each has one of its own.
TABLES = {"queries": TEXTS, "documents": TEXTS, "judgments": JUDGMENTS, "splits": SPLITS}
_ROLES = (TEXTS, JUDGMENTS, SPLITS, PAIRS, CLICKS)
COLUMNS = tuple(dict.fromkeys(name for role in _ROLES for name in role.names))
_KNOWN = (*COLUMNS, *itertools.chain(*_ALIASES.values()))


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
    for column in role.names:
        if len(both := _given_in(by_plain, column, role, columns)) > 1:
            reason = f"--columns={column} gives {len(both)} of its columns: {', '.join(both)}"
            raise input_error(where, reason, f"Join them in a column {column!r}", line=line)
    chosen: list[str | None] = []
    for column in role.names:
        name = _name_in(by_plain, column, role, columns)
        chosen.append(None if name in chosen else name)
    if role is PARALLEL and len(names) == 2 and chosen.count(None) == 1:
        place = chosen.index(None)
        if not columns.get(role.names[place]):  # whose language is not known: the other one
            chosen[place] = names[names[0] in chosen]
    needed = zip(role.names[: role.needed], chosen)
    if missing := [column for column, name in needed if name is None]:
        others = [*(name for name in names if name not in chosen), *["NAME"] * len(missing)]
        said = ",".join(f"{column}={name_there}" for column, name_there in zip(missing, others))
        raise input_error(
            where,
            f"there is no column {missing[0]!r}; there are: {', '.join(names) or 'none'}",
            "Rename one of them"
            + f", or say which is which, such as --columns={said}" * role.renamed,
            line=line,
        )
    others = tuple(name for name in names if name not in chosen)
    if others and not role.others and role.needed < len(role.columns):
        last, source = role.columns[-1], re.sub(r"\[\d+\]$", "", str(where))
        if chosen[len(role.columns) - 1] is None:
            reason = f"there is no column {last!r}, so each row counts 1"
            _warn_of_ignored(source, last, reason, others)
        elif same := tuple(name for name in others if plain(name) in _ALIASES.get(last, ())):
            _warn_of_ignored(source, last, f"the column {last!r} is read", same)
    return chosen


@functools.cache  # once, however often a table is read
def _warn_of_ignored(where: str, column: str, reason: str, others: tuple) -> None:
    remedy = f"If one of them is meant, give --columns={column}=NAME"
    ignored = ", ".join(map(str, others))
    logging.warning("%s: %s; ignored are: %s. %s", where, reason, ignored, remedy)


def is_header(fields: Sequence[str], role: Role, columns: Mapping[str, str] | None = None) -> bool:
    """Whether the fields of a first line name columns: all of them, or all that are needed."""
    by_plain, columns = {plain(field): field for field in fields}, columns or {}
    if len(fields) < 2:
        return False
    if by_plain.keys() <= _known_names(columns):
        return True
    names = [_name_in(by_plain, column, role, columns) for column in role.columns[: role.needed]]
    are_codes = role is PARALLEL and all(is_code(plain_code(field)) for field in fields)
    return any(names) if are_codes else all(names)


def is_no_row(fields: Sequence[str], role: Role) -> bool:
    """Whether a first line begins with the name of a column of ids, or names one of too many."""
    known, name = {*map(plain, _KNOWN)}, plain(fields[0])
    if len(fields) > len(role.columns):
        return not known.isdisjoint(map(plain, fields))
    return role.columns[0].endswith("id") and name.endswith("id") and name in known


def is_record(fields: Sequence[str], columns: Mapping[str, str]) -> bool:
    """Whether a first line names no known column, and has what names rarely have."""
    known = _known_names(columns) - {""}
    unlike = (not field.strip() or len(field) > 40 or re.search("[0-9]", field) for field in fields)
    return known.isdisjoint(map(plain, fields)) and any(unlike)


def _known_names(columns: Mapping[str, str]) -> set[str]:
    return {*map(plain, (*_KNOWN, *",".join(columns.values()).split(",")))}


def plain(name: object) -> str:
    """A name as it is compared."""
    return re.sub(r"[-_\s]", "", str(name).strip().strip('#"').lower())


def _name_in(
    by_plain: Mapping[str, str], column: str, role: Role, columns: Mapping[str, str]
) -> str | None:
    given = _given_in(by_plain, column, role, columns)
    usual = filter(None, map(by_plain.get, map(plain, (column, *_ALIASES.get(column, ())))))
    return next(itertools.chain(given, usual), None)


def _given_in(
    by_plain: Mapping[str, str], column: str, role: Role, columns: Mapping[str, str]
) -> list[str]:
    """The columns of a table that `columns` gives for one of its role."""
    given = map(plain, filter(None, columns.get(column, "").split(",")))
    # Titles are texts, by text=title, of a table that has no texts.
    others = {*map(plain, role.names)} if plain(column) in by_plain else ()
    return [by_plain[name] for name in given if name in by_plain and name not in others]


def values_of(role: Role, record: Mapping[str, Any], chosen: Sequence[str | None]) -> list[Any]:
    """The values of a row in which the columns of a role have the chosen names."""
    values = [ABSENT if name is None else record[name] for name in chosen]
    if role.others:
        column_of = dict(zip(chosen, role.names))
        others = [name for name in record if column_of.get(name, "language") == "language"]
        named = {} if "language" in record else column_of  # SQL tells no `Language` from it
        values.append({named.get(name, name): record[name] for name in others})
    return values
