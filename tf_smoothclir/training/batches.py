"""Batches from a tokenized set."""

import time

import numpy as np
import tensorflow as tf
from absl import logging

from tf_smoothclir.data.candidate_lists import (
    CandidateLists,
    candidate_lists,
    is_among,
    pair_key,
    with_documents,
)
from tf_smoothclir.data.hashing import hash_ids, mix
from tf_smoothclir.data.pipeline import PIPELINES
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.tokenized_set import TokenizedSet
from tf_smoothclir.protocols.scorer import Ranking, Retriever, Scorer
from tf_smoothclir.protocols.task import Batches, Epoch
from tf_smoothclir.settings.training import TrainingSettings


class SampledBatches(Batches):
    """Batches from the texts and judgments of a set, with sampled and mined negatives."""

    def __init__(
        self,
        tokenized_set: TokenizedSet,
        settings: TrainingSettings,
        *,
        mined: RetrievalSet,
        both_at_once: bool,
    ):
        self._set = tokenized_set.retrieval_set
        self._settings = settings
        self._hard_negatives = None
        if settings.hard_negatives:
            self._hard_negatives = HardNegatives(mined, settings)
            self.variables = {"hard_negatives": self._hard_negatives.documents}
        self._pipeline = PIPELINES[settings.batching](
            tokenized_set,
            batch_size=settings.batch_size,
            seed=settings.seed,
            both_at_once=both_at_once,
        )
        self._lists: CandidateLists | None = None

    def epoch(self, number: int) -> Epoch:
        """The batches of an epoch, from 0; the seed and the mined documents decide."""
        changing = self._settings.fresh_negatives or self._hard_negatives
        if self._lists is None or changing:
            self._lists = self.lists(number)
        lists, pipeline = self._lists, self._pipeline
        return Epoch(
            steps=len(pipeline.pair_ends(lists, number)),
            pairs=len(lists.document_rows),
            batches=lambda start: pipeline.epoch(lists, number, start),
            rows=lambda step: self._rows(lists, pipeline.batch_pairs(lists, number, step)),
        )

    def lists(self, epoch: int) -> CandidateLists:
        """The candidate lists that an epoch, from 0, is trained on."""
        settings = self._settings
        own, common = settings.train_negatives, settings.negatives
        lists = candidate_lists(
            self._set,
            "train",
            negatives=common if own < 0 else own,
            seed=settings.seed,
            epoch=epoch if settings.fresh_negatives else 0,
        )
        return self._hard_negatives.added_to(lists) if self._hard_negatives else lists

    def after_epoch(self, completed: int, scorer: Scorer) -> dict:
        """Mines hard negatives, where the settings ask for them; `scorer` is then a `Retriever`."""
        mined = self._hard_negatives and self._hard_negatives.mine_after(completed, scorer)
        return {"mining": mined} if mined else {}

    def _rows(self, lists: CandidateLists, pairs) -> list[tuple[str, str, int]]:
        queries = [self._set.query_ids[row] for row in lists.pair_query_rows[pairs]]
        documents = [self._set.document_ids[row] for row in lists.document_rows[pairs]]
        return list(zip(queries, documents, lists.grades[pairs].tolist()))


# First and last rank, from 1, that are mined from: what is above the first may be relevant.
MINED_RANKS = (10, 200)
# A hard negative scores lower than the relevant document by this share of its score.
MARGIN = 0.05
_NONE = -1  # fills the rows of queries with fewer documents
_BELOW_ALL_SCORES = -1e30


class HardNegatives:
    """Mines documents of grade 0 for the training queries from the whole collection.

    A candidate is ranked within `MINED_RANKS` of the whole collection, and nobody judged it. Two
    guards keep out documents that are relevant all the same: the first ranks are left out, and so
    is a document that scores nearly as high as the query's mate, its best document of its highest
    grade. From the remaining candidates, a query gets `hard_negatives`, drawn by seed, epoch and
    the query's id.
    """

    def __init__(self, retrieval_set: RetrievalSet, settings: TrainingSettings):
        self._set = retrieval_set
        self._settings = settings
        self._judged = candidate_lists(retrieval_set, "train", negatives=0, seed=settings.seed)
        self._judged_pairs = np.sort(
            pair_key(self._judged.pair_query_rows, self._judged.document_rows)
        )
        shape = (len(self._judged.query_rows), settings.hard_negatives)
        # Variable `[training queries, hard_negatives]` int32, document rows in the order of
        # `RetrievalSet.queries_in("train")`, -1 where there are fewer. Checkpoints must hold it, so
        # that a run that continues has the same documents.
        self.documents = tf.Variable(np.full(shape, _NONE, np.int32))

    def added_to(self, lists: CandidateLists) -> CandidateLists:
        """Training lists with the mined documents added."""
        return with_documents(lists, self.documents.numpy())

    def mine_after(self, epoch: int, retriever: Retriever) -> dict[str, float] | None:
        """Mines for the next epoch, but not after the last one."""
        settings = self._settings
        if epoch == settings.epochs:
            return None
        begin = time.monotonic()
        queries = self._judged.query_rows
        scores = retriever.score(self._judged)
        limits = score_limits(self._judged, scores, MARGIN)
        ids = [self._set.query_ids[row] for row in queries]
        streams = mix(hash_ids(ids, f"hard negatives {settings.seed}") ^ mix(np.asarray(epoch)))
        mined, row, unjudged, refused = [], 0, 0, 0
        for top in retriever.rank(queries, MINED_RANKS[1]):
            part = slice(row, row := row + len(top.query_rows))
            candidates, too_close = self._candidates(top, limits[part])
            unjudged += int(candidates.sum() + too_close.sum())
            refused += int(too_close.sum())
            mined.append(
                _drawn(top.document_rows, candidates, streams[part], settings.hard_negatives)
            )
        self.documents.assign(np.concatenate(mined))
        shares = {
            "per_query": round(float((self.documents.numpy() != _NONE).sum() / len(queries)), 3),
            "refused": round(refused / max(unjudged, 1), 4),
        }
        logging.info(
            "Mining: %.2f documents per query; %.1f%% of the unjudged documents at ranks %d to %d"
            " were refused because they score too close to the relevant one (%.1f s)",
            shares["per_query"],
            100 * shares["refused"],
            *MINED_RANKS,
            time.monotonic() - begin,
        )
        return shares

    def _candidates(self, top: Ranking, limits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Marks what may be taken, and what nobody judged but scores too high."""
        keys = pair_key(top.query_rows[:, None], top.document_rows)
        possible = ~is_among(self._judged_pairs, keys)
        possible[:, : MINED_RANKS[0] - 1] = False
        below = top.scores <= limits[:, None]
        return possible & below, possible & ~below


def score_limits(judged: CandidateLists, scores: np.ndarray, margin: float) -> np.ndarray:
    """`[lists]`, the highest score that a hard negative of each query may have."""
    # Lower than any score where a query has no relevant document.
    begins = judged.offsets[:-1]
    highest = np.repeat(np.maximum.reduceat(judged.grades, begins), np.diff(judged.offsets))
    is_mate = (judged.grades == highest) & (highest > 0)
    mates = np.maximum.reduceat(np.where(is_mate, scores, _BELOW_ALL_SCORES), begins)
    return mates - margin * np.abs(mates)


def _drawn(
    documents: np.ndarray, candidates: np.ndarray, streams: np.ndarray, number: int
) -> np.ndarray:
    """Draws `number` candidates of each row; `_NONE` where there are fewer."""
    last = np.iinfo(np.uint64).max
    lots = np.where(candidates, mix(streams[:, None] ^ mix(documents)), last)
    order = np.argsort(lots, axis=1, kind="stable")[:, :number]
    drawn = np.full((len(documents), number), _NONE, np.int32)
    candidates = np.where(candidates, documents, _NONE)
    drawn[:, : order.shape[1]] = np.take_along_axis(candidates, order, axis=1)
    return drawn
