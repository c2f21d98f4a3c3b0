"""The lexical half of an index: impacts of query words on the scores of documents.

A directory with the impacts of each document as a row of `impact_rows`, and with the postings
`impacts` that bound them; if anything ranks with feedback, also with the TF-IDF vectors of the
documents, as rows `vectors` and as postings `terms`. Words that the model never met have their
hashes as columns of `impact_rows`, and share a few columns of `impacts`; `new_words` (int32) lists
the hashes. Where the model searches passages, and any document has several, `passages` (int32) says
how many each has; the impacts are those of passages.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
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
    matrix_of,
    open_postings,
    open_rows,
    sparse_writer,
    unfit,
    write_postings,
)
from tf_smoothclir.lexical.feedback import Feedback, rarity, tf_idf
from tf_smoothclir.lexical.posting_bounds import PostingBounds
from tf_smoothclir.lexical.postings import Rows
from tf_smoothclir.lexical.words import Words
from tf_smoothclir.publishing.exported_lexical import LexicalParts
from tf_smoothclir.settings.text import WHOLE_DOCUMENT
from tf_smoothclir.storage.files import open_to_write, write_array
from tf_smoothclir.utils import sparse as sp
from tf_smoothclir.utils.ranges import ranges
from tf_smoothclir.utils.records import record_from_json

_PASSAGES = "passages"
_IMPACTS, _VECTORS, _TERMS = "impacts", "vectors", "terms"
_IMPACT_ROWS = "impact_rows"
_COUNT_ROWS = "count_rows"  # while an index is built
_NEW_WORDS = "new_words"
_ALL = np.iinfo(np.int32).max  # columns of impacts
_SHARED = 1 << 12  # columns that all new words share in postings


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


def _with_shared_columns(rows: Rows, known: int) -> Iterator[sp.csr_array]:
    """Rows of impacts of which new words share a few columns, for the bounds of many documents."""
    for some in matrices(rows, _ALL):
        columns = shared_columns(some.indices, known)
        shape = some.shape[0], known + _SHARED
        shared = sp.csr_array((some.data, columns, some.indptr), shape=shape)
        shared.sum_duplicates()
        yield shared


def shared_columns(words: np.ndarray, known: int) -> np.ndarray:
    """The columns of words, of which so many are known, in postings."""
    return np.where(words < known, words, known + (words - known) % _SHARED)


class LexicalHalf:
    """Builds the lexical half of an index; a `Half`."""

    name = "lexical"

    def __init__(self, parts: LexicalParts):
        self._parts, self._known = parts, len(parts.model.background)
        self._feedback = bool(parts.feedback or parts.model.feedback)
        self._lacks_languages = False

    def encode(self, documents: Sequence[Text]) -> LexicalRows:
        """Impacts of the words of documents on scores."""
        self._lacks_languages |= not all(document.language for document in documents)
        words, new = self._parts.all_document_words(documents)
        passages = self._parts.model.passages(words)
        impacts, known = self._parts.model.impacts(passages, self._parts.spelling), self._known
        columns = impacts.indices.copy()
        columns[columns >= known] = known + new[columns[columns >= known] - known]
        impacts = sp.csr_array((impacts.data, columns, impacts.indptr), (impacts.shape[0], _ALL))
        return LexicalRows(impacts, self._counts(words), passages.number_of_each())

    def kept(
        self, half: LexicalIndex, positions: np.ndarray, documents: Sequence[Text]
    ) -> LexicalRows:
        """Impacts of documents as they are; words are only counted again."""
        passages, rows = half.passages_of(positions)
        counts = self._counts(self._parts.document_words(documents)) if self._feedback else None
        return LexicalRows(half.impacts(rows), counts, passages)

    def _counts(self, words: Words) -> sp.csr_array:
        """Counts of the words that the model knows, `[documents, document words]` float32."""
        return words.matrix()[:, : self._parts.document_reader.size]

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
        impacts = open_rows(directory, _IMPACT_ROWS)
        new_words = _new_words(impacts, self._known)
        with open_to_write(directory / _NEW_WORDS) as file:
            write_array(file, new_words, "<i4")
        chunks = functools.partial(_with_shared_columns, impacts, self._known)
        lengths = column_lengths(chunks(), len(impacts), self._known + _SHARED)
        most = self._parts.text.read_tokens("document")
        cut = f", at most {most} words of each," if most < WHOLE_DOCUMENT else ""
        passages = f"{len(documents)} documents{cut} in {len(impacts)} passages"
        logging.info(f"Indexing {passages}: {lengths.sum()} impacts")
        if self._lacks_languages and self._parts.model.language_factors:
            codes = ", ".join(self._parts.model.language_factors)
            logging.warning(
                "Documents of no known language are ranked without the factors that the model has"
                f" of {codes}. A column `language` tells which each has."
            )
        if len(new_words):
            logging.info(
                f"New words, which no text of the training has: {len(new_words)}. They are found as"
                " they are spelled, and have no translation."
            )
        write_postings(directory, _IMPACTS, chunks, len(impacts), lengths)
        has_passages = len(impacts) > len(documents)
        if not has_passages:
            (directory / _PASSAGES).unlink()
        if self._feedback:
            self._write_vectors(directory, documents)
        delete_rows(directory, _COUNT_ROWS)
        passages, total = len(impacts) if has_passages else 0, int(lengths.sum())
        summary = f"{total} impacts of query words"
        return dataclasses.asdict(LexicalNote(summary, total, self._feedback, passages))

    def _write_vectors(self, directory: Path, documents: DocumentStore) -> None:
        words, number = self._parts.document_reader.size, len(documents)
        counts = functools.partial(matrices, open_rows(directory, _COUNT_ROWS), words)
        lengths = column_lengths(counts(), number, words)
        of_words = rarity(lengths.sum(axis=1), number)
        with sparse_writer(directory, _VECTORS) as write:
            for chunk in counts():
                write(tf_idf(chunk, of_words))
        vectors = functools.partial(matrices, open_rows(directory, _VECTORS), words)
        write_postings(directory, _TERMS, vectors, number, lengths)

    def differences(self, there: dict) -> str:
        """None: a table has one way to be indexed."""
        return ""


class LexicalIndex:
    """The lexical half of an index, on disk."""

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
        self._bounds: PostingBounds = dataclasses.replace(postings, firsts=firsts)
        self._known = postings.words - _SHARED
        self.new_words = np.fromfile(directory / _NEW_WORDS, "<i4")  # hashes, ascending
        if self._known < 0 or (np.diff(self.new_words) <= 0).any():
            raise unfit(directory / _NEW_WORDS)
        self._rows = open_rows(directory, _IMPACT_ROWS)
        if len(self._rows) != postings.rows:
            raise unfit(directory / _IMPACT_ROWS)
        self._vectors: tuple[Rows, PostingBounds] | None = None
        if note.feedback:
            terms = open_postings(directory, _TERMS, documents)
            self._vectors = open_rows(directory, _VECTORS), terms

    def bounds(self, words: np.ndarray) -> np.ndarray:
        """What no score of a document exceeds, `[documents]` float32; 0 where the score is."""
        return self._bounds.of_documents(*_counted(shared_columns(words, self._known)))

    def scores(self, words: np.ndarray, documents: np.ndarray) -> np.ndarray:
        """The scores of some documents, each that of its best passage, `[documents]` float32."""
        passages, rows = self.passages_of(documents)
        scores = self._scores_of(words, rows)
        if self._bounds.firsts is None or not len(rows):
            return scores
        return np.maximum.reduceat(scores, np.cumsum(passages) - passages)

    def best_passages(self, words: np.ndarray, documents: np.ndarray) -> list[int | None]:
        """The best passage of some documents by its number from 0; None where there is but one."""
        passages, rows = self.passages_of(documents)
        rows = rows[np.repeat(passages > 1, passages)]
        scores, numbers, begin = self._scores_of(words, rows), [None] * len(documents), 0
        for place in np.flatnonzero(passages > 1):
            end = begin + passages[place]
            numbers[place], begin = int(scores[begin:end].argmax()), end
        return numbers

    def passages_of(self, documents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How many passages some documents have, and the rows of all of these."""
        if (firsts := self._bounds.firsts) is None:
            return np.ones(len(documents), np.int64), documents
        passages = firsts[documents + 1] - firsts[documents]
        return passages, ranges(firsts[documents], passages)

    def _scores_of(self, words: np.ndarray, rows: np.ndarray) -> np.ndarray:
        words, counts = _counted(words)
        return self._rows.sums(rows, words, counts.astype(np.float32), self._bounds.common)

    def impacts(self, rows: np.ndarray) -> sp.csr_array:
        """The impacts of some passages as a matrix, `[passages, query words]` float32."""
        return matrix_of(self._rows, rows, _ALL)

    def feedback(self, weight: float) -> Feedback | None:
        """Feedback over the documents; None for weight 0."""
        return Feedback(*self._vectors, weight, self._hashes) if weight else None


def _new_words(impacts: Rows, known: int) -> np.ndarray:
    """The hashes of new words, `[new words]` int32, ascending."""
    found = [np.zeros(0, np.int32)]
    for some in matrices(impacts, _ALL):
        found.append(np.unique(some.indices[some.indices >= known]))
    return np.unique(np.concatenate(found)) - np.int32(known)


def _counted(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The known words of a query, ascending, and how often each stands there."""
    return np.unique(words[words > 0], return_counts=True)
