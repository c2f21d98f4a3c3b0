"""The interface of every retrieval set: three streams of records, and splits."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from absl import logging

from tf_smoothclir.settings.data import DataSettings

SPLITS = ("train", "validation", "test")


class Text(NamedTuple):
    """A query or a document, and the code of its language; "" where nobody says which."""

    id: str
    title: str
    text: str
    language: str = ""


def log_unread_titles(where: object, titled: int) -> None:
    """Says that queries have titles, which nobody reads."""
    if titled:
        logging.info(
            f"{where}: {titled} queries have titles, which are not read. To search by both, join"
            " them in the column `text`."
        )


def text_read(document, *, titles: bool) -> str:
    """What models read of a document: its text, after its title if they read titles."""
    return f"{document.title} {document.text}" if titles and document.title else document.text


class Judgment(NamedTuple):
    """The relevance grade of one document for one query; pairs that are not listed have grade 0.

    Its weight says how much the translation table learns from it, as a doubtful judgment may have a
    smaller one. Nothing else reads weights: towers, validation and test take all alike.
    """

    query_id: str
    document_id: str
    grade: int
    weight: float = 1.0


class Source(abc.ABC):
    """A retrieval set: queries, documents in other languages, graded judgments.

    `query_language` and `document_language` are codes; several are joined by commas, in the order
    of the alphabet, and an unknown one is "". Texts may have languages of their own.

    Texts are streamed, so a collection need not fit into memory. A source checks the format of what
    it reads (columns, encoding, numbers). `RetrievalSet.load` checks the records against each other
    (duplicate ids, judgments of unknown documents, grades out of range), and asks `place` where a
    bad record is.
    """

    name: str
    query_language: str
    document_language: str
    # The share of the judgments that `checked_judgments` may leave out.
    max_skipped: float = DataSettings.max_skipped
    is_judged: bool = True  # else there is nothing to measure a model by
    titles_are_answers: bool = False  # those of queries name their best documents
    is_parallel: bool = False  # whether its texts are sentences and their translations
    has_clicks: bool = False  # which judge by the grades 0, 1 and 2
    unread: str = ""  # what an error says of files that it found and did not read

    @property
    def training(self) -> Source:
        """What a model learns from: the set, or the parallel sentences of one without judgments."""
        return self

    def language_of(self, stream: str) -> str:
        """The one language of "queries" or "documents"; "" where there are several, or unknown."""
        code = self.query_language if stream == "queries" else self.document_language
        return "" if "," in code else code

    def further_texts(self) -> Iterator[str]:
        """Yields texts in the language of the documents that count for their vocabulary alone."""
        return iter(())

    def sentences(self) -> Iterator[tuple[int, str, str]]:
        """Yields (number, sentence, its translation) of a set without judgments."""
        return iter(())

    @abc.abstractmethod
    def queries(self) -> Iterator[Text]:
        """Yields the queries, always in the same order."""

    @abc.abstractmethod
    def documents(self) -> Iterator[Text]:
        """Yields the documents, always in the same order."""

    def metadata(self) -> Iterator[Mapping[str, Any]]:
        """Yields the other columns of each document, of several languages this too; or nothing."""
        if "," in self.document_language:
            yield from ({"language": text.language} for text in self.documents())

    @abc.abstractmethod
    def judgments(self) -> Iterator[Judgment]:
        """Yields the judgments, always in the same order."""

    def splits(self) -> dict[str, str] | None:
        """Returns query id -> "train", "validation" or "test"; None for a seeded 3:1:1 split."""
        return None

    def place(self, stream: str, index: int) -> str:
        """Where record `index` (from 0) of `stream` is, such as `wiki_fr.documents:17`."""
        return f"{self.name}: record {index + 1} of the {stream}"

    @abc.abstractmethod
    def fingerprint(self) -> str:
        """Returns a hex digest that changes whenever the content of the set changes."""
