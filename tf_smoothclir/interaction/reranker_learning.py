"""Learning a re-ranker from the ranks of a first stage on training queries.

Each document of the highest grade has to score above documents that the first stage ranks high and
that nobody judged. The first stage has seen these queries, so it ranks their relevant documents
better than those of other queries. That does not matter here: its scores are no feature of the
network, only its other top documents are used; how much it counts is chosen on validation.

A network that learns this alone finds the one best document, and may push related ones down. So
late interaction is learned a second time, with related documents above random ones too, and
validation decides between the two.
"""

from __future__ import annotations

import dataclasses
import time

import numpy as np
from absl import logging
from tensorflow import keras

from tf_smoothclir.data.candidate_lists import CandidateLists
from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.tokenized_set import TokenizedSet
from tf_smoothclir.interaction.choosing import SHARES, FirstStageValidation, reciprocal_ranks
from tf_smoothclir.interaction.learning import learn
from tf_smoothclir.interaction.reranker import (
    ListScores,
    Reranker,
    RerankerChoices,
    frequency_weights,
)
from tf_smoothclir.interaction.texts import InteractionTexts
from tf_smoothclir.interaction.word_codes import WordCodes
from tf_smoothclir.plugins import RERANKERS
from tf_smoothclir.protocols.scorer import Ranking, Retriever, ordered

# Words that a re-ranker reads: first stages read all of a text.
QUERY_LENGTH, DOCUMENT_LENGTH = 32, 96
_EPOCH_QUERIES, _EPOCH_DEPTH = 1000, 10
_NEGATIVE_RANKS, _MOST_QUERIES = 10, 8000
_MOST_RELATED, _RANDOM = 5, 10


def learn_reranker(
    network: str,
    codes: WordCodes,
    tokenized_set: TokenizedSet,
    first_stage: Retriever,
    *,
    depth: int,
    seed: int,
) -> Reranker:
    """Learns a re-ranker on training queries, and chooses its weight on validation queries."""
    begin = time.monotonic()
    retrieval_set = tokenized_set.retrieval_set
    validation = FirstStageValidation(retrieval_set, first_stage, depth)
    lists = training_lists(retrieval_set, first_stage, seed)
    tried = [(lists, False)]
    if RERANKERS[network].learning.tries_related and len(lists.query_rows):
        more = with_related(lists, retrieval_set, seed)
        tried += [(more, True)] * (len(more.query_rows) > len(lists.query_rows))
    weights = frequency_weights(tokenized_set)
    found = []
    for lists, related in tried:
        keras.utils.set_random_seed(seed)  # for the weights that a network begins with
        choices = RerankerChoices(network, 0.0, QUERY_LENGTH, DOCUMENT_LENGTH, related=related)
        trains_vectors = bool(RERANKERS[network].learning.vector_rate)
        begun = Reranker(choices, codes, weights, trains_vectors=trains_vectors)
        found.append(_learned(begun, tokenized_set, lists, validation, seed))
    reranker = max(found, key=lambda one: one.choices.gain)
    reranker = reranker.chosen(seconds=round(time.monotonic() - begin, 3))
    logging.info("Re-ranker: %s (%.1f s)", reranker.describe(), reranker.seconds)
    return reranker


def _learned(
    reranker: Reranker,
    tokenized_set: TokenizedSet,
    lists: CandidateLists,
    validation: FirstStageValidation,
    seed: int,
) -> Reranker:
    """Re-ranker learned on lists, with its weight."""
    texts, network = reranker.texts(tokenized_set), reranker.choices.network
    best_epoch = 0
    if len(lists.query_rows):
        measure = _EpochMeasure(reranker, texts, validation, tokenized_set.retrieval_set)
        settings = dataclasses.replace(
            RERANKERS[network].learning, least_grade=int(lists.grades.max())
        )
        best_epoch = learn(reranker.network, texts, lists, measure, settings, seed=seed).best_epoch
    if RERANKERS[network].learning.vector_rate:
        reranker = reranker.encoded()
    weight, share, measured = validation.best(reranker.scorer(texts))
    return reranker.chosen(
        weight=weight,
        share=share,
        best_epoch=best_epoch,
        validation={f"{share:g}": round(value, 6) for share, value in measured.items()},
    )


class _EpochMeasure:
    """MRR@10 of the first ranks of some validation queries, by the best share of the network."""

    def __init__(
        self,
        reranker: Reranker,
        texts: InteractionTexts,
        validation: FirstStageValidation,
        retrieval_set: RetrievalSet,
    ):
        lists, self._ranking = validation.top(_EPOCH_QUERIES, _EPOCH_DEPTH)
        self._scores = ListScores(reranker.network, texts, lists)
        self._validation, self._set = validation, retrieval_set

    def __call__(self) -> float:
        ranking = self._ranking
        scores = self._scores().reshape(ranking.scores.shape)
        unit = self._validation.unit(scores, ranking)
        return max(
            self._measure(ordered(ranking, ranking.scores + share * unit * scores, self._set))
            for share in SHARES
        )

    def _measure(self, ranking: Ranking) -> float:
        return float(reciprocal_ranks(ranking, self._set).mean())


def training_lists(
    retrieval_set: RetrievalSet, first_stage: Retriever, seed: int
) -> CandidateLists:
    """Training queries with their best documents and others that the first stage finds."""
    rows, grades = retrieval_set.query_rows, retrieval_set.grades
    of_training = (retrieval_set.splits[rows] == 0) & (grades > 0)
    if not of_training.any():
        return _lists([], [])
    wanted = np.flatnonzero(of_training & (grades == grades[of_training].max()))
    queries = np.unique(rows[wanted])
    hashes = hash_ids([retrieval_set.query_ids[row] for row in queries], f"rerank {seed}")
    queries = np.sort(queries[np.argsort(hashes, kind="stable")[:_MOST_QUERIES]])
    highest, found = int(grades[wanted[0]]), ([], [])
    for ranking in first_stage.rank(queries, _NEGATIVE_RANKS):
        for row, documents in zip(ranking.query_rows, ranking.document_rows):
            own = slice(*np.searchsorted(rows, [row, row + 1]))
            mates = retrieval_set.document_rows[own][grades[own] == highest]
            others = documents[~np.isin(documents, retrieval_set.document_rows[own])]
            found[0].append(row)
            found[1].append((mates, others))
    return _lists(*found, grade=highest)


def _lists(queries, documents, grade: int = 0) -> CandidateLists:
    lengths = [len(mates) + len(others) for mates, others in documents]
    none = [np.zeros(0, np.int32)]
    return CandidateLists(
        query_rows=np.array(queries, np.int32),
        offsets=np.cumsum([0, *lengths]).astype(np.int64),
        document_rows=np.concatenate(none + [one for both in documents for one in both]).astype(
            np.int32
        ),
        grades=np.concatenate(
            none + [np.repeat([grade, 0], [len(mates), len(others)]) for mates, others in documents]
        ).astype(np.int32),
    )


def with_related(lists: CandidateLists, retrieval_set: RetrievalSet, seed: int) -> CandidateLists:
    """The lists, and after them one of related documents for each query that has any."""
    generator = np.random.default_rng(seed)
    highest = int(lists.grades.max())
    rows, documents = [], []
    for row in lists.query_rows:
        own = slice(*np.searchsorted(retrieval_set.query_rows, [row, row + 1]))
        judged, grades = retrieval_set.document_rows[own], retrieval_set.grades[own]
        related = generator.permutation(judged[(grades > 0) & (grades < highest)])[:_MOST_RELATED]
        drawn = np.unique(generator.integers(0, len(retrieval_set.document_ids), _RANDOM))
        drawn = drawn[~np.isin(drawn, judged)]
        if len(related) and len(drawn):
            rows.append(row)
            documents.append((related, drawn))
    more = _lists(rows, documents, grade=highest)
    return CandidateLists(
        query_rows=np.concatenate([lists.query_rows, more.query_rows]),
        offsets=np.concatenate([lists.offsets, lists.offsets[-1] + more.offsets[1:]]),
        document_rows=np.concatenate([lists.document_rows, more.document_rows]),
        grades=np.concatenate([lists.grades, more.grades]),
    )
