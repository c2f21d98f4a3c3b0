"""The scorer of two towers: every text is encoded once, a score is an inner product."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np
import tensorflow as tf

from tf_smoothclir._compat.keras_api import optimizer_variables, tf_weights
from tf_smoothclir.data.candidate_lists import CandidateLists
from tf_smoothclir.data.pipeline import token_batches
from tf_smoothclir.data.tokenized_set import ROLES, TokenizedSet
from tf_smoothclir.losses.base import ranking_loss
from tf_smoothclir.ops.top_k import DOCUMENTS_PER_CHUNK, top_k
from tf_smoothclir.optimizers import learning_rate
from tf_smoothclir.protocols.scorer import Ranking, Retriever
from tf_smoothclir.protocols.task import LOSS, PAIRS, TERMS, Batches, Exchange, TaskVariables
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.training import TrainingSettings
from tf_smoothclir.text.subwords import text_encoder
from tf_smoothclir.text.vocabulary import UNKNOWN_ID
from tf_smoothclir.two_tower.model import TwoTower
from tf_smoothclir.two_tower.similarity import smooth_normalize
from tf_smoothclir.utils.parallel import text_batches

_TEXTS_PER_BATCH = 1024
_NUMBERS_PER_CHUNK = 1 << 22  # 16 MB of float32
_SCORES_PER_CHUNK = 1 << 25  # 128 MB of float32


@dataclasses.dataclass(frozen=True)
class DenseRetriever(Retriever):
    """Scores by inner products of vectors, and ranks the whole collection exactly."""

    queries: np.ndarray  # `[queries, dim]` float32, smooth-normalised
    documents: np.ndarray  # `[documents, dim]` float32, smooth-normalised
    tie_order: np.ndarray  # `[documents]` int64, as in `RetrievalSet.tie_order`

    def score(self, lists: CandidateLists) -> np.ndarray:
        """`[pairs]` float32, the score of each pair of the lists."""
        queries, documents = lists.pair_query_rows, lists.document_rows
        scores = np.empty(len(documents), np.float32)
        step = max(1, _NUMBERS_PER_CHUNK // self.queries.shape[1])
        for begin in range(0, len(documents), step):
            part = slice(begin, begin + step)
            np.einsum(
                "pd,pd->p",
                self.queries[queries[part]],
                self.documents[documents[part]],
                out=scores[part],
            )
        return scores

    def scores(self, query_rows: np.ndarray) -> np.ndarray:
        """The scores of all documents, `[queries, documents]` float32."""
        return self.queries[query_rows] @ self.documents.T

    def cut_to(self, dim: int, epsilon: float) -> Self:
        """Scorer by the first `dim` numbers of the towers' vectors."""
        return dataclasses.replace(
            self,
            queries=_cut(self.queries, dim, epsilon),
            documents=_cut(self.documents, dim, epsilon),
        )

    def rank(self, query_rows: np.ndarray, depth: int) -> Iterator[Ranking]:
        """Ranks the collection for each query, some queries at a time; see `Retriever.rank`."""
        # Sorted by the tie rule: among equal scores, top_k takes the lower position first.
        by_tie_order = np.argsort(self.tie_order)
        documents = tf.constant(self.documents[by_tie_order])
        step = max(1, _SCORES_PER_CHUNK // min(DOCUMENTS_PER_CHUNK, len(by_tie_order)))
        for begin in range(0, len(query_rows), step):
            rows = query_rows[begin : begin + step]
            scores, positions = top_k(self.queries[rows], documents, depth)
            yield Ranking(rows, by_tie_order[positions.numpy()], scores.numpy())


def _cut(vectors: np.ndarray, dim: int, epsilon: float) -> np.ndarray:
    """The first numbers of vectors x, smooth-normalised, given x / (‖x‖ + ε)."""
    # The norm n of what is given is ‖x‖ / (‖x‖ + ε), so that ‖x‖ + ε = ε / (1 - n).
    cut = vectors[:, :dim]
    if epsilon:
        norms = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
        cut = cut * (epsilon / (1 - norms))
    return smooth_normalize(cut.astype(np.float32), epsilon).numpy()


class SetEncoder:
    """Encodes a tokenized set again and again, such as after each epoch."""

    def __init__(self, model: TwoTower, tokenized_set: TokenizedSet):
        self._tie_order = tokenized_set.retrieval_set.tie_order
        self._batches = {
            role: token_batches(tokenized_set, role, _TEXTS_PER_BATCH) for role in ROLES
        }
        self._vectors = {
            role: tf.function(
                lambda tokens, role=role: model.vectors(role, tokens),
                autograph=False,
                input_signature=[batches.element_spec],
            )
            for role, batches in self._batches.items()
        }

    def __call__(self, documents: np.ndarray | None = None) -> DenseRetriever:
        """Encodes queries and, if they are not known, documents by the weights as they are."""
        if documents is None:
            documents = self._encode("document")
        return DenseRetriever(self._encode("query"), documents, self._tie_order)

    def _encode(self, role: str) -> np.ndarray:
        vectors = self._vectors[role]
        return np.concatenate([vectors(tokens).numpy() for tokens in self._batches[role]])


def vectors_of_words(
    model: TwoTower, settings: RunSettings, tokenized_set: TokenizedSet
) -> tuple[np.ndarray, np.ndarray]:
    """`[vocabulary, dim]` of both roles: each word as a text, zeros for padding and unknown."""
    of_roles = []
    for role in ROLES:
        encoder = text_encoder(tokenized_set.vocabulary_dir / f"{role}.txt", settings.text, role)
        batches = map(tf.constant, text_batches(tokenized_set.vocabulary(role)))
        vectors = [model.vectors(role, encoder(batch)).numpy() for batch in batches]
        of_roles.append(np.concatenate(vectors))
        of_roles[-1][: UNKNOWN_ID + 1] = 0
    return of_roles[0], of_roles[1]


def thresholds_of(settings: RunSettings, model: TwoTower) -> Sequence[float]:
    """The thresholds of the loss, which may have learned them, or else those of the settings."""
    of_loss = ranking_loss(model.loss).thresholds
    return settings.model.thresholds if of_loss is None else of_loss


_GRADIENT_NORM = "gradient_norm"


class TwoTowerTask:
    """The `Task` of a `TwoTower`."""

    losses = (LOSS,)
    checked = (_GRADIENT_NORM,)
    remedy = "Lower --learning_rate, or use --epsilon above 0 and --clip_norm"

    def __init__(
        self,
        model: TwoTower,
        settings: TrainingSettings,
        batches: Batches,
        tokenized_set: TokenizedSet | None = None,
    ):
        self.model = model
        self.batches = batches
        self._settings = settings
        self.variables = TaskVariables(
            weights=tf_weights(model),
            optimizer=optimizer_variables(model.optimizer),
            more=dict(batches.variables),
        )
        self._encoder = SetEncoder(model, tokenized_set) if tokenized_set else None

    def train_step(self, batch, exchange: Exchange | None = None) -> dict[str, tf.Tensor]:
        """Runs the model's own training step."""
        logs = self.model.logged_step(batch, exchange)
        return {
            LOSS: logs["batch_loss"],
            _GRADIENT_NORM: logs["gradient_norm"],
            PAIRS: logs["pairs"],
            TERMS: logs["terms"],
        }

    def begin_epoch(self, epoch: int) -> None:
        """Sets the learning rate of an epoch, from 0."""
        self.model.optimizer.learning_rate = learning_rate(self._settings, epoch)

    def scorer(self) -> DenseRetriever:
        """Encodes the whole set with the present weights."""
        return self._encoder()
