"""A set as the systems of Yu and Allan 2020 read it: content words and their vectors."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from tf_smoothclir.data.tokenized_set import ROLES, RaggedStore, TokenizedSet
from tf_smoothclir.interaction.inputs import InteractionTexts, padded_ids
from tf_smoothclir.interaction.networks.base import WordTables
from tf_smoothclir.interaction.reranker import frequency_weights
from tf_smoothclir.lexical.sparse_tables import kept_entries
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.lexical.words import Words
from tf_smoothclir.papers.laboratory.translated import Collection, by_nearest, literal
from tf_smoothclir.papers.yu2020.options import MOST_COMMON, MatchingOptions
from tf_smoothclir.papers.yu2020.vectors import word_vectors
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.text.vocabulary import PADDING_ID, UNKNOWN_ID

_WHOLE = 1 << 30


class MatchingData:
    """A set, its word vectors, and role -> `[vocabulary]` bool, the content words."""

    def __init__(
        self, tokenized_set: TokenizedSet, settings: RunSettings, options: MatchingOptions
    ):
        self.retrieval_set = tokenized_set.retrieval_set
        self._tokenized_set, self._settings = tokenized_set, settings
        counted = {
            "query": self.retrieval_set.queries_in("train"),
            "document": np.arange(len(self.retrieval_set.document_ids)),
        }
        self.content = {
            role: content_words(
                self.vocabulary(role), tokenized_set.tokens(role), counted[role], MOST_COMMON[role]
            )
            for role in ROLES
        }
        self.vectors = word_vectors(
            options.word_vectors, settings, tokenized_set, self._texts(self.content)
        )

    def vocabulary(self, role: str) -> list[str]:
        """The words of "query" or "document"; a word's place is its id."""
        return self._tokenized_set.vocabulary(role)

    @functools.cached_property
    def _lexical(self) -> LexicalTexts:
        """The set with all of its words."""
        return LexicalTexts(self._tokenized_set, self._settings.text.max_query_tokens)

    @functools.cached_property
    def translation(self) -> sp.csr_array:
        """`[query words, document words]`: the nearest content word, else the same spelling."""
        vectors, spelling = self.vectors, self._lexical.spelling
        occurring = (self.collection.occurrences > 0) & self.content["document"]
        return by_nearest(vectors.queries, vectors.documents, occurring, spelling)

    @property
    def untranslated(self) -> sp.csr_array:
        """`[query words, document words]`: every word stays as it is spelled."""
        return literal(self._lexical.spelling)

    @functools.cached_property
    def collection(self) -> Collection:
        """The content words of the documents."""
        words = self._lexical.documents
        kept = self.content["document"][words.ids]
        ends = np.append(0, np.cumsum(kept))
        return Collection.of(Words(words.ids[kept], ends[words.offsets], words.size))

    @property
    def queries(self) -> sp.csr_array:
        """`[queries, query words]`, counts of content words, those of documents alone too."""
        content, counts = np.concatenate([*self.content.values()]), self._lexical.queries
        return kept_entries(counts, content[counts.indices])

    @property
    def frequency_weights(self) -> np.ndarray:
        """`[query words]` float32, how much words count by their rarity."""
        return frequency_weights(self._tokenized_set)

    def tables(self, *, translates: bool) -> WordTables:
        """The vectors for networks."""
        queries, documents = self.vectors.queries, self.vectors.documents
        if translates:
            queries = (self.translation @ documents)[: len(queries)]
        return WordTables(queries, documents)

    def texts(
        self, tables: WordTables, query_words: int = _WHOLE, document_words: int = _WHOLE
    ) -> InteractionTexts:
        """The content words that have a vector, cut to the first ones."""
        has_vector = {"query": tables.queries, "document": tables.documents}
        kept = {
            role: self.content[role] & np.asarray(table).any(axis=1)
            for role, table in has_vector.items()
        }
        return self._texts(kept, query_words, document_words)

    def _texts(self, kept, query_words: int = _WHOLE, document_words: int = _WHOLE):
        lengths = {"query": query_words, "document": document_words}
        return InteractionTexts(
            *(padded_ids(self._tokenized_set.tokens(r), lengths[r], kept[r]) for r in ROLES)
        )


def content_words(
    vocabulary: Sequence[str], store: RaggedStore, rows: np.ndarray, most_common: float
) -> np.ndarray:
    """`[vocabulary]` bool, the content words, counted on `[texts]` rows; unknown words stay."""
    # Those with a letter or a digit and more than one character (but of scripts without spaces)
    # that not too many texts contain.
    values = np.asarray(store.values)
    owners = np.repeat(np.arange(len(store)), store.lengths)
    counted = np.isin(owners, rows) & (values < len(vocabulary))
    pairs = np.unique(owners[counted] * np.int64(len(vocabulary)) + values[counted])
    frequency = np.bincount(pairs % len(vocabulary), minlength=len(vocabulary))
    kept = np.array([_is_word(word) for word in vocabulary], bool)
    kept &= frequency <= most_common * max(1, len(rows))
    kept[PADDING_ID], kept[UNKNOWN_ID] = False, True
    return kept


def _is_word(text: str) -> bool:
    is_alone = len(text) == 1 and ord(text) < 0x0E00  # before Thai and all that has no spaces
    return not is_alone and any(character.isalnum() for character in text)
