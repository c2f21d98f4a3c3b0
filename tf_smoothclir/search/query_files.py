"""Query files, and hits as a TREC run."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tf_smoothclir.data.sources.line_files import (
    checked_id,
    is_header,
    json_object,
    read_lines,
    tsv_fields,
)
from tf_smoothclir.data.sources.user_files import json_field, json_id
from tf_smoothclir.evaluation.trec import write_run
from tf_smoothclir.protocols.text_search import SearchHit
from tf_smoothclir.utils.errors import input_error

_LINES = "Give each line an id, a tab and a text, or a text alone"
_JSON_NAMES = (("id", "_id", "query_id", "qid"), ("text", "query"))
_RECORD = re.compile(r'\{.*"(_id|id|qid|query_id)"\s*:.*\}\s*$', re.DOTALL)
_OTHER_FORMAT = re.compile(r"\s*(\[\s*([{\[\"]|$)|<(\?xml|!|top|query|quer))", re.IGNORECASE)


class Query(NamedTuple):
    """A query of a file.

    Attributes:
        id: As in the file, or the number of the line.
    """

    id: str
    text: str


def numbered(texts: Iterable[str]) -> Iterator[Query]:
    """Yields queries with the ids 1, 2, 3 and so on.

    Bytes that are not UTF-8, which Python reads as lone surrogates, become U+FFFD. A line of a file
    of queries is no text: it is refused.
    """
    for number, given in enumerate(texts, start=1):
        text = given.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        if _RECORD.match(text):
            remedy = "Read such lines by --queries=FILE, or --queries=/dev/stdin"
            raise input_error(f"query {number}", "it is a JSON object with an id", remedy)
        yield Query(str(number), text)


def read_queries(path: str | Path) -> Iterator[Query]:
    """Yields the queries of a file, which is read once: it may be a pipe.

    Its lines are id, tab and text, or JSON objects with an id and a text, or all a text alone: the
    first line decides which. Texts alone are numbered from 1. What begins as another format does is
    refused.
    """
    path, lines, parse = Path(path), {}, None
    for line, text in read_lines(path):
        parse = parse or _parser(path, text)
        query = parse(path, line, text)
        if lines.setdefault(query.id, line) != line:
            reason = f"id {query.id!r} stands already in line {lines[query.id]}"
            raise input_error(path, reason, "Give every query its own id", line=line)
        yield query


def _parser(path: Path, first: str) -> Callable[[Path, int, str], Query]:
    """What reads the lines of a file that begins with this one."""
    if path.suffix.lower() == ".jsonl" or first.lstrip().startswith("{"):
        return _of_json
    if "\t" in first:
        return _of_tsv
    is_csv = path.suffix.lower() == ".csv" or is_header(first.split(","))
    if is_csv or _OTHER_FORMAT.match(first):
        reason = "this is no file of queries, but CSV, XML, TREC topics or a JSON array"
        raise input_error(path, reason, f"{_LINES}, or as a JSON object", line=1)
    return _of_text


def _of_json(path: Path, line: int, text: str) -> Query:
    record = json_object(path, line, text)
    id_, query = (next((n for n in names if n in record), names[0]) for names in _JSON_NAMES)
    return Query(json_id(record, id_, path, line), json_field(record, query, str, path, line))


def _of_tsv(path: Path, line: int, text: str) -> Query:
    id_, query = tsv_fields(path, line, text, ("id", "text"))
    return Query(checked_id(id_, "id", path, line), query)


def _of_text(path: Path, line: int, text: str) -> Query:
    if "\t" in text:
        reason = "the line has a tab, the first line has none"
        raise input_error(path, reason, _LINES, line=line)
    return Query(str(line), text)


class RunFile:
    """Collects hits for a TREC run file; keeps ids and scores only."""

    def __init__(self):
        self._rankings: list[tuple[str, list[str], np.ndarray]] = []

    def add(self, query_id: str, hits: Sequence[SearchHit]) -> None:
        """Adds the hits of a query, best first."""
        # Interned: the same document is found for many queries.
        ids = [sys.intern(hit.id) for hit in hits]
        self._rankings.append((query_id, ids, np.array([hit.score for hit in hits], np.float32)))

    def write(self, path: str | os.PathLike, tag: str) -> None:
        """Writes the whole file or, after an error, none; `tag` names the system."""
        write_run(path, self._rankings, tag)
