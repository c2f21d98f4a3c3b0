"""Query files, and hits as a TREC run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tf_smoothclir.data.sources.line_files import checked_id, read_lines, read_tsv
from tf_smoothclir.evaluation.trec import write_run
from tf_smoothclir.protocols.text_search import SearchHit
from tf_smoothclir.utils.errors import input_error


class Query(NamedTuple):
    """A query of a file.

    Attributes:
        id: As in the file, or the number of the line.
    """

    id: str
    text: str


def numbered(texts: Iterable[str]) -> Iterator[Query]:
    """Yields queries with the ids 1, 2, 3 and so on.

    Bytes that are not UTF-8, which Python reads as lone surrogates, become U+FFFD.
    """
    return (
        Query(str(number), text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
        for number, text in enumerate(texts, start=1)
    )


def read_queries(path: str | Path) -> Iterator[Query]:
    """Yields the queries of a file, whose lines are id, tab and text, or all a text alone.

    The first line decides which. Texts alone are numbered from 1.
    """
    path = Path(path)
    _, first = next(read_lines(path))
    if "\t" not in first:
        for line, text in read_lines(path):
            if "\t" in text:
                raise input_error(
                    path,
                    "the line has a tab, the first line has none",
                    "Give each line an id, a tab and a text, or a text alone",
                    line=line,
                )
            yield Query(str(line), text)
        return
    lines: dict[str, int] = {}
    for line, (id_, text) in read_tsv(path, ("id", "text")):
        checked_id(id_, "id", path, line)
        if lines.setdefault(id_, line) != line:
            raise input_error(
                path,
                f"id {id_!r} stands already in line {lines[id_]}",
                "Give every query its own id",
                line=line,
            )
        yield Query(id_, text)


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
