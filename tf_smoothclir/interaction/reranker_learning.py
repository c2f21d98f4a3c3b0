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
from collections.abc import Callable

import numpy as np
from absl import logging
from tensorflow import keras

from tf_smoothclir.data.candidate_lists import CandidateLists, candidate_lists
from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.tokenized_set import TokenizedSet
from tf_smoothclir.evaluation.metrics import list_metrics
from tf_smoothclir.interaction.inputs import InteractionTexts, WordCodes
from tf_smoothclir.interaction.learning import learn
from tf_smoothclir.interaction.networks.base import InteractionNetwork
from tf_smoothclir.interaction.reranker import (
    Reranker,
    RerankerChoices,
    frequency_weights,
    list_scores,
)
from tf_smoothclir.lexical.validation import is_better, quality
from tf_smoothclir.plugins import RERANKERS
from tf_smoothclir.protocols.scorer import Ranking, Retriever, Scorer, ordered

# Words that a re-ranker reads: first stages read all of a text.
QUERY_LENGTH, DOCUMENT_LENGTH = 32, 96
_EPOCH_QUERIES, _EPOCH_DEPTH = 1000, 10
_NEGATIVE_RANKS, _MOST_QUERIES = 10, 8000
_MOST_RELATED, _RANDOM = 5, 10
# What a standard deviation of the re-ranker's scores counts, of one of the first stage's scores.
SHARES = (0.0, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
_SPREAD_OVER = 10  # documents: where the order of the first ranks is decided
_NEGATIVES = 40
_DEPTH = 10
_WITH_MAP = (0, 1, 3)  # NDCG@5, MRR@10 and MAP


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
    candidates = []
    for lists, related in tried:
        keras.utils.set_random_seed(seed)  # for the weights that a network begins with
        choices = RerankerChoices(network, 0.0, QUERY_LENGTH, DOCUMENT_LENGTH, related=related)
        trains_vectors = bool(RERANKERS[network].learning.vector_rate)
        begun = Reranker(choices, codes, weights, trains_vectors=trains_vectors)
        candidates.append(_learned(begun, tokenized_set, lists, validation, seed))
    reranker = max(candidates, key=lambda candidate: candidate.choices.gain)
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
        measure = validation.measure_of_epochs(reranker.network, texts)
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
    highest, kept, documents_of = int(grades[wanted[0]]), [], []
    for ranking in first_stage.rank(queries, _NEGATIVE_RANKS):
        for row, documents in zip(ranking.query_rows, ranking.document_rows):
            judged = slice(*np.searchsorted(rows, [row, row + 1]))
            mates = retrieval_set.document_rows[judged][grades[judged] == highest]
            others = documents[~np.isin(documents, retrieval_set.document_rows[judged])]
            kept.append(row)
            documents_of.append((mates, others))
    return _lists(kept, documents_of, grade=highest)


def _lists(queries, documents, grade: int = 0) -> CandidateLists:
    """Lists of queries, each with documents of a grade and others of grade 0."""
    rows = [np.asarray(part, np.int32) for both in documents for part in both]
    lengths = np.array(list(map(len, rows)), np.int64)
    return CandidateLists(
        query_rows=np.array(queries, np.int32),
        offsets=np.append(0, np.cumsum(lengths))[::2],
        document_rows=np.concatenate([np.zeros(0, np.int32), *rows]),
        grades=np.repeat(np.array([grade, 0] * len(documents), np.int32), lengths),
    )


def with_related(lists: CandidateLists, retrieval_set: RetrievalSet, seed: int) -> CandidateLists:
    """The lists, and after them one of related documents for each query that has any."""
    generator = np.random.default_rng(seed)
    highest = int(lists.grades.max())
    rows, documents = [], []
    for row in lists.query_rows:
        of_query = slice(*np.searchsorted(retrieval_set.query_rows, [row, row + 1]))
        judged, grades = retrieval_set.document_rows[of_query], retrieval_set.grades[of_query]
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


class FirstStageValidation:
    """The rankings of validation queries by a first stage, and what a re-ranker makes of them."""

    def __init__(self, retrieval_set: RetrievalSet, first_stage: Retriever, depth: int):
        self._set = retrieval_set
        self._lists = candidate_lists(retrieval_set, "validation", negatives=_NEGATIVES, seed=13)
        self._of_lists = first_stage.score(self._lists)
        self.ranking = Ranking.joined(first_stage.rank(self._lists.query_rows, depth))

    def measure_of_epochs(
        self, network: InteractionNetwork, texts: InteractionTexts
    ) -> Callable[[], float]:
        """Measures MRR@10 of the first ranks of some queries, by the best share."""
        whole, retrieval_set = self.ranking, self._set
        some = np.linspace(0, len(whole.query_rows), _EPOCH_QUERIES, endpoint=False)
        some = np.unique(some.astype(int))
        firsts = (of[some, :_EPOCH_DEPTH] for of in (whole.document_rows, whole.scores))
        ranking = Ranking(whole.query_rows[some], *firsts)
        scores_now = list_scores(network, texts, ranking.candidate_lists(retrieval_set))

        def measured() -> float:
            scores = scores_now().reshape(ranking.scores.shape)
            unit = _unit(ranking.scores, scores)
            sums = (ranking.scores + share * unit * scores for share in SHARES)
            rankings = (ordered(ranking, added, retrieval_set) for added in sums)
            return max(float(reciprocal_ranks(one, retrieval_set).mean()) for one in rankings)

        return measured

    def best(self, scorer: Scorer) -> tuple[float, float, dict[float, float]]:
        """The best weight of a re-ranker, 0 for the first stage alone."""
        of_lists = scorer.score(self._lists)
        scores = scorer.score(self.ranking.candidate_lists(self._set))
        scores = scores.reshape(self.ranking.scores.shape)
        unit = _unit(self.ranking.scores, scores)
        measured = {share: self._measure(share * unit, of_lists, scores) for share in SHARES}
        values = {share: quality(figures) for share, figures in measured.items()}
        sound = [share for share in SHARES if _is_sound(measured[share], measured[0.0])]
        chosen = max(sound, key=values.get, default=0.0)
        return chosen * unit, chosen, values

    def _measure(self, weight: float, of_lists: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Metrics per query of a ranking, as `Validation.per_query` has them, and MAP."""
        of_lists = self._of_lists + np.float32(weight) * of_lists
        figures = list_metrics(self._set, self._lists, of_lists)
        added = self.ranking.scores + np.float32(weight) * scores
        reciprocals = reciprocal_ranks(ordered(self.ranking, added, self._set), self._set)
        columns = figures["NDCG@5"], reciprocals, np.equal(reciprocals, 1), figures["MAP"]
        return np.stack(columns, axis=1)


def _unit(first: np.ndarray, scores: np.ndarray) -> float:
    """The weight by which scores spread as those of the first stage, `[queries, depth]` both."""
    spreads = (of_stage[:, :_SPREAD_OVER].std(axis=1).mean() for of_stage in (first, scores))
    of_first, of_scores = map(float, spreads)
    return (of_first or 1.0) / of_scores if of_scores else 0.0


def _is_sound(measured: np.ndarray, first_stage: np.ndarray) -> bool:
    return is_better(measured, first_stage) and is_better(measured, first_stage, _WITH_MAP)


def reciprocal_ranks(ranking: Ranking, retrieval_set: RetrievalSet) -> np.ndarray:
    """`[queries]`, 1 / rank of the first document of the query's highest grade; 0 below rank 10."""
    highest = np.zeros(len(retrieval_set.query_ids), int)
    np.maximum.at(highest, retrieval_set.query_rows, retrieval_set.grades)
    wanted = np.maximum(1, highest[ranking.query_rows, np.newaxis])
    is_best = ranking.grades(retrieval_set)[:, :_DEPTH] == wanted
    return np.where(is_best.any(axis=1), 1 / (is_best.argmax(axis=1) + 1.0), 0.0)
