"""Re-rankers: a network, the word vectors that it reads, and how much it counts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tensorflow as tf

from tf_smoothclir._compat.keras_api import tf_variable
from tf_smoothclir.data.candidate_lists import CandidateLists
from tf_smoothclir.data.tokenized_set import ROLES, TokenizedSet
from tf_smoothclir.data.word_places import texts_with
from tf_smoothclir.interaction.inputs import InteractionTexts, WordCodes, padded_ids
from tf_smoothclir.interaction.learning import PAIRS_AT_ONCE, PairFeatures
from tf_smoothclir.interaction.networks.base import InteractionNetwork, WordTables
from tf_smoothclir.plugins import RERANKERS
from tf_smoothclir.storage.files import open_to_write, read_arrays, read_json, write_json
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.records import record_from_json

_CHOICES, _ARRAYS = "reranker.json", "reranker.npz"


@dataclasses.dataclass(frozen=True)
class RerankerChoices:
    """Settings and choices of a re-ranker, besides its arrays."""

    network: str  # its name in `RERANKERS`
    weight: float  # of its scores beside the first stage's; 0 where that alone is not worse
    query_length: int
    document_length: int
    best_epoch: int = 0  # from 1; 0 if learning made nothing better
    # Share -> mean of NDCG@5 and full MRR@10.
    validation: dict[str, float] = dataclasses.field(default_factory=dict)
    seconds: float = 0.0
    share: float = 0.0  # the one of `validation` that `weight` stands for
    related: bool = False  # whether it learned from documents of lower grades too

    @property
    def gain(self) -> float:
        """Gain over the first stage alone, on validation."""
        return self.validation[f"{self.share:g}"] - self.validation["0"]


class Reranker:
    """A network over `codes`; `word_weights`, `[query words]`, count before learning."""

    def __init__(
        self,
        choices: RerankerChoices,
        codes: WordCodes,
        word_weights: np.ndarray,
        *,
        trains_vectors: bool = False,
    ):
        self.choices, self.codes, self.word_weights = choices, codes, word_weights
        tables = WordTables(*codes.vectors(), trained=trains_vectors)
        self.network: InteractionNetwork = RERANKERS[choices.network].from_tables(
            tables, word_weights
        )

    @property
    def seconds(self) -> float:
        """Time spent on learning."""
        return self.choices.seconds

    @property
    def weight(self) -> float:
        """Weight of its scores next to those of the first stage."""
        return self.choices.weight

    def chosen(self, **changes) -> Reranker:
        """Re-ranker of the same network with other choices."""
        changed = Reranker.__new__(Reranker)
        changed.__dict__.update(self.__dict__)
        changed.choices = dataclasses.replace(self.choices, **changes)
        return changed

    def encoded(self) -> Reranker:
        """Re-ranker over int8 codes of its word vectors as they are now."""
        codes = WordCodes.of(*(table.numpy() for table in self.network.tables.both))
        encoded = Reranker(self.choices, codes, self.word_weights)
        for weight, learned in zip(
            encoded.network.trainable_weights, self.network.trainable_weights
        ):
            tf_variable(weight).assign(tf_variable(learned))
        return encoded

    def texts(self, tokenized_set: TokenizedSet) -> InteractionTexts:
        """A set as the network reads it."""
        lengths = self.choices.query_length, self.choices.document_length
        stores = map(tokenized_set.tokens, ROLES)
        return InteractionTexts(*map(padded_ids, stores, lengths))

    def scorer(self, texts: InteractionTexts) -> ListScorer:
        """The network over a set, by its weights as they are now."""
        return ListScorer(self.network.list_scorer(), texts)

    def describe(self) -> str:
        """Choices as a line for people."""
        if not self.weight:
            return f"{self.choices.network}, which is not better than the first stage alone"
        return f"{self.choices.network} with the weight {self.weight:.4g}"

    def save(self, path: Path) -> None:
        """Writes a new directory; its parent exists."""
        path.mkdir()
        weights = {
            f"weight_{place}": tf_variable(weight).numpy()
            for place, weight in enumerate(self.network.trainable_weights)
        }
        arrays = {**self.codes.arrays(), "word_weights": self.word_weights, **weights}
        with open_to_write(path / _ARRAYS) as file:
            np.savez(file, **arrays)
        write_json(path / _CHOICES, dataclasses.asdict(self.choices))

    @classmethod
    def load(cls, path: Path) -> Reranker:
        """Reads what `save` wrote."""
        try:
            choices = record_from_json(RerankerChoices, read_json(path / _CHOICES))
            arrays = read_arrays(path / _ARRAYS)
            reranker = cls(choices, WordCodes.of_arrays(arrays), arrays["word_weights"])
            for place, weight in enumerate(reranker.network.trainable_weights):
                tf_variable(weight).assign(arrays[f"weight_{place}"])
        except (ValueError, KeyError, OSError) as error:
            reason = f"this is not a re-ranker ({str(error).rstrip('.')})"
            raise input_error(path, reason, "Restore the files, or train again") from error
        return reranker


class ListScorer:
    """Scores candidate lists, one query at a time; a `Scorer`."""

    def __init__(
        self, score: Callable[[np.ndarray, np.ndarray], np.ndarray], texts: InteractionTexts
    ):
        self._score, self._texts = score, texts

    def score(self, lists: CandidateLists) -> np.ndarray:
        """`[pairs]` float32, the score of each pair of the lists."""
        scores = np.zeros(len(lists.document_rows), np.float32)
        for place, row in enumerate(lists.query_rows):
            pairs = slice(*lists.offsets[place : place + 2])
            documents = self._texts.documents[lists.document_rows[pairs]]
            if len(documents):
                scores[pairs] = self._score(self._texts.queries[row], documents)
        return scores


def list_scores(
    network: InteractionNetwork, texts: InteractionTexts, lists: CandidateLists
) -> Callable[[], np.ndarray]:
    """What scores the same lists again and again, `[pairs]` float32, by the weights as they are."""
    pairs = PairFeatures(network, texts, lists)  # features are computed once
    score = tf.function(
        network.score if network.features_once else network.call, reduce_retracing=True
    )
    begins = range(0, len(lists.document_rows), PAIRS_AT_ONCE)

    def scores() -> np.ndarray:
        parts = [score(pairs.of(slice(begin, begin + PAIRS_AT_ONCE))).numpy() for begin in begins]
        return np.concatenate([np.zeros(0, np.float32), *parts])

    return scores


def frequency_weights(tokenized_set: TokenizedSet) -> np.ndarray:
    """1 + ln(N / n) for words that n of N documents have, `[query words]` float32."""
    # Words of queries have the frequency of the same word of documents; where there is none, they
    # count like the rarest.
    query_words, document_words = (tokenized_set.vocabulary(role) for role in ROLES)
    store = tokenized_set.tokens("document")
    having = texts_with(store, np.ones(len(store), bool), len(document_words))
    of_words = dict(zip(document_words, having))
    of_queries = np.array([of_words.get(word, 0) for word in query_words])
    return (1 + np.log(max(1, len(store)) / np.maximum(of_queries, 1))).astype(np.float32)
