"""Making the systems of Yu and Allan 2020 over a set: what needs no training, and networks."""

from __future__ import annotations

import dataclasses

import numpy as np
from tensorflow import keras

from tf_smoothclir.data.candidate_lists import CandidateLists, candidate_lists
from tf_smoothclir.evaluation.evaluate import NEGATIVES_SEED
from tf_smoothclir.evaluation.metrics import list_metrics, mean_metrics
from tf_smoothclir.interaction.inputs import InteractionTexts
from tf_smoothclir.interaction.learning import Learned, LearningSettings, learn
from tf_smoothclir.interaction.networks.base import InteractionNetwork, WordTables
from tf_smoothclir.interaction.networks.late_interaction import LateInteraction
from tf_smoothclir.interaction.reranker import ListScores
from tf_smoothclir.papers.laboratory.translated import Bm25, QueryLikelihood
from tf_smoothclir.papers.yu2020.matching_data import MatchingData
from tf_smoothclir.papers.yu2020.mean_vectors import MeanVectors
from tf_smoothclir.papers.yu2020.networks.cosines import SumOfMaxima
from tf_smoothclir.papers.yu2020.networks.drmm import Drmm
from tf_smoothclir.papers.yu2020.networks.knrm import Knrm
from tf_smoothclir.papers.yu2020.networks.match_pyramid import MatchPyramid
from tf_smoothclir.papers.yu2020.options import (
    DOCUMENT_WORDS,
    PATIENCE,
    QUERY_WORDS,
    Matching,
    MatchingOptions,
)
from tf_smoothclir.protocols.scorer import RowRetriever, Scorer

SELECT = "MAP"
_RANKERS = {"bm25": Bm25, "ql": QueryLikelihood}


class RandomOrder:
    """Scores drawn from a seed; a `Scorer`."""

    def __init__(self, seed: int):
        self._seed = seed

    def score(self, lists: CandidateLists) -> np.ndarray:
        """`[pairs]` float32 in [0, 1)."""
        return np.random.default_rng(self._seed).random(len(lists.document_rows), np.float32)


@dataclasses.dataclass(frozen=True)
class NetworkScorer:
    """Scores candidate lists by a network; a `Scorer`."""

    network: InteractionNetwork
    texts: InteractionTexts

    def score(self, lists: CandidateLists) -> np.ndarray:
        """`[pairs]` float32, the score of each pair of the lists."""
        return ListScores(self.network, self.texts, lists)()


def scorer_of(
    system: Matching, data: MatchingData, options: MatchingOptions, *, negatives: int, seed: int
) -> tuple[Scorer, Learned | None]:
    """What ranks, trained if it has anything to learn, and how learning went."""
    if system.model == "random":
        return RandomOrder(seed), None
    if system.model in _RANKERS:
        # Over whole collections, with the paper's parameters.
        translation = data.translation if system.translates else data.untranslated
        ranker = _RANKERS[system.model]()
        rows = ranker(data.collection).rows((data.queries @ translation).tocsr())
        return RowRetriever(rows, data.retrieval_set.tie_order), None
    tables = data.tables(translates=system.translates)
    if system.model in ("add", "idf"):
        vectors = tables.queries.numpy(), tables.documents.numpy()
        by_rarity = system.model == "idf"
        return MeanVectors(data.texts(tables), *vectors, by_rarity=by_rarity), None
    if system.model == "sum_of_maxima":
        return NetworkScorer(SumOfMaxima(tables), data.texts(tables)), None
    return _learned(system, data, tables, options, negatives, seed)


def _learned(
    system: Matching,
    data: MatchingData,
    tables: WordTables,
    options: MatchingOptions,
    negatives: int,
    seed: int,
) -> tuple[Scorer, Learned]:
    lengths = QUERY_WORDS, DOCUMENT_WORDS
    if system.costly:
        lengths = options.pyramid_query_words, options.pyramid_document_words
    keras.utils.set_random_seed(seed)
    network, texts = build(system, data, tables), data.texts(tables, *lengths)
    lists = candidate_lists(data.retrieval_set, "train", negatives=negatives, seed=seed)
    unseen = candidate_lists(
        data.retrieval_set, "validation", negatives=negatives, seed=NEGATIVES_SEED
    )
    scores = ListScores(network, texts, unseen)

    def validate() -> float:
        return mean_metrics(list_metrics(data.retrieval_set, unseen, scores()))[SELECT]

    epochs = options.pyramid_epochs if system.costly else options.matching_epochs
    how = LearningSettings(epochs=epochs, patience=PATIENCE)
    learned = learn(network, texts, lists, validate, how, seed=seed)
    return NetworkScorer(network, texts), learned


def build(system: Matching, data: MatchingData, tables: WordTables) -> InteractionNetwork:
    """An untrained network."""
    if system.model == "late_interaction":
        return LateInteraction(tables, data.frequency_weights)
    if system.model == "match_pyramid":
        return MatchPyramid(tables, system.interaction, system.eta)
    return {"drmm": Drmm, "knrm": Knrm}[system.model](tables)
