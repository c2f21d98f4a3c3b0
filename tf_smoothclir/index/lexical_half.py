"""The lexical half of an index: impacts of query words on the scores of documents.

A directory with the postings `impacts` and, if anything ranks with feedback, the TF-IDF vectors of
the documents, as rows `vectors` and as postings `terms`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from absl import logging

from tf_smoothclir.index.documents import DocumentStore
from tf_smoothclir.index.manifest import LexicalNote
from tf_smoothclir.index.sparse_files import (
    SparseWriter,
    column_lengths,
    delete_rows,
    matrices,
    open_postings,
    open_rows,
    write_postings,
)
from tf_smoothclir.lexical.feedback import Feedback, rarity, tf_idf
from tf_smoothclir.lexical.postings import Postings, SparseRows
from tf_smoothclir.publishing.exported_lexical import LexicalParts

_IMPACTS, _VECTORS, _TERMS = "impacts", "vectors", "terms"
_IMPACT_ROWS, _COUNT_ROWS = "impact_rows", "count_rows"  # while an index is built


class LexicalRows(NamedTuple):
    """Some documents as the lexical half keeps them.

    Attributes:
        impacts: `[documents, query words]` float32.
        counts: `[documents, document words]` float32.
    """

    impacts: sp.csr_array
    counts: sp.csr_array


class LexicalHalf:
    """Builds the lexical half of an index; a `Half`.

    Attributes:
        name: "impacts".
    """

    name = "impacts"

    def __init__(self, parts: LexicalParts):
        self._parts = parts
        self._feedback = bool(parts.feedback or parts.model.feedback)

    def encode(self, texts: Sequence[str]) -> LexicalRows:
        """Impacts of the words of texts on scores."""
        words = self._parts.document_reader.batch(texts)
        return LexicalRows(self._parts.model.impacts(words, self._parts.spelling), words.matrix())

    def writer(self, directory: Path) -> LexicalWriter:
        """Writer of impacts."""
        return LexicalWriter(directory, counts=self._feedback)

    def finish(self, directory: Path, documents: DocumentStore) -> LexicalNote:
        """Turns the written impacts into postings, some documents at a time."""
        words = len(self._parts.model.background)
        impacts = open_rows(directory, _IMPACT_ROWS)
        lengths = column_lengths(impacts, words)
        logging.info("Indexing %d documents: %d impacts", len(documents), lengths.sum())
        chunks = matrices(impacts, words)
        write_postings(directory, _IMPACTS, chunks, lengths, len(documents))
        if self._feedback:
            self._write_vectors(directory, documents)
        for name in (_IMPACT_ROWS, _COUNT_ROWS):
            delete_rows(directory, name)
        return LexicalNote(int(lengths.sum()), self._feedback)

    def _write_vectors(self, directory: Path, documents: DocumentStore) -> None:
        words, counts = self._parts.document_reader.size, open_rows(directory, _COUNT_ROWS)
        frequency = column_lengths(counts, words)
        of_words = rarity(frequency, len(documents))
        with SparseWriter(directory, _VECTORS) as writer:
            for chunk in matrices(counts, words):
                writer.add(tf_idf(chunk, of_words))
        chunks = matrices(open_rows(directory, _VECTORS), words)
        write_postings(directory, _TERMS, chunks, frequency, len(documents))

    def differences(self, there: LexicalNote | None) -> str:
        """ "no impacts" for an index that has none."""
        return "no impacts" if there is None else ""


class LexicalWriter:
    """A context manager that writes the impacts of documents, batch by batch."""

    def __init__(self, directory: Path, *, counts: bool):
        directory.mkdir()
        self._impacts = SparseWriter(directory, _IMPACT_ROWS)
        self._counts = SparseWriter(directory, _COUNT_ROWS) if counts else None

    def __enter__(self) -> LexicalWriter:
        return self

    def __exit__(self, *exc) -> None:
        with contextlib.ExitStack() as stack:
            for writer in filter(None, (self._impacts, self._counts)):
                stack.push(writer)

    def add(self, rows: LexicalRows) -> None:
        """Appends documents."""
        self._impacts.add(rows.impacts)
        if self._counts is not None:
            self._counts.add(rows.counts)


class LexicalIndex:
    """The lexical half of an index, memory-mapped."""

    def __init__(self, directory: Path, note: LexicalNote, hashes: np.ndarray):
        """Opens the files; `hashes` are those of the ids, `[documents]` uint64."""
        self._hashes, documents = hashes, len(hashes)
        self.postings: Postings = open_postings(directory, _IMPACTS, documents)
        self._vectors: tuple[SparseRows, Postings] | None = None
        if note.feedback:
            terms = open_postings(directory, _TERMS, documents)
            self._vectors = open_rows(directory, _VECTORS), terms

    def scores(self, words: np.ndarray) -> np.ndarray:
        """The scores of all documents, `[documents]` float32.

        Args:
            words: `[words]` int, of a query, as `QueryReader` numbers them.
        """
        different, counts = np.unique(words[words > 0], return_counts=True)
        scores = np.zeros(self.postings.documents, np.float32)
        self.postings.add_to(scores, different, counts)
        return scores

    def feedback(self, weight: float) -> Feedback | None:
        """Feedback over the documents; None for weight 0."""
        return Feedback(*self._vectors, weight, self._hashes) if weight else None
