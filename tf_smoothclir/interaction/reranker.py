"""A network over the texts of a set: it scores candidate lists."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tf_smoothclir.data.candidate_lists import CandidateLists
from tf_smoothclir.interaction.learning import PairFeatures
from tf_smoothclir.interaction.networks.base import InteractionNetwork
from tf_smoothclir.interaction.texts import InteractionTexts

_PAIRS_AT_ONCE = 4096


class NetworkScorer:
    """Scores candidate lists by a network; a `Scorer`."""

    def __init__(self, network: InteractionNetwork, texts: InteractionTexts):
        """Takes the network, whose weights may change later, and the set."""
        self._network, self._texts = network, texts
        self._scores = tf.function(network.call, reduce_retracing=True)

    def score(self, lists: CandidateLists) -> np.ndarray:
        """Returns `[pairs]` float32, the score of each pair of the lists."""
        queries, documents = lists.pair_query_rows, lists.document_rows
        order = self._texts.by_length(queries, documents)
        scores = np.zeros(len(documents), np.float32)
        for begin in range(0, len(documents), _PAIRS_AT_ONCE):
            part = order[begin : begin + _PAIRS_AT_ONCE]
            ids = self._texts.queries[queries[part]], self._texts.documents[documents[part]]
            scores[part] = self._scores(tuple(map(tf.constant, ids))).numpy()
        return scores


class ListScores:
    """The scores of the same lists, again and again: features are computed once."""

    def __init__(self, network: InteractionNetwork, texts: InteractionTexts, lists: CandidateLists):
        """Takes a network whose weights change, such as in learning."""
        self._network, self._number = network, len(lists.document_rows)
        self._pairs = PairFeatures(network, texts, lists)
        self._score = tf.function(
            network.score if network.features_once else network.call, reduce_retracing=True
        )

    def __call__(self) -> np.ndarray:
        """Returns `[pairs]` float32, by the weights as they are."""
        places = range(0, self._number, _PAIRS_AT_ONCE)
        parts = [
            self._score(self._pairs.of(slice(begin, begin + _PAIRS_AT_ONCE))).numpy()
            for begin in places
        ]
        return np.concatenate(parts) if parts else np.zeros(0, np.float32)
