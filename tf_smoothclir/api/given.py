"""Lists, dictionaries and data frames given in Python, as the records of a source."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeGuard

from tf_smoothclir.data.sources.cells import (
    Place,
    judgments_in,
    short,
    splits_in,
    text_of,
    texts_in,
    whole,
)
from tf_smoothclir.data.sources.columns import (
    ABSENT,
    JUDGMENTS,
    SPLITS,
    TEXTS,
    Role,
    Row,
    chosen_columns,
    values_of,
)
from tf_smoothclir.data.sources.source import Judgment, Text
from tf_smoothclir.utils.errors import input_error, kind


class Frame(Protocol):
    """A data frame, of pandas, polars, pyarrow or datasets: named columns."""

    @property
    def columns(self) -> Any:
        """The names of the columns."""

    def __getitem__(self, name: str) -> Any:
        """A column, an iterable of values."""


Table = Iterable[Sequence[Any]] | Iterable[Mapping[str, Any]] | Frame
Texts = Sequence[str] | Mapping[Any, str] | Table
Judgments = Mapping[Any, Mapping[Any, int]] | Mapping[Any, Iterable[Any]] | Table

_REMEDIES = {
    TEXTS: 'Give a list of strings, a dictionary such as {"d1": "text"}, or a data frame with the'
    " columns id and text",
    JUDGMENTS: 'Give triples such as [("q1", "d1", 2)], a dictionary such as {"q1": {"d1": 2}}, or'
    " a data frame with the columns query_id, document_id and grade",
}


def texts_of(given: Texts, argument: str, columns: Mapping[str, str] | None = None) -> list[Text]:
    """Queries or documents as records."""
    return texts_and_others(given, argument, columns)[0]


def texts_and_others(
    given: Texts, argument: str, columns: Mapping[str, str] | None = None
) -> tuple[list[Text], list[Mapping[str, Any]]]:
    """Queries or documents as records, and the other columns of each."""
    if isinstance(given, Mapping) or (hasattr(given, "items") and not _is_frame(given)):
        given = list(given.items())  # a series of pandas too
    elif not _is_frame(given):
        given = _listed(given, argument, _REMEDIES[TEXTS])
        if not any(isinstance(record, (Mapping, tuple, list)) for record in given):
            given = list(enumerate(given))
    rows, place = rows_of(given, TEXTS._replace(others=True), argument, columns)
    texts = ((row, values[:-1]) for row, values in rows)
    read = texts_in(texts, place, may_be_empty=argument != "queries")
    records = [text for _, text in read]
    if not records:
        raise input_error(argument, "it is empty", _REMEDIES[TEXTS])
    for row, values in rows:
        try:
            json.dumps(values[-1], ensure_ascii=False, default=str).encode()
        except (TypeError, ValueError, RecursionError) as error:
            reason = f"its other columns cannot be kept as JSON ({error})"
            raise input_error(place(row), reason, "Give texts, numbers, dates or lists") from None
    return records, [values[-1] for _, values in rows]


def splits_of(given: Any) -> dict[str, str] | None:
    """Query id -> split, of a dictionary, a series or a table."""
    if given is None:
        return None
    if hasattr(given, "items") and not _is_frame(given):
        given = list(given.items())
    rows, place = rows_of(given, SPLITS, "splits")
    return dict(pair for _, pair in splits_in(rows, place))


def columns_in(given: Any) -> Iterator[str]:
    """Yields the names of the columns of a data frame, or of a list of dictionaries."""
    if _is_frame(given):
        yield from _names(_with_index(given))
    elif isinstance(given, (list, tuple)):
        yield from (name for row in given if isinstance(row, Mapping) for name in row)


def judgments_of(given: Judgments, columns: Mapping[str, str] | None = None) -> list[Judgment]:
    """Judgments as records."""
    if isinstance(given, Mapping):
        given = list(_flat(given))
    elif isinstance(given, (set, frozenset)):
        given = sorted(given, key=str)
    rows, place = rows_of(given, JUDGMENTS, "judgments", columns)
    return [judgment for _, judgment in judgments_in(rows, place)]


def rows_of(
    given: Table, role: Role, argument: str, columns: Mapping[str, str] | None = None
) -> tuple[list[Row], Place]:
    """A data frame, or a list of tuples or dictionaries, as rows numbered from 0; their places."""
    needed = ", ".join(role.columns[: role.needed])
    remedy = _REMEDIES.get(role._replace(others=False), f"Give a list of ({needed})")
    if _is_frame(given):
        frame = _with_index(given)
        names = chosen_columns(_names(frame), role, columns, argument)
        read = _names(frame) if role.others else names
        values = {name: _values(frame[name]) for name in read if name}
        records = [dict(zip(values, cells)) for cells in zip(*values.values())]
        rows = [(row, values_of(role, record, names)) for row, record in enumerate(records)]
    else:
        rows = [
            (row, _row(listed, role, f"{argument}[{row}]", columns, remedy))
            for row, listed in enumerate(_listed(given, argument, remedy))
        ]
    return rows, lambda row: f"{argument}[{row}]"


def _row(given: Any, role: Role, place: str, columns: Mapping | None, remedy: str) -> list[Any]:
    if isinstance(given, Mapping):
        names = chosen_columns(given, role, columns, place)
        return values_of(role, given, names)
    is_row = hasattr(given, "__len__") and not isinstance(given, (str, bytes))
    most = len(role.names if role is JUDGMENTS else role.columns)  # the weight, without a name too
    if not is_row or not role.needed <= len(given) <= most:
        wanted = " or ".join(map(str, sorted({role.needed, len(role.columns)})))
        raise input_error(place, f"it is {shown(given)}, not {wanted} values", remedy)
    return [*given, *[ABSENT] * (len(role.names) - len(given)), *[{}] * role.others]


def strings(given: Sequence[str], argument: str) -> list[str]:
    """A list of strings."""
    remedy = "Give a list of strings"
    if isinstance(given, Mapping) or _is_frame(given):
        remedy = f"{remedy}, such as the values of the dictionary or a column of the frame"
        raise input_error(argument, f"it is {kind(given)}", remedy)
    texts = _listed(given, argument, remedy)
    for index, text in enumerate(texts):
        text_of(text, "the text", lambda number: f"{argument}[{number}]", index)
    return texts


def one_string(given: str, argument: str) -> str:
    """A string."""
    return text_of(given, "the text", lambda _: argument, 0)


def whole_number(given: int, argument: str, least: int = 1) -> int:
    """A whole number."""
    value = None if isinstance(given, (str, bool, float)) else whole(given)
    if value is None or value < least:
        remedy = f"Give a whole number from {least} on"
        raise input_error(argument, f"it is {shown(given)}", remedy)
    return value


def shown(value: object) -> str:
    """A value and what it is, such as "7, an int"."""
    return "None" if value is None else f"{short(value)}, {kind(value)}"


def _is_frame(given: object) -> TypeGuard[Frame]:
    return hasattr(given, "__getitem__") and (
        hasattr(given, "columns") or hasattr(given, "column_names")
    )


def _with_index(frame: Any) -> Any:
    """The frame; one of pandas with the named levels of its index as columns."""
    levels = getattr(getattr(frame, "index", None), "names", ())
    named = [name for name in levels if name is not None and name not in frame.columns]
    return frame.reset_index(named) if named else frame


def _names(frame: Frame) -> list[str]:
    """The names of its columns; those of pyarrow and datasets are elsewhere."""
    return list(getattr(frame, "column_names", None) or frame.columns)


def _values(column: Any) -> list[Any]:
    return column.to_pylist() if hasattr(column, "to_pylist") else list(column)


def _flat(given: Mapping[Any, Any]) -> Iterator[tuple[Any, ...]]:
    """Triples of a dictionary of dictionaries; pairs of one of lists."""
    for query, documents in given.items():
        if isinstance(documents, Mapping):
            yield from ((query, document, grade) for document, grade in documents.items())
        elif isinstance(documents, (list, tuple, set, frozenset)):
            is_set = isinstance(documents, (set, frozenset))  # its order is by chance
            yield from ((query, d) for d in (sorted(documents, key=str) if is_set else documents))
        else:
            reason = f"it is {shown(documents)}, not a dictionary or a list"
            raise input_error(f"judgments[{query!r}]", reason, _REMEDIES[JUDGMENTS])


def _listed(given: Any, argument: str, remedy: str) -> list[Any]:
    if isinstance(given, (str, bytes)):
        what = "a single string" if isinstance(given, str) else "bytes"
        raise input_error(f"{argument}={short(given)}", f"it is {what}", remedy)
    if isinstance(given, (set, frozenset)):
        raise input_error(argument, "it is a set, whose order is by chance", remedy)
    try:
        return list(given)
    except TypeError:
        raise input_error(argument, f"it is {shown(given)}", remedy) from None
