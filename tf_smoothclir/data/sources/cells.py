"""Values of a table as ids, texts, grades and counts, whether of a file or of a program."""

import decimal
import hashlib
import math
import numbers
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from absl import logging

from tf_smoothclir.data.sources.columns import ABSENT, CLICKS, JUDGMENTS, PAIRS, Row
from tf_smoothclir.data.sources.languages import NAMES, is_code, plain_code
from tf_smoothclir.data.sources.source import Judgment, Text
from tf_smoothclir.utils.errors import input_error

# Columns of `PAIRS` and `CLICKS`.
QUERY, DOCUMENT = 0, 1
_LANGUAGES = 3  # columns from here on
_SIDES = ("query", "document")
Place = Callable[[int], str]  # from the number of a row to where it is
_WHOLE = re.compile(r"([+-]?[0-9]{1,18})(\.0*)?")
_NUMBER = re.compile(r"(?!-0$)-?(0|[1-9][0-9]{0,14})(\.[0-9]+)?")
_TRUTH = {"true": 1, "false": 0}
_COUNT_REMEDY = (
    "Give 0 where a document was shown and not clicked, or leave the row out; without counts, each"
    " row is one click"
)
_UNKNOWN = ("", "und", "unknown", "none", "null", "nan", "n/a")  # languages that are none


def in_file(path: str | Path) -> Place:
    """The places of the lines, or rows, of a file."""
    return lambda number: f"{path}:{number}"


def texts_in(
    rows: Iterable[Row], place: Place, language: str = "", *, may_be_empty: bool = True
) -> Iterator[tuple[int, Text]]:
    """Yields (number, text) of rows of `TEXTS`; `language` is of those without the column."""
    for row, (id_, text, title, code) in rows:
        id_ = id_of(id_, "id", place, row)
        title = "" if is_missing(title) else text_of(title, f"the title of {id_}", place, row)
        text = text_of(text, f"the text of {id_}", place, row)
        if not may_be_empty and not text.strip():
            remedy = "Fill it in, or remove the query and its judgments"
            raise input_error(place(row), f"the text of query {id_} is empty", remedy)
        yield row, Text(id_, title, text, language_of(code, language, place, row))


def judgments_in(rows: Iterable[Row], place: Place) -> Iterator[tuple[int, Judgment]]:
    """Yields (number, judgment) of rows of `JUDGMENTS`; absent grades and weights are 1."""
    for row, (query, document, grade, weight) in rows:
        query = id_of(query, "query_id", place, row)
        document = id_of(document, "document_id", place, row)
        grade = grade_of(grade, place, row)
        yield row, Judgment(query, document, grade, weight_of(weight, place, row))


def splits_in(rows: Iterable[Row], place: Place) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yields (number, (query id, split)) of rows of `SPLITS`; a set checks the names of splits."""
    first: dict[str, int] = {}
    for row, (query_id, split) in rows:
        query_id = id_of(query_id, "query_id", place, row)
        if first.setdefault(query_id, row) != row:
            reason = f"query {query_id!r} already has a split at {place(first[query_id])}"
            raise input_error(place(row), reason, "Keep one of the two")
        yield row, (query_id, split)


def texts_of_column(
    column: int, rows: Iterable[Row], place: Place, language: str = ""
) -> Iterator[tuple[int, Text]]:
    """Yields (number, text) of the different texts of a column."""
    seen: dict[bytes, int] = {}
    for row, values in rows:
        known = len(seen)
        text = _identified(values, column, place, row, seen, language)
        if len(seen) > known:
            yield row, text


def judgments_of_pairs(rows: Iterable[Row], place: Place) -> Iterator[tuple[int, Judgment]]:
    """Yields (number, judgment) of rows of `PAIRS`; of equal pairs one, with the highest grade."""
    seen: tuple[dict[bytes, int], ...] = ({}, {})
    graded: dict[tuple[str, str], tuple[int, int]] = {}
    for row, values in rows:
        query, document = (
            _identified(values, column, place, row, seen[column]).id for column in (QUERY, DOCUMENT)
        )
        grade = grade_of(values[PAIRS.names.index("grade")], place, row)
        first, highest = graded.get((query, document), (row, grade))
        graded[query, document] = first, max(highest, grade)
    for (query, document), (row, grade) in graded.items():
        yield row, Judgment(query, document, grade)


def judgments_of_clicks(rows: Iterable[Row], place: Place) -> Iterator[tuple[int, Judgment]]:
    """Yields (number, judgment) of rows of `CLICKS`, whose counts are added up."""
    # Grade 2 for at least half as many clicks as the most clicked document of the query has, 1 for
    # fewer, 0 for a document that was shown and never clicked. So grades do not depend on how often
    # a query is asked.
    seen: dict[bytes, int] = {}
    clicks: dict[tuple[str, str], list[int]] = {}  # the first row, and how many
    most: dict[str, int] = {}
    absent = None  # whether the table has no counts
    for row, values in rows:
        absent = values[2] is ABSENT if absent is None else absent
        if absent != (values[2] is ABSENT):  # in JSONL and lists, each row has its own columns
            raise input_error(place(row), "only some rows have a count", _COUNT_REMEDY)
        query = _identified(values, QUERY, place, row, seen).id
        document = id_of(values[1], "document_id", place, row)
        of_pair = clicks.setdefault((query, document), [row, 0])
        of_pair[1] += count_of(values[2], place, row)
        most[query] = max(most.get(query, 0), of_pair[1])
    for (query, document), (row, count) in clicks.items():
        yield row, Judgment(query, document, (count > 0) + (0 < most[query] <= 2 * count))


# Of tables that have judgments.
JUDGMENT_READERS = {JUDGMENTS: judgments_in, PAIRS: judgments_of_pairs, CLICKS: judgments_of_clicks}


def _identified(
    values: Sequence, column: int, place: Place, row: int, seen: dict[bytes, int], language=""
) -> Text:
    """The text of a column, without white space around it; one of each language has an id."""
    name = _SIDES[column]
    text = text_of(values[column], name, place, row).strip()
    if not text:
        raise input_error(place(row), f"the {name} is empty", "Leave the row out")
    said = values[_LANGUAGES + column]
    code = language_of(said, "", place, row)
    same = " ".join([code, *text.casefold().split()]).encode()
    key = hashlib.blake2b(same, digest_size=16).digest()  # shorter than most texts
    return Text(
        f"{name[0]}{seen.setdefault(key, row)}", "", text, language if said is ABSENT else code
    )


def is_missing(value: Any) -> bool:
    """Whether a value is not there, None, NaN, or what pandas has for them."""
    try:
        return value is ABSENT or value is None or bool(value != value)
    except (TypeError, ValueError):  # NA of pandas is neither equal nor not; an array is both
        return type(value).__name__ == "NAType"


def id_of(value: Any, name: str, place: Place, row: int) -> str:
    """An id: a string without white space, or a whole number."""
    if isinstance(value, str):
        if value.split() == [value]:
            return str(value)
        reason = f"{name} {value!r} is empty or contains white space"
        raise input_error(place(row), reason, "Give an id without white space")
    if (whole_number := whole(value)) is None or _is_truth(value):
        reason = f"{name} is {_other(value, 'a string or a whole number')}"
        raise input_error(place(row), reason, "Give strings or whole numbers as ids")
    return str(whole_number)


def text_of(value: Any, name: str, place: Place, row: int) -> str:
    """A string that can be written as UTF-8."""
    if not isinstance(value, str):
        reason = f"{name} is {_other(value, 'a string')}"
        remedy = "Give a string there; fill in or leave out missing texts"
        raise input_error(place(row), reason, remedy)
    try:
        value.encode()
    except UnicodeEncodeError:
        reason = f"{name} {short(value)} holds half of a surrogate pair, which is no text"
        raise input_error(
            place(row), reason, "Decode the text again, with errors='replace'"
        ) from None
    return value


def grade_of(value: Any, place: Place, row: int) -> int:
    """A grade; 1 where the table has no grades, and for true."""
    if value is ABSENT:
        return 1
    if (grade := whole(value)) is None:
        reason = f"the grade is {_other(value, 'a whole number')}"
        raise input_error(place(row), reason, "Give whole numbers from 0 on, such as 0, 1 and 2")
    return grade


def weight_of(value: Any, place: Place, row: int) -> float:
    """The weight of a judgment; 1 where there is none."""
    if is_missing(value) or value == "":
        return 1.0
    try:
        weight = float(value)
    except (TypeError, ValueError):
        weight = math.nan
    if not 0 < weight < math.inf:
        reason = f"the weight is {_other(value, 'a number above 0')}"
        remedy = "Give numbers above 0, such as 0.5 for a judgment that is half as certain"
        raise input_error(place(row), reason, remedy)
    return weight


def count_of(value: Any, place: Place, row: int) -> int:
    """A number of clicks; 1 where the table has no counts."""
    if value is ABSENT:
        return 1
    if (count := whole(value)) is None or count < 0:
        reason = f"the count is {_other(value, 'a whole number from 0 on')}"
        raise input_error(place(row), reason, _COUNT_REMEDY)
    return count


def language_of(value: Any, default: str, place: Place, row: int) -> str:
    """The code of a language; `default` where the table has none, "" for an unknown one."""
    if value is ABSENT:
        return default
    if is_missing(value) or (code := plain_code(str(value))) in _UNKNOWN:
        return ""
    code = NAMES.get(code, code)
    if not is_code(code):
        reason = f"the language is {_other(value, 'an ISO 639 code')}"
        remedy = "Give a code such as de or zh-Hans there, or leave the cell empty"
        raise input_error(place(row), reason, remedy)
    return code


def whole(value: Any) -> int | None:
    """A whole number, or a truth value as 0 or 1; None for anything else."""
    if isinstance(value, str):
        match = _WHOLE.fullmatch(value.strip())
        return int(match[1]) if match else _TRUTH.get(value.strip().lower())
    if _is_truth(value):
        return int(value)
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
        return int(value) if float(value).is_integer() else None
    try:
        return operator.index(value)
    except TypeError:
        return None


def number_of(cell: str) -> int | float | str | None:
    """The number in a cell, if only zeros at its end are lost; of an empty one itself."""
    if not cell or not (match := _NUMBER.fullmatch(cell)):
        return None if cell else cell
    number = float(cell) if match[2] else int(cell)
    return number if decimal.Decimal(cell) == decimal.Decimal(repr(number)) else None


def warn_of_mixed(column: str, numbers: int, others: int, where: str, value: Any) -> None:
    """Says that a column is of texts, because some of its values are no numbers, such as one."""
    logging.warning(
        f"The column {column} has values that are no numbers, {others:,} of {numbers + others:,},"
        f" such as {short(value)} ({where}), so filters compare all as texts. If it should have"
        " numbers alone, correct these or leave them empty."
    )


def _is_truth(value: Any) -> bool:
    return type(value).__name__ in ("bool", "bool_")  # NumPy's too


def _other(value: object, wanted: str) -> str:
    """What a value is in the place of what is wanted."""
    return "missing" if is_missing(value) else f"{short(value)}, not {wanted}"


def short(value: object) -> str:
    """A value, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
