"""Queries of a batch, from a file, and their results as a TREC run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tf_smoothclir.data.sources.line_files import checked_id, read_lines, read_tsv
from tf_smoothclir.evaluation.full_retrieval import TopDocuments
from tf_smoothclir.evaluation.trec import write_top_run
from tf_smoothclir.protocols.text_search import SearchHit
from tf_smoothclir.utils.errors import input_error


class Query(NamedTuple):
    """A query of a file.

    Attributes:
        id: Its own, or the number of its line.
        text: What is asked.
    """

    id: str
    text: str


def numbered(texts: Iterable[str]) -> Iterator[Query]:
    """Yields queries whose ids count up from 1.

    Bytes that are no UTF-8, which Python reads as halves of surrogate pairs, become U+FFFD.
    """
    return (
        Query(str(number), text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
        for number, text in enumerate(texts, start=1)
    )


def read_queries(path: str | Path) -> Iterator[Query]:
    """Yields the queries of a file: lines with id and text, between them a tab, or texts alone.

    The first line decides; texts alone are numbered from 1.

    Raises:
        InputError: The file is missing or empty, or a line is of another form than the first.
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


class _Ids(NamedTuple):
    """What a run file is written by, instead of a whole retrieval set."""

    query_ids: list[str]
    document_ids: list[str]


class RunFile:
    """Gathers results for a run file in the format of TREC; keeps ids and scores only."""

    def __init__(self):
        """Begins without a query."""
        self._ids = _Ids([], [])
        self._rows: dict[str, int] = {}
        self._documents: list[list[int]] = []
        self._scores: list[np.ndarray] = []

    def add(self, query_id: str, results: Sequence[SearchHit]) -> None:
        """Takes the results of a query in, best first."""
        self._ids.query_ids.append(query_id)
        rows = [self._rows.setdefault(result.id, len(self._rows)) for result in results]
        self._documents.append(rows)
        self._scores.append(np.array([result.score for result in results], np.float32))

    def write(self, path: str | os.PathLike, tag: str) -> None:
        """Writes the run, at once or not at all; `tag` names the system."""
        ids = self._ids._replace(document_ids=list(self._rows))
        rows = np.arange(len(ids.query_ids))
        write_top_run(path, ids, TopDocuments(rows, self._documents, self._scores), tag)
