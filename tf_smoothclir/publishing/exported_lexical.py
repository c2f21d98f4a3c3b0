"""Exported lexical models: the part of a lexical or hybrid run besides its towers.

`lexical_model/<version>` is no SavedModel. It holds the translation table and its weights, both
vocabularies, the settings that cut texts and, for a hybrid, the fusion: whoever indexes or searches
needs no run directory.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tf_smoothclir.data.sources.source import Text, text_read
from tf_smoothclir.data.tokenized_set import copy_vocabularies
from tf_smoothclir.hybrid.fusion import Fusion
from tf_smoothclir.lexical.model import LexicalModel
from tf_smoothclir.lexical.new_words import NONE, numbered
from tf_smoothclir.lexical.plain_reader import PlainReader
from tf_smoothclir.lexical.words import Words, read_vocabularies, same_spelling
from tf_smoothclir.protocols.text_search import SearchHit
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.storage.files import read_record, write_json
from tf_smoothclir.utils import sparse as sp

if TYPE_CHECKING:  # importing it takes seconds
    from tf_smoothclir.lexical.text_reader import TextReader

_MODEL, _VOCABULARY, _TEXT, _FUSION = "model", "vocabulary", "text.json", "hybrid.json"


@dataclasses.dataclass(frozen=True)
class LexicalParts:
    """A lexical model with all that it needs to read texts."""

    model: LexicalModel  # the table, and how its evidence is weighed
    vocabulary_dir: Path  # has `query.txt` and `document.txt`
    text: TextSettings
    # How its scores and those of the towers are added; None where it ranks alone.
    fusion: Fusion | None = None

    def save(self, path: Path) -> None:
        """Writes a new directory; how long learning took is left out: it determines no score."""
        dataclasses.replace(self.model, seconds=0.0).save(path / _MODEL)
        copy_vocabularies(self.vocabulary_dir, path / _VOCABULARY)
        write_json(path / _TEXT, dataclasses.asdict(self.text))
        if self.fusion is not None:
            dataclasses.replace(self.fusion, seconds=0.0).save(path / _FUSION)

    @classmethod
    def load(cls, directory: Path) -> LexicalParts:
        """Reads what `save` wrote."""
        fusion = directory / _FUSION
        return cls(
            model=LexicalModel.load(directory / _MODEL),
            vocabulary_dir=directory / _VOCABULARY,
            text=read_record(directory / _TEXT, TextSettings, "Export the run again"),
            fusion=Fusion.load(fusion) if fusion.is_file() else None,
        )

    @property
    def feedback(self) -> float:
        """Weight of feedback over the scores that rank."""
        return self.model.feedback if self.fusion is None else self.fusion.feedback

    def ranking(self, *, with_towers: bool) -> Fusion:
        """The fusion that ranks: of a hybrid, or of the lexical model alone."""
        return self.fusion if with_towers else Fusion(0.0, 1.0, 1.0, self.model.feedback)

    @functools.cached_property
    def document_reader(self) -> TextReader:
        """Reads documents."""
        return self.reader("document")

    def reader(self, role: str, new_words: np.ndarray = NONE) -> TextReader:
        """Reads queries, which may have some new words, or documents, in a graph."""
        from tf_smoothclir.lexical.text_reader import TextReader

        most, as_is = self.text.read_tokens(role), self.text.pretokenized
        return TextReader(self.vocabulary_dir, role, most, as_is, new_words)

    @functools.cached_property
    def plain_query_reader(self) -> PlainReader:
        """Reads queries."""
        return self._plain_reader("query")

    @functools.cached_property
    def plain_document_reader(self) -> PlainReader:
        """Reads a few documents, as `document_reader` does."""
        return self._plain_reader("document")

    def _plain_reader(self, role: str) -> PlainReader:
        most, as_is = self.text.read_tokens(role), self.text.pretokenized
        return PlainReader(self.vocabulary_dir, role, most, as_is)

    def document_words(self, documents: Sequence[Text], *, with_new: bool = False) -> Words:
        """The words of documents, after those of titles where these are read."""
        read = functools.partial(self.document_reader.words, with_new=with_new)
        languages = np.array([document.language for document in documents], str)
        return dataclasses.replace(self._words(read, documents), languages=languages)

    def all_document_words(self, documents: Sequence[Text]) -> tuple[Words, np.ndarray]:
        """The same with new words, as `numbered` has them."""
        return numbered(self.document_words(documents, with_new=True), self.document_reader.size)

    def plain_document_words(
        self, documents: Sequence[Text | SearchHit], new_words: np.ndarray = NONE
    ) -> Words:
        """The words of a few documents; some new ones have the numbers of their hashes."""
        read = functools.partial(self.plain_document_reader.batch, new_words=new_words)
        return self._words(read, documents)

    def pairs(self, queries: Sequence[str], documents: Sequence[str]) -> tuple[Words, Words]:
        """The words of both, where new words of the documents have numbers after all others."""
        read = self.document_reader.batch(documents, with_new=True)
        read, new_words = numbered(read, self.document_reader.size)
        asked, known = self.plain_query_reader.batch(queries, new_words), len(self.model.background)
        ids, is_new = asked.ids.copy(), asked.ids >= known
        ids[is_new] = known + np.searchsorted(new_words, ids[is_new] - known)
        return asked.with_ids(ids, known + len(new_words)), read

    def _words(
        self, read: Callable[[Sequence[str]], Words], documents: Sequence[Text | SearchHit]
    ) -> Words:
        titles = self.text.reads_titles
        words = read([text_read(document, titles=titles) for document in documents])
        if not titles:
            return words
        of_titles = read([document.title for document in documents])
        return words.after_titles(np.diff(of_titles.offsets))

    @functools.cached_property
    def vocabularies(self) -> list[list[str]]:
        """The words of queries and of documents."""
        return read_vocabularies(self.vocabulary_dir)

    @functools.cached_property
    def spelling(self) -> sp.csr_array:
        """`[document words, query words]`, of `same_spelling`."""
        return same_spelling(*self.vocabularies)
