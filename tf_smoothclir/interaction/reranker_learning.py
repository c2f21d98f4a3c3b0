"""Learning a re-ranker from the ranks of a first stage on training queries.

Each relevant document of a training query has to score above documents that the first stage ranks
high and that nobody judged. The first stage has seen these queries, so it ranks their relevant
documents better than those of other queries. That does not matter here: its scores are no feature
of the network, only its other top documents are used; how much it counts is chosen on validation.
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
from tf_smoothclir.interaction.networks.registry import LEARNING
from tf_smoothclir.interaction.reranker import (
    ListScores,
    Reranker,
    RerankerChoices,
    frequency_weights,
)
from tf_smoothclir.interaction.texts import InteractionTexts
from tf_smoothclir.interaction.word_codes import WordCodes
from tf_smoothclir.protocols.scorer import Ranking, Retriever, ordered

# Words that a re-ranker reads: first stages read all of a text.
QUERY_LENGTH, DOCUMENT_LENGTH = 32, 96
_NEGATIVE_RANKS = 10
_MOST_QUERIES = 8000
_EPOCH_QUERIES, _EPOCH_DEPTH = 1000, 10


def learn_reranker(
    network: str,
    codes: WordCodes,
    tokenized_set: TokenizedSet,
    first_stage: Retriever,
    *,
    depth: int,
    seed: int,
) -> Reranker:
    """Learns a re-ranker on training queries, and chooses its weight on validation queries.

    Args:
        network: Its name in `NETWORKS`.
        codes: The word vectors.
        tokenized_set: The set.
        first_stage: What finds the documents.
        depth: Documents of each query that will be re-ranked.
        seed: Draws weights to begin with and negatives, and orders pairs.

    Returns:
        The re-ranker with the weights of its best epoch.
    """
    begin = time.monotonic()
    keras.utils.set_random_seed(seed)  # for the weights that a network begins with
    choices = RerankerChoices(network, 0.0, QUERY_LENGTH, DOCUMENT_LENGTH)
    trains_vectors = bool(LEARNING[network].vector_rate)
    weights = frequency_weights(tokenized_set)
    reranker = Reranker(choices, codes, weights, trains_vectors=trains_vectors)
    texts, retrieval_set = reranker.texts(tokenized_set), tokenized_set.retrieval_set
    validation = FirstStageValidation(retrieval_set, first_stage, depth)
    best_epoch = 0
    lists = training_lists(retrieval_set, first_stage, seed)
    if len(lists.query_rows):
        measure = _EpochMeasure(reranker, texts, validation, retrieval_set)
        settings = dataclasses.replace(LEARNING[network], least_grade=int(lists.grades.max()))
        learned = learn(reranker.network, texts, lists, measure, settings, seed=seed)
        best_epoch = learned.best_epoch
    if trains_vectors:
        reranker = reranker.encoded()
    weight, measured = validation.best(reranker.scorer(texts))
    reranker = reranker.chosen(
        weight=weight,
        best_epoch=best_epoch,
        validation={f"{share:g}": round(value, 6) for share, value in measured.items()},
        seconds=round(time.monotonic() - begin, 3),
    )
    logging.info("Re-ranker: %s (%.1f s)", reranker.describe(), reranker.seconds)
    return reranker


def training_lists(
    retrieval_set: RetrievalSet, first_stage: Retriever, seed: int
) -> CandidateLists:
    """Returns training queries with their best documents and others that the first stage finds.

    Args:
        retrieval_set: The set.
        first_stage: What finds the documents.
        seed: Chooses the queries where there are very many.

    Returns:
        For each query with a document of the highest grade, all of these documents and those of the
        first 10 ranks that nobody judged, with grade 0. Empty without such queries.
    """
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
