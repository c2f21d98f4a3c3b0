"""A retrieval set as token ids."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from tf_smoothclir.data.ragged_store import RaggedStore
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.text.vocabulary import read_vocabulary

ROLES = ("query", "document")
TITLES = "document.titles"  # the lengths of titles, where these are read
WHOLE = "document.whole"  # store of all documents, where `document` cuts any


@dataclasses.dataclass(frozen=True)
class TokenizedSet:
    """A retrieval set whose texts are token ids; `tokenize_set` makes it."""

    retrieval_set: RetrievalSet
    directory: Path  # contains the token stores `query` and `document`
    vocabulary_dir: Path  # contains `query.txt` and `document.txt`, which define the ids
    # Whether every distinct word has an id. Words outside the vocabulary then have the ids after
    # it, and `ngrams` stands for their spelling.
    has_ngrams: bool = False
    pretokenized: bool = False  # whether words are what stands between white space
    query_directory: Path | None = None  # contains the store `query` if it is not in `directory`

    def tokens(self, role: str) -> RaggedStore:
        """The token ids of every "query" or "document", by row."""
        elsewhere = self.query_directory if role == "query" else None
        return RaggedStore(elsewhere or self.directory, role, "<i4")

    def whole_documents(self) -> RaggedStore:
        """The token ids of every document to its end, where the settings have passages."""
        whole = (self.directory / f"{WHOLE}.values").is_file()
        return RaggedStore(self.directory, WHOLE if whole else "document", "<i4")

    def title_lengths(self) -> np.ndarray | None:
        """`[documents]` int64, how many of their first tokens are the title; None for none."""
        path = self.directory / TITLES
        return np.fromfile(path, "<i8") if path.is_file() else None

    def ngrams(self, role: str) -> RaggedStore | None:
        """The n-gram buckets of every word of a role, by id; None without n-grams."""
        return RaggedStore(self.directory, ngrams_store(role), "<i4") if self.has_ngrams else None

    def vocabulary(self, role: str) -> list[str]:
        """The tokens of a role; a token's position is its id."""
        return read_vocabulary(self.vocabulary_dir / f"{role}.txt")


def ngrams_store(role: str) -> str:
    """The name of the store that `TokenizedSet.ngrams` opens."""
    return f"{role}.ngrams"
