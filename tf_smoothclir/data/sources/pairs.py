"""Texts in the place of ids: pairs of a query and a document, and clicks of queries.

Texts that differ in case and white space alone are one query, or one document, whose id has the
number of its first row, such as "q17".
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from tf_smoothclir.data.sources.cells import (
    Place,
    count_of,
    grade_of,
    id_of,
    language_of,
    text_of,
)
from tf_smoothclir.data.sources.source import Judgment, Text
from tf_smoothclir.data.sources.tables import Row
from tf_smoothclir.utils.errors import input_error

# Columns of `PAIRS` and `CLICKS`.
QUERY, DOCUMENT = 0, 1
LANGUAGES = 3  # columns from here on
_NAMES = ("query", "document")


def texts_of_column(
    column: int, rows: Iterable[Row], place: Place, language: str = ""
) -> Iterator[tuple[int, Text]]:
    """Yields (number, text) of the different texts of a column, of which the first says more.

    `language` is that of a table without the column.
    """
    seen: dict[bytes, int] = {}
    for number, values in rows:
        id_, text = _identified(values[column], column, place, number, seen)
        if seen[_key(text)] == number:
            code = language_of(values[LANGUAGES + column], language, place, number)
            yield number, Text(id_, "", text, code)


def judgments_of_pairs(rows: Iterable[Row], place: Place) -> Iterator[tuple[int, Judgment]]:
    """Yields (number, judgment) of rows of `PAIRS`; of equal pairs one, with the highest grade."""
    seen: tuple[dict[bytes, int], ...] = ({}, {})
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for number, (*texts, grade, _, _) in rows:
        query, document = (
            _identified(text, column, place, number, seen[column])[0]
            for column, text in enumerate(texts)
        )
        grade = grade_of(grade, place, number)
        first, highest = found.get((query, document), (number, grade))
        found[query, document] = first, max(highest, grade)
    for (query, document), (number, grade) in found.items():
        yield number, Judgment(query, document, grade)


def judgments_of_clicks(rows: Iterable[Row], place: Place) -> Iterator[tuple[int, Judgment]]:
    """Yields (number, judgment) of rows of `CLICKS`, whose counts are added up.

    A document has grade 2 for a query if it has at least half as many clicks as the one that the
    query has most clicks of, grade 1 if it has fewer, and grade 0 if it was shown and never
    clicked. So grades do not depend on how often a query is asked.
    """
    seen: dict[bytes, int] = {}
    clicks: dict[tuple[str, str], list[int]] = {}  # the first row, and how many
    most: dict[str, int] = {}
    for number, (query, document, count, _) in rows:
        query, _ = _identified(query, QUERY, place, number, seen)
        document = id_of(document, "document_id", place, number)
        of_pair = clicks.setdefault((query, document), [number, 0])
        of_pair[1] += count_of(count, place, number)
        most[query] = max(most.get(query, 0), of_pair[1])
    for (query, document), (number, count) in clicks.items():
        yield number, Judgment(query, document, (count > 0) + (0 < most[query] <= 2 * count))


def _identified(
    value: object, column: int, place: Place, number: int, seen: dict[bytes, int]
) -> tuple[str, str]:
    """The id of a text, and the text without white space around it."""
    name = _NAMES[column]
    text = text_of(value, name, place, number).strip()
    if not text:
        raise input_error(place(number), f"the {name} is empty", "Leave the row out")
    return f"{name[0]}{seen.setdefault(_key(text), number)}", text


def _key(text: str) -> bytes:  # shorter than most texts, all of which are kept
    same = " ".join(text.casefold().split())
    return hashlib.blake2b(same.encode(), digest_size=16).digest()
