"""The lexical half of an index: impacts of query words on the scores of documents.

A directory with the postings `impacts` and, if anything ranks with feedback, the TF-IDF vectors of
the documents, as rows `vectors` and as postings `terms`. Where the model searches passages, and any
document has several, `passages` (int32) says how many each has; the impacts are those of passages.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from absl import logging

from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.index.documents import DocumentStore
from tf_smoothclir.index.sparse_files import (
    column_lengths,
    delete_rows,
    matrices,
    open_postings,
    open_rows,
    sparse_writer,
    unfit,
    write_postings,
)
from tf_smoothclir.lexical.feedback import Feedback, rarity, tf_idf
from tf_smoothclir.lexical.postings import Postings, SparseRows
from tf_smoothclir.publishing.exported_lexical import LexicalParts
from tf_smoothclir.storage.files import open_to_write, write_array
from tf_smoothclir.utils import sparse as sp
from tf_smoothclir.utils.records import record_from_json

_PASSAGES = "passages"
_IMPACTS, _VECTORS, _TERMS = "impacts", "vectors", "terms"
_IMPACT_ROWS, _COUNT_ROWS = "impact_rows", "count_rows"  # while an index is built


class LexicalRows(NamedTuple):
    """Some documents as the lexical half keeps them."""

    impacts: sp.csr_array  # `[passages, query words]` float32
    counts: sp.csr_array | None  # `[documents, document words]` float32, for feedback
    passages: np.ndarray  # `[documents]` int, how many each has


@dataclasses.dataclass(frozen=True)
class LexicalNote:
    """Entry of a manifest: numbers of impacts and passages (0: none), whether feedback."""

    summary: str
    impacts: int
    feedback: bool
    passages: int = 0


class LexicalHalf:
    """Builds the lexical half of an index; a `Half`."""

    name = "lexical"

    def __init__(self, parts: LexicalParts):
        self._parts = parts
        self._feedback = bool(parts.feedback or parts.model.feedback)
        self._opening = threading.Lock()

    def encode(self, documents: Sequence[Text]) -> LexicalRows:
        """Impacts of the words of documents on scores."""
        words = self._parts.document_words(documents)
        passages = self._parts.model.passages(words)
        impacts = self._parts.model.impacts(passages, self._parts.spelling)
        return LexicalRows(impacts, words.matrix(), passages.number_of_each())

    def kept(
        self, half: LexicalIndex, positions: np.ndarray, documents: Sequence[Text]
    ) -> LexicalRows:
        """Impacts of documents as they are; words are only counted again."""
        with self._opening:  # once, whichever thread is first
            impacts = half.impacts
        firsts = half.postings.firsts
        rows, passages = positions, np.ones(len(positions), np.int64)
        if firsts is not None:
            passages = firsts[positions + 1] - firsts[positions]
            rows = np.concatenate([np.arange(*firsts[at : at + 2]) for at in positions])
        counts = self._parts.document_words(documents).matrix() if self._feedback else None
        return LexicalRows(impacts[rows], counts, passages)

    @contextlib.contextmanager
    def writer(self, directory: Path) -> Iterator[Callable[[LexicalRows], None]]:
        """Writer of impacts and, for feedback, of counts."""
        directory.mkdir()
        with contextlib.ExitStack() as stack:
            write_impacts = stack.enter_context(sparse_writer(directory, _IMPACT_ROWS))
            write_counts = None
            if self._feedback:
                write_counts = stack.enter_context(sparse_writer(directory, _COUNT_ROWS))
            passages = stack.enter_context(open_to_write(directory / _PASSAGES))

            def add(rows: LexicalRows) -> None:
                write_impacts(rows.impacts)
                write_array(passages, rows.passages, "<i4")
                if write_counts is not None:
                    write_counts(rows.counts)

            yield add

    def finish(self, directory: Path, documents: DocumentStore) -> dict:
        """Turns the written impacts into postings, some documents at a time."""
        words = len(self._parts.model.background)
        impacts = open_rows(directory, _IMPACT_ROWS)
        lengths = column_lengths(impacts, words)
        logging.info(
            "Indexing %d documents, at most %d words of each, in %d passages: %d impacts",
            len(documents),
            self._parts.text.read_tokens("document"),
            len(impacts),
            lengths.sum(),
        )
        chunks = matrices(impacts, words)
        write_postings(directory, _IMPACTS, chunks, lengths, len(impacts))
        has_passages = len(impacts) > len(documents)
        if not has_passages:
            (directory / _PASSAGES).unlink()
        if self._feedback:
            self._write_vectors(directory, documents)
        for name in (_IMPACT_ROWS, _COUNT_ROWS):
            delete_rows(directory, name)
        passages, total = len(impacts) if has_passages else 0, int(lengths.sum())
        summary = f"{total} impacts of query words"
        return dataclasses.asdict(LexicalNote(summary, total, self._feedback, passages))

    def _write_vectors(self, directory: Path, documents: DocumentStore) -> None:
        words, counts = self._parts.document_reader.size, open_rows(directory, _COUNT_ROWS)
        frequency = column_lengths(counts, words)
        of_words = rarity(frequency, len(documents))
        with sparse_writer(directory, _VECTORS) as write:
            for chunk in matrices(counts, words):
                write(tf_idf(chunk, of_words))
        chunks = matrices(open_rows(directory, _VECTORS), words)
        write_postings(directory, _TERMS, chunks, frequency, len(documents))

    def differences(self, there: dict) -> str:
        """None: a table has one way to be indexed."""
        return ""


class LexicalIndex:
    """The lexical half of an index, memory-mapped."""

    def __init__(self, directory: Path, entry: dict, hashes: np.ndarray):
        """Opens the files; `hashes` are those of the ids, `[documents]` uint64."""
        note = record_from_json(LexicalNote, entry)
        self._hashes, documents = hashes, len(hashes)
        firsts = None
        if note.passages:
            firsts = np.append(
                0, np.cumsum(np.fromfile(directory / _PASSAGES, "<i4"), dtype=np.int64)
            )
            wrong = len(firsts) != documents + 1 or (np.diff(firsts) < 1).any()
            if wrong or firsts[-1] != note.passages:
                raise unfit(directory / _PASSAGES)
        postings = open_postings(directory, _IMPACTS, note.passages or documents)
        self.postings: Postings = dataclasses.replace(postings, firsts=firsts)
        self._vectors: tuple[SparseRows, Postings] | None = None
        if note.feedback:
            terms = open_postings(directory, _TERMS, documents)
            self._vectors = open_rows(directory, _VECTORS), terms

    def of_passages(self, words: np.ndarray) -> np.ndarray:
        """Scores `[passages]` float32, or of documents without any, for the words of a query."""
        return self.postings.of_rows(*np.unique(words[words > 0], return_counts=True))

    @functools.cached_property
    def impacts(self) -> sp.csr_array:
        """The impacts as one matrix, `[passages, query words]`, in memory."""
        rare, common = self.postings.rare, self.postings.common
        shape = self.postings.rows, len(rare)
        words, rows = np.nonzero(self.postings.common_values)
        whole = self.postings.common_values[words, rows], (rows, common[words])
        of_rare = sp.csc_array((rare.values, rare.ids, rare.ends), shape=shape)
        return sp.csr_array(of_rare.tocsr() + sp.coo_array(whole, shape=shape).tocsr())

    def best_passages(self, of_passages: np.ndarray, documents: np.ndarray) -> list[int | None]:
        """The best passage of some documents by its number from 0; None where there is but one."""
        if (firsts := self.postings.firsts) is None:
            return [None] * len(documents)
        numbers = self.postings.best_rows(of_passages, documents) - firsts[documents]
        several = firsts[documents + 1] - firsts[documents] > 1
        return np.where(several, numbers, None).tolist()

    def feedback(self, weight: float) -> Feedback | None:
        """Feedback over the documents; None for weight 0."""
        return Feedback(*self._vectors, weight, self._hashes) if weight else None
