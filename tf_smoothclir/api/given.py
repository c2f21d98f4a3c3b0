"""Lists, dictionaries and data frames given in Python, as the records of a source."""

from __future__ import annotations

import operator
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tf_smoothclir.data.sources.source import Judgment, Text
from tf_smoothclir.utils.errors import input_error

if TYPE_CHECKING:
    from typing import TypeGuard


class Frame(Protocol):
    """A data frame, of pandas or polars: named columns."""

    @property
    def columns(self) -> Any:
        """The names of the columns."""

    def __getitem__(self, name: str) -> Any:
        """A column, an iterable of values."""


Texts = Sequence[str] | Mapping[Any, str] | Frame
Judgments = Iterable[tuple[Any, Any, int]] | Mapping[Any, Mapping[Any, int]] | Frame

_TEXTS_REMEDY = (
    'Give a list of strings, a dictionary such as {"d1": "text"}, or a data frame with the columns'
    " id and text"
)
_JUDGMENTS_REMEDY = (
    'Give triples such as [("q1", "d1", 2)], a dictionary such as {"q1": {"d1": 2}}, or a data'
    " frame with the columns query_id, document_id and grade"
)


def texts_of(given: Texts, argument: str) -> list[Text]:
    """Queries or documents as records."""
    if _is_frame(given):
        titles = ["title"] if "title" in map(str, given.columns) else []
        columns = _columns(given, ["id", "text", *titles], argument)
        records = [
            # None and NaN are missing titles.
            Text(_id(id_, argument), "".join(one for one in title if one == one and one), text)
            for id_, text, *title in columns
        ]
    elif hasattr(given, "items"):
        records = [Text(_id(id_, argument), "", text) for id_, text in given.items()]
    else:
        texts = enumerate(_listed(given, argument, _TEXTS_REMEDY))
        records = [Text(str(index), "", text) for index, text in texts]
    for record in records:
        for value in (record.title, record.text):
            _check_text(f"{argument}[{record.id!r}]", value)
    if not records:
        raise input_error(argument, "it is empty", _TEXTS_REMEDY)
    return records


def judgments_of(given: Judgments, argument: str = "judgments") -> list[Judgment]:
    """Judgments as records."""
    rows: Iterable[Any]
    if _is_frame(given):
        rows = _columns(given, ["query_id", "document_id", "grade"], argument)
    elif isinstance(given, Mapping):
        rows = _flat(given, argument)
    else:
        rows = _listed(given, argument, _JUDGMENTS_REMEDY)
    judgments = []
    for index, row in enumerate(rows):
        place = f"{argument}[{index}]"
        if isinstance(row, (str, bytes)) or not hasattr(row, "__len__") or len(row) != 3:
            raise input_error(place, f"it is {_shown(row)}, not a triple", _JUDGMENTS_REMEDY)
        query, document, grade = row
        judgments.append(Judgment(_id(query, place), _id(document, place), _grade(grade, place)))
    return judgments


def strings(given: Sequence[str], argument: str) -> list[str]:
    """A list of strings."""
    remedy = "Give a list of strings"
    if isinstance(given, Mapping) or _is_frame(given):
        remedy = f"{remedy}, such as the values of the dictionary or a column of the frame"
        raise input_error(argument, f"it is {_kind(given)}", remedy)
    texts = _listed(given, argument, remedy)
    for index, text in enumerate(texts):
        _check_text(f"{argument}[{index}]", text)
    return texts


def one_string(given: str, argument: str) -> str:
    """A string."""
    _check_text(argument, given)
    return given


def whole_number(given: int, argument: str, least: int = 1) -> int:
    """A whole number."""
    number = _index(given)
    if number is None or number < least:
        remedy = f"Give a whole number from {least} on"
        raise input_error(argument, f"it is {_shown(given)}", remedy)
    return number


def _is_frame(given: object) -> TypeGuard[Frame]:
    return hasattr(given, "columns") and hasattr(given, "__getitem__")


def _columns(frame: Frame, names: Sequence[str], argument: str) -> Iterator[tuple[Any, ...]]:
    """The rows of some columns."""
    there = [str(name) for name in frame.columns]
    missing = [name for name in names if name not in there]
    if missing:
        raise input_error(
            argument,
            f"the data frame has no column {missing[0]!r}; it has {', '.join(there) or 'none'}",
            f"Rename its columns to {', '.join(names)}",
        )
    return zip(*(list(frame[name]) for name in names))


def _flat(given: Mapping[Any, Any], argument: str) -> Iterator[tuple[Any, Any, Any]]:
    for query, documents in given.items():
        if not isinstance(documents, Mapping):
            reason = f"it is {_shown(documents)}, not a dictionary"
            raise input_error(f"{argument}[{query!r}]", reason, _JUDGMENTS_REMEDY)
        for document, grade in documents.items():
            yield query, document, grade


def _listed(given: Any, argument: str, remedy: str) -> list[Any]:
    if isinstance(given, (str, bytes)):
        what = "a single string" if isinstance(given, str) else "bytes"
        raise input_error(f"{argument}={_short(given)}", f"it is {what}", remedy)
    try:
        return list(given)
    except TypeError:
        raise input_error(argument, f"it is {_shown(given)}", remedy) from None


def _index(value: Any) -> int | None:
    """A whole number; None for anything else, True and False too."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def _id(value: Hashable, place: str) -> str:
    """An id as files have it: a string without white space."""
    if isinstance(value, str):
        if value.split() == [value]:
            return str(value)
        reason = f"the id {value!r} is empty or contains white space"
        raise input_error(place, reason, "Give ids without white space")
    if (number := _index(value)) is None:
        raise input_error(
            place, f"the id is {_shown(value)}", "Give strings or whole numbers as ids"
        )
    return str(number)


def _grade(value: Any, place: str) -> int:
    whole = isinstance(value, float) and value.is_integer()  # of a column with gaps
    if (grade := int(value) if whole else _index(value)) is None:
        remedy = "Give whole numbers from 0 on as grades"
        raise input_error(place, f"the grade is {_shown(value)}", remedy)
    return grade


def _check_text(place: str, value: object) -> None:
    if not isinstance(value, str):
        remedy = "Give a string there; fill in or leave out missing texts"
        raise input_error(place, f"it is {_shown(value)}", remedy)
    try:
        value.encode()
    except UnicodeEncodeError:
        reason = f"{_short(value)} holds half of a surrogate pair, which is no text"
        raise input_error(place, reason, "Decode the text again, with errors='replace'") from None


def _shown(value: object) -> str:
    return f"{_short(value)}, {_kind(value)}"


def _kind(value: object) -> str:
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
