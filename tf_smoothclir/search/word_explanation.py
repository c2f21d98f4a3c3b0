"""Explanation of a lexical score: matches of document words and query words, and their shares.

A query word w adds to the score of a document, over the fields f (profiles of positions),

    n(w, q) Σ_f a_f,w log(1 + o_w P_f(w | d)),  P_f(w | d) = Σ_t M(w | t) p_f(t | d),

where o_w is (1 - α) / (α P(w)), and M(w | t) = (1 - β) T(w | t) + β [w is spelled like t] is the
probability by which the document word t stands for w. Each t has the share of these logarithms that
it has of P_f(w | d). A fusion makes something else of the lexical score, which all pairs of words
have in the same proportions. To the remainder are left words that carry less than a hundredth, and
what says nothing about a subject: punctuation, and words with P(w) above `_STOP_WORD`, or above
`_TIMES` the mean of the words of training queries, where these are few.
"""

import functools
import math
from collections.abc import Sequence

import numpy as np

from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.encoder.tokenizer import has_letters
from tf_smoothclir.lexical.psq import BETA, odds
from tf_smoothclir.lexical.words import NO_WORD
from tf_smoothclir.protocols.text_search import Explanation, SearchHit, WordMatch, WordShare
from tf_smoothclir.publishing.exported_lexical import LexicalParts
from tf_smoothclir.text.vocabulary import PADDING_ID
from tf_smoothclir.utils import sparse as sp

_LEAST_SHARE = 0.01  # of what words add, that a word carries; in long texts, dozens carry less
_MOST_MATCHES = 3  # of a word
_STOP_WORD = 0.01  # the share of a text that a word has on average
_TIMES = 10  # as often as a word has on average, where there are so few that it is more


class WordExplainer:
    """Explains scores of a lexical model."""

    def __init__(self, lexical: LexicalParts):
        self._lexical = lexical

    def explain(
        self, query: np.ndarray, documents: Sequence[Text | SearchHit], parts: np.ndarray, role: str
    ) -> list[Explanation]:
        """Explains sums of `[documents, 4]`: words, towers, encoder and feedback."""
        words, counts = np.unique(query[query != NO_WORD], return_counts=True)
        known = len(self._lexical.model.background)
        new = (words[words >= known] - known).astype(np.int32)
        read = self._lexical.plain_document_words(documents, new)
        read = self._lexical.model.passages(read)
        met, places = np.unique(read.ids, return_inverse=True)
        probabilities = self._probabilities(words, met)
        fields, positions = self._lexical.model.fields, read.positions()
        of_query = [self._query_word(word) for word in words]
        of_texts = [self._document_word(word) for word in met]
        background = self._lexical.model.background
        asked = max(1, np.count_nonzero(self._lexical.model.counts))
        is_stop_word = background[_as_known(words, known)] > max(_STOP_WORD, _TIMES / asked)
        says_something = [
            np.array([*map(has_letters, words_there)], bool) for words_there in (of_query, of_texts)
        ]
        if (says_something[0] & ~is_stop_word).any():
            says_something[0] &= ~is_stop_word
        explanations = []
        ends = np.cumsum(read.number_of_each())
        for document, (of_words, towers, encoder, feedback) in enumerate(parts.tolist()):
            best = None  # of the passages of the document
            for row in range(ends[document - 1] if document else 0, ends[document]):
                passage = slice(*read.offsets[row : row + 2])
                words_there = np.flatnonzero(np.bincount(places[passage], minlength=len(met)))
                chances = probabilities[:, words_there]
                frequencies = []  # P(t | d) by each field
                for weights in (field(positions[passage]) for field in fields):
                    of_all = np.bincount(places[passage], weights, len(met))
                    frequencies.append(of_all[words_there] / max(1, weights.sum()))
                shares = self._shares(words, counts, chances, frequencies)
                if best is None or shares.sum() > best[0].sum():
                    best = shares, words_there, chances
            shares, words_there, chances = best
            shares *= of_words / (shares.sum() or 1.0)
            subject = shares * np.outer(says_something[0], says_something[1][words_there])
            shares = subject if subject.any() else shares  # where nothing else matched, all count
            of_document = [of_texts[word] for word in words_there]
            if role == "query":
                explained = _word_shares(of_query, of_document, shares, chances)
            else:
                explained = _word_shares(of_document, of_query, shares.T, chances.T)
            score = float(parts[document].sum(dtype=np.float64))
            of_others = towers + encoder + feedback
            remainder = score - of_others - math.fsum(word.share for word in explained)
            explanations.append(Explanation(score, explained, remainder, towers, encoder, feedback))
        return explanations

    def _shares(
        self,
        words: np.ndarray,
        counts: np.ndarray,
        chances: np.ndarray,
        frequencies: Sequence[np.ndarray],
    ) -> np.ndarray:
        """Share of each pair of words, before a fusion: `[query words, document words]`."""
        # `chances` are M(w | t), `[query words, document words]`; `frequencies`, of each field,
        # p_f(t | d).
        model = self._lexical.model
        words = _as_known(words, len(model.background))
        factors = odds(model.background[words])
        shares = np.zeros(chances.shape)
        for frequency, weights in zip(frequencies, model.weights):
            parts = chances * frequency
            totals = parts.sum(axis=1)
            added = counts * weights[words] * np.log1p(totals * factors)
            each = np.divide(added, totals, out=np.zeros(len(words)), where=totals > 0)
            shares += parts * each[:, np.newaxis]
        return shares

    def _probabilities(self, words: np.ndarray, met: np.ndarray) -> np.ndarray:
        """M(w | t) of some words of both languages, ascending, `[words, met]` float32."""
        probabilities = np.zeros((len(words), len(met)), np.float32)
        documents, known = self._mixed.shape
        for row, word in zip(probabilities, words):
            if word >= known:  # a new word stands for itself
                row[met - documents == word - known] = BETA
                continue
            entries = slice(*self._mixed.indptr[word : word + 2])
            ids = self._mixed.indices[entries]
            if len(ids):
                places = np.minimum(np.searchsorted(ids, met), len(ids) - 1)
                is_there = ids[places] == met
                row[is_there] = self._mixed.data[entries][places[is_there]]
        return probabilities

    @functools.cached_property
    def _mixed(self) -> sp.csc_array:
        """M(w | t), `[document words, query words]` float32."""
        model = self._lexical.model
        mixed = model.mixed(self._lexical.spelling).tocsc()
        mixed.sort_indices()
        return mixed

    def _query_word(self, word: int) -> str:
        queries = self._lexical.vocabularies[0]
        return queries[word] if word < len(queries) else self._document_word(word - len(queries))

    def _document_word(self, word: int) -> str:
        documents = self._lexical.vocabularies[1]
        if word < len(documents):
            return documents[word]
        names = self._lexical.plain_document_reader.names
        return names.get(word, "")  # "" where no document has it


def _as_known(words: np.ndarray, known: int) -> np.ndarray:
    """Words, in whose places new ones have that of padding, as they count as much."""
    return np.where(words < known, words, PADDING_ID)


def _word_shares(
    words: list[str], others: list[str], shares: np.ndarray, probabilities: np.ndarray
) -> tuple[WordShare, ...]:
    """The words that carry the score, largest share first, each with what it met most."""
    totals = shares.sum(axis=1)
    kept = np.count_nonzero(totals > _LEAST_SHARE * totals.sum())
    order = np.argsort(-totals, kind="stable")[:kept]
    most = np.argsort(-shares[order], axis=1, kind="stable")[:, :_MOST_MATCHES]
    places = order[:, np.newaxis], most
    rows = (array.tolist() for array in (order, totals[order], most))
    matched = (array[places].tolist() for array in (probabilities, shares))
    return tuple(
        [
            WordShare(
                words[row],
                total,
                tuple(
                    [WordMatch(others[c], p, s) for c, p, s in zip(columns, chances, of_row) if s]
                ),
            )
            for row, total, columns, chances, of_row in zip(*rows, *matched)
        ]
    )
