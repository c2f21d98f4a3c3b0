"""Cells of Yu and Allan 2020: one system on one set with one seed, over all of its rotations.

What ranks needs no training, or is a network.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence

import numpy as np
from tensorflow import keras

from tf_smoothclir.data.candidate_lists import CandidateLists, candidate_lists, pair_key
from tf_smoothclir.data.folds import rotated_sets
from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.evaluation.evaluate import NEGATIVES_SEED
from tf_smoothclir.evaluation.metrics import list_metrics, mean_metrics
from tf_smoothclir.interaction.inputs import InteractionTexts
from tf_smoothclir.interaction.learning import Learned, LearningSettings, learn
from tf_smoothclir.interaction.networks.base import InteractionNetwork, WordTables, unit_rows
from tf_smoothclir.interaction.reranker import list_scores
from tf_smoothclir.papers.laboratory.cells import Cell, opened_set
from tf_smoothclir.papers.laboratory.translated import Bm25, QueryLikelihood
from tf_smoothclir.papers.yu2020 import options as paper
from tf_smoothclir.papers.yu2020.matching_data import MatchingData, word_counts
from tf_smoothclir.papers.yu2020.networks import MatchPyramid, SumOfMaxima
from tf_smoothclir.papers.yu2020.options import Matching, MatchingOptions
from tf_smoothclir.plugins import RERANKERS
from tf_smoothclir.protocols.scorer import RowRetriever, Scorer
from tf_smoothclir.settings.model import ModelSettings
from tf_smoothclir.settings.run import RunSettings

SELECT = "MAP"
_RANKERS = {"bm25": Bm25, "ql": QueryLikelihood}
_PAIRS_AT_ONCE = 1 << 16


@dataclasses.dataclass(frozen=True, eq=False)
class MatchingCell(Cell):
    """One system on one set with one seed."""

    system: Matching  # what ranks

    @property
    def options(self) -> MatchingOptions:
        """Those that have an effect on the system, and defaults for the rest."""
        options, system = self.study.matching, self.system
        if system.costly:
            return dataclasses.replace(options, matching_epochs=MatchingOptions.matching_epochs)
        epochs = options.matching_epochs if system.learns else MatchingOptions.matching_epochs
        return MatchingOptions(options.word_vectors, options.matching_folds, epochs)

    @property
    def parts(self):
        return "yu2020", self.study.name, self.system.name, f"s{self.seed}"

    @property
    def values(self):
        settings = self.settings
        model = ModelSettings() if self.options.word_vectors == paper.PAIRS else settings.model
        read = RunSettings(settings.data, settings.text, model).values_with_effect()
        own = dataclasses.asdict(self.system), self.options.values()
        return [read, *own, settings.training.negatives]

    def compute(self):
        retrieval_set, folds = opened_set(self.settings).retrieval_set, self.options.matching_folds
        # In rotations, every query is a test query once, and there is no validation in common.
        rotations, splits = [retrieval_set], ("test", "validation")
        if folds:
            rotations = rotated_sets(retrieval_set, folds, self.settings.data.split_seed)
            places = np.full_like(retrieval_set.splits, -1)
            places[np.unique(retrieval_set.query_rows)] = SPLITS.index("test")
            retrieval_set, splits = dataclasses.replace(retrieval_set, splits=places), ("test",)
        scores, learned = zip(*(self._rotation(of_rotation, splits) for of_rotation in rotations))
        training = {
            "seconds": round(sum(of_rotation["seconds"] for of_rotation in learned), 3),
            "best_epochs": [of_rotation["best_epoch"] for of_rotation in learned],
        }
        of_pairs = {key: score for of_rotation in scores for key, score in of_rotation.items()}
        known = ScoredBy(lambda lists: np.array([of_pairs[k] for k in _keys(lists)], np.float32))
        self.measure(retrieval_set, known, training, splits=splits, history=learned)

    def _rotation(self, retrieval_set: RetrievalSet, splits) -> tuple[dict[int, float], dict]:
        """Key of a pair -> its score, for the lists of the splits, and how learning went."""
        settings, begin = self.settings, time.monotonic()
        negatives = settings.training.negatives
        tokenized_set = tokenize_set(retrieval_set, settings.text, settings.data.cache_dir)
        data = MatchingData(tokenized_set, settings, self.options)
        scorer, learned = scorer_of(
            self.system, data, self.options, negatives=negatives, seed=self.seed
        )
        scores = {}
        for split in splits:
            lists = candidate_lists(retrieval_set, split, negatives=negatives, seed=NEGATIVES_SEED)
            scores |= zip(_keys(lists), scorer.score(lists).tolist())
        facts = {"best_epoch": 0} if learned is None else dataclasses.asdict(learned)
        return scores, {**facts, "seconds": time.monotonic() - begin}


def scorer_of(
    system: Matching, data: MatchingData, options: MatchingOptions, *, negatives: int, seed: int
) -> tuple[Scorer, Learned | None]:
    """What ranks, trained if it has anything to learn, and how learning went."""
    if system.model == "random":
        new = np.random.default_rng
        return ScoredBy(lambda lists: new(seed).random(len(lists.document_rows), "f4")), None
    if system.model in _RANKERS:
        # Over whole collections, with the paper's parameters.
        translation = data.translation if system.translates else data.untranslated
        ranker = _RANKERS[system.model]()
        rows = ranker(data.collection).rows((data.queries @ translation).tocsr())
        return RowRetriever(rows, data.retrieval_set.tie_order), None
    tables = data.tables(translates=system.translates)
    if system.model in ("add", "idf"):
        vectors = [table.numpy() for table in tables.both]
        return MeanVectors(data.texts(tables), vectors, by_rarity=system.model == "idf"), None
    if system.model == "sum_of_maxima":
        sums, words = SumOfMaxima(tables), data.texts(tables)
        return ScoredBy(lambda lists: list_scores(sums, words, lists)()), None
    lengths, epochs = (paper.QUERY_WORDS, paper.DOCUMENT_WORDS), options.matching_epochs
    if system.costly:
        lengths = options.pyramid_query_words, options.pyramid_document_words
        epochs = options.pyramid_epochs
    keras.utils.set_random_seed(seed)
    network, texts = build(system, data, tables), data.texts(tables, lengths)
    retrieval_set = data.retrieval_set
    lists = candidate_lists(retrieval_set, "train", negatives=negatives, seed=seed)
    unseen = candidate_lists(retrieval_set, "validation", negatives=negatives, seed=NEGATIVES_SEED)
    scores = list_scores(network, texts, unseen)

    def validate() -> float:
        return mean_metrics(list_metrics(retrieval_set, unseen, scores()))[SELECT]

    how = LearningSettings(epochs=epochs, patience=paper.PATIENCE)
    learned = learn(network, texts, lists, validate, how, seed=seed)
    return ScoredBy(lambda lists: list_scores(network, texts, lists)()), learned


def build(system: Matching, data: MatchingData, tables: WordTables) -> InteractionNetwork:
    """An untrained network."""
    if system.model == "match_pyramid":
        return MatchPyramid(tables, system.interaction, system.eta)
    return RERANKERS[system.model].from_tables(tables, data.frequency_weights)


@dataclasses.dataclass(frozen=True)
class ScoredBy:
    """Scores candidate lists by a function; a `Scorer`."""

    score: Callable[[CandidateLists], np.ndarray]  # `[pairs]` float32


class MeanVectors:
    """BWE-Agg: the cosine of the mean word vectors of two texts; a `Scorer`.

    Litschko et al., "Unsupervised Cross-Lingual Information Retrieval using Monolingual Data Only",
    SIGIR 2018. BWE-Agg-IDF weighs the words of documents, and of documents alone, by ln(N / df).
    """

    def __init__(self, texts: InteractionTexts, vectors: Sequence[np.ndarray], *, by_rarity: bool):
        """Computes the vectors of all texts by two `[words, dim]` vectors, zeros for none."""
        both = texts.queries, texts.documents
        queries, documents = map(word_counts, both, map(len, vectors))
        if by_rarity:
            frequency = np.bincount(documents.indices, minlength=documents.shape[1])
            rarity = np.log(documents.shape[0] / np.maximum(frequency, 1)).astype(np.float32)
            documents.data = documents.data * rarity[documents.indices]
        # Means and sums have the same direction.
        self._queries, self._documents = (
            _directions(counts @ unit_rows(np.asarray(of_words, np.float32)))
            for counts, of_words in zip((queries, documents), vectors)
        )

    def score(self, lists: CandidateLists) -> np.ndarray:
        """`[pairs]` float32; 0 where a text has no known word."""
        queries, documents = lists.pair_query_rows, lists.document_rows
        scores = np.zeros(len(documents), np.float32)
        for begin in range(0, len(documents), _PAIRS_AT_ONCE):
            part = slice(begin, begin + _PAIRS_AT_ONCE)
            pairs = self._queries[queries[part]], self._documents[documents[part]]
            scores[part] = np.einsum("pd,pd->p", *pairs)
        return scores


def _directions(vectors: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)


def _keys(lists: CandidateLists) -> list[int]:
    return pair_key(lists.pair_query_rows, lists.document_rows).tolist()
