"""Query files, and hits as TREC runs have them."""

import csv
import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tf_smoothclir.data.sources import tables
from tf_smoothclir.data.sources.cells import in_file, texts_in
from tf_smoothclir.data.sources.columns import QUERIES, TEXTS, is_header
from tf_smoothclir.data.sources.line_files import any_lines, without_blank
from tf_smoothclir.data.sources.source import log_unread_titles
from tf_smoothclir.protocols.text_search import SearchHit
from tf_smoothclir.utils.errors import input_error

_LINES = "Give each line an id, a tab and a text, or a text alone"
_RECORD = re.compile(r'\{.*"(_id|id|qid|query_id)"\s*:.*\}\s*$', re.DOTALL)
_OTHER_FORMAT = re.compile(r"\s*(\[\s*([{\[\"]|$)|<(\?xml|!|top|query|quer))", re.IGNORECASE)


class Query(NamedTuple):
    """A query of a file; without an id there, it has the number of its line."""

    id: str
    text: str


def numbered(texts: Iterable[str]) -> Iterator[Query]:
    """Yields queries with ids from 1 on; bytes that are not UTF-8 become U+FFFD."""
    for number, given in enumerate(texts, start=1):
        text = given.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        if _RECORD.match(text):
            remedy = "Read such lines by --queries=FILE, or --queries=/dev/stdin"
            raise input_error(f"query {number}", "it is a JSON object with an id", remedy)
        yield Query(str(number), text)


def read_queries(path: str | Path) -> Iterator[Query]:
    """Yields the queries of a table, or of lines of text; read once: it may be a pipe."""
    path, seen = Path(path), {}
    for line, query in _queries(path):
        if seen.setdefault(query.id, line) != line:
            reason = f"id {query.id!r} stands already in line {seen[query.id]}"
            raise input_error(path, reason, "Give every query its own id", line=line)
        yield query


def _queries(path: Path) -> Iterator[tuple[int, Query]]:
    role, titled = tables.texts_role(path), 0
    role = QUERIES if role is TEXTS else role
    if tables.kind_of(path) == "parquet":
        rows = tables.read_table(path, role)
    else:
        lines = any_lines(path)
        first = next(lines, None)
        lines = itertools.chain([] if first is None else [first], lines)
        kind = tables.kind_of(path) or _kind_of_line(path, first[1] if first else "")
        if not kind:
            for line, text in without_blank(path, lines):
                if "\t" in text:
                    reason = "the line has a tab, the first line has none"
                    raise input_error(path, reason, _LINES, line=line)
                yield line, Query(str(line), text)
            return
        rows = tables.rows_of_lines(kind, path, role, lines)
    for line, text in texts_in(rows, in_file(path)):
        titled += bool(text.title)
        yield line, Query(text.id, text.text)
    if role is QUERIES:  # in files of WikiCLIR, titles are answers
        log_unread_titles(path, titled)


def _kind_of_line(path: Path, first: str) -> str:
    """The kind of table that begins with a line; "" for texts alone."""
    if _OTHER_FORMAT.match(first):
        reason = "this is no file of queries, but XML, TREC topics or a JSON array"
        raise input_error(path, reason, f"{_LINES}, or as a JSON object", line=1)
    if first.lstrip().startswith("{"):
        return "jsonl"
    if "\t" in first:
        return "tsv"
    is_csv = (
        is_header(next(csv.reader([first]), []), TEXTS),
        first.startswith('"') and '","' in first,
    )
    return "csv" if any(is_csv) else ""


def ranking_of(query_id: str, hits: Sequence[SearchHit]) -> tuple[str, list[str], np.ndarray]:
    """A query with the ids and scores of its hits, best first, for `write_run`."""
    # Interned: the same document is found for many queries.
    ids = [sys.intern(hit.id) for hit in hits]
    return query_id, ids, np.array([hit.score for hit in hits], np.float32)
