"""Which word of a document met which word of a query, and what that adds to the score.

A query word w adds to the score of a document, over the fields f (profiles of positions),

    n(w, q) Σ_f a_f,w log(1 + o_w P_f(w | d)),  P_f(w | d) = Σ_t M(w | t) p_f(t | d),

where o_w is (1 - α) / (α P(w)), and M(w | t) = (1 - β) T(w | t) + β [w is spelled like t] is the
probability by which the document word t stands for w. Each t has the share of these logarithms that
it has of P_f(w | d). A fusion makes something else of the lexical score, which all pairs of words
have in the same proportions. Words that carry less than a hundredth are left to the remainder.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.lexical.words import NO_WORD
from tf_smoothclir.protocols.text_search import Explanation, WordMatch, WordShare
from tf_smoothclir.publishing.exported_lexical import LexicalParts
from tf_smoothclir.text.vocabulary import read_vocabulary

_LEAST_SHARE = (
    0.01  # of what words add, that a word carries; dozens carry less, all together little
)
_MOST_MATCHES = 3  # of a word


class WordExplainer:
    """Explains scores of a lexical model."""

    def __init__(self, lexical: LexicalParts):
        """Takes an exported model."""
        self._lexical = lexical

    def explain(
        self, query: np.ndarray, texts: Sequence[str], parts: np.ndarray, role: str
    ) -> list[Explanation]:
        """Explains the scores of documents.

        Args:
            query: `[words]` int32, as `QueryReader` numbers them.
            texts: The documents.
            parts: `[documents, 3]`, what words, towers and feedback add to the score of each.
            role: "document" for the words of the documents, "query" for those of the query.
        """
        words, counts = np.unique(query[query != NO_WORD], return_counts=True)
        read = self._lexical.plain_document_reader.batch(texts)
        met, places = np.unique(read.ids, return_inverse=True)
        probabilities = self._probabilities(words, met)
        of_query = [self._query_word(word) for word in words]
        explanations = []
        for number, (of_words, towers, feedback) in enumerate(parts.tolist()):
            document = places[read.offsets[number] : read.offsets[number + 1]]
            own, shares = self._shares(document, words, counts, probabilities)
            shares *= of_words / (shares.sum() or 1.0)
            found = probabilities[:, own]
            of_document = [self._vocabularies[1][word] for word in met[own]]
            if role == "query":
                explained = _word_shares(of_query, of_document, shares, found)
            else:
                explained = _word_shares(of_document, of_query, shares.T, found.T)
            score = float(parts[number].sum(dtype=np.float64))
            remainder = score - towers - feedback - math.fsum(word.share for word in explained)
            explanations.append(Explanation(score, explained, remainder, towers, feedback))
        return explanations

    def _shares(
        self, document: np.ndarray, words: np.ndarray, counts: np.ndarray, chances: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns the different words of a document, and `[query words, words]` shares.

        Args:
            document: `[words]` int64, columns of `chances`.
            words: `[query words]`, of the query.
            counts: How often the query has each.
            chances: `[query words, columns]`, M(w | t).
        """
        model = self._lexical.model
        odds = (1 - model.psq.alpha) / model.psq.alpha / model.background[words]
        ids, places = np.unique(document, return_inverse=True)
        shares = np.zeros((len(words), len(ids)))
        for field, weights in zip(model.fields, model.weights):
            of_positions = field(np.arange(len(document)))
            frequency = np.bincount(places, of_positions, len(ids)) / max(1, of_positions.sum())
            parts = chances[:, ids] * frequency  # no column of NO_WORD has a probability
            totals = parts.sum(axis=1)
            added = counts * weights[words] * np.log1p(totals * odds)
            each = np.divide(added, totals, out=np.zeros(len(words)), where=totals > 0)
            shares += parts * each[:, np.newaxis]
        return ids, shares

    def _probabilities(self, words: np.ndarray, met: np.ndarray) -> np.ndarray:
        """Returns M(w | t) of some words of both languages, `[words, met]` float32."""
        found = np.zeros((len(words), len(met)), np.float32)
        for row, word in zip(found, words) if len(met) else ():
            own = slice(*self._mixed.indptr[word : word + 2])
            ids = self._mixed.indices[own]
            places = np.minimum(np.searchsorted(met, ids), len(met) - 1)
            is_met = met[places] == ids
            row[places[is_met]] = self._mixed.data[own][is_met]
        return found

    @functools.cached_property
    def _mixed(self) -> sp.csc_array:
        """M(w | t), `[document words, query words]` float32."""
        model, spelling = self._lexical.model, self._lexical.spelling
        return ((1 - model.psq.beta) * model.table + model.psq.beta * spelling).tocsc()

    @functools.cached_property
    def _vocabularies(self) -> tuple[list[str], list[str]]:
        directory = self._lexical.vocabulary_dir
        own, other = (read_vocabulary(directory / f"{role}.txt") for role in ROLES)
        return own, other

    def _query_word(self, word: int) -> str:
        own, other = self._vocabularies
        return own[word] if word < len(own) else other[word - len(own)]


def _word_shares(
    words: list[str], others: list[str], shares: np.ndarray, probabilities: np.ndarray
) -> tuple[WordShare, ...]:
    """Returns the words that carry the score, largest share first, each with what it met most.

    Args:
        words: The words to explain.
        others: The words of the other text.
        shares: `[words, others]`, what each pair adds.
        probabilities: `[words, others]`.
    """
    totals = shares.sum(axis=1)
    kept = np.count_nonzero(totals > _LEAST_SHARE * totals.sum())
    order = np.argsort(-totals, kind="stable")[:kept]
    most = np.argsort(-shares[order], axis=1, kind="stable")[:, :_MOST_MATCHES]
    found = (np.take_along_axis(array[order], most, axis=1) for array in (probabilities, shares))
    rows = zip(order.tolist(), most.tolist(), *(array.tolist() for array in found))
    return tuple(
        WordShare(
            words[row],
            float(totals[row]),
            tuple(
                WordMatch(others[column], chance, share)
                for column, chance, share in zip(columns, chances, own)
                if share
            ),
        )
        for row, columns, chances, own in rows
    )
