"""Where the batches of an epoch come from."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable

import tensorflow as tf

from tf_smoothclir.data.candidate_lists import CandidateLists, candidate_lists
from tf_smoothclir.data.pipeline import PIPELINES
from tf_smoothclir.data.tokenized_set import TokenizedSet
from tf_smoothclir.settings.training import TrainingSettings
from tf_smoothclir.training.mining import HardNegatives


@dataclasses.dataclass(frozen=True)
class Epoch:
    """The batches of one epoch.

    Attributes:
        steps: How many there are.
        pairs: The pairs in all of them.
        batches: First step -> dataset of `(inputs, grades)` from there on, as `TwoTower` takes
            them.
        rows: Step -> the pairs of its batch: query id, document id, grade.
    """

    steps: int
    pairs: int
    batches: Callable[[int], tf.data.Dataset]
    rows: Callable[[int], list[tuple[str, str, int]]]


class SampledBatches:
    """Batches from the texts and judgments of a tokenized set, with sampled and mined negatives."""

    def __init__(
        self,
        tokenized_set: TokenizedSet,
        settings: TrainingSettings,
        hard_negatives: HardNegatives | None = None,
        *,
        both_at_once: bool = False,
    ):
        """Samples by `settings`, and adds `hard_negatives` as they are when an epoch begins.

        `both_at_once` is of `Pipeline`.
        """
        self._set = tokenized_set.retrieval_set
        self._settings = settings
        self._hard_negatives = hard_negatives
        self._pipeline = PIPELINES[settings.batching](
            tokenized_set,
            batch_size=settings.batch_size,
            seed=settings.seed,
            both_at_once=both_at_once,
        )
        self._lists: CandidateLists | None = None

    def epoch(self, number: int) -> Epoch:
        """Returns the batches of an epoch, from 0: a function of the seed and what was mined."""
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
        """Returns the candidate lists that an epoch, from 0, is trained on."""
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

    def explaining_defects(self) -> contextlib.AbstractContextManager:
        """Does nothing: what the batches are made of was read before."""
        return contextlib.nullcontext()

    def _rows(self, lists: CandidateLists, pairs) -> list[tuple[str, str, int]]:
        queries = [self._set.query_ids[row] for row in lists.pair_query_rows[pairs]]
        documents = [self._set.document_ids[row] for row in lists.document_rows[pairs]]
        return list(zip(queries, documents, lists.grades[pairs].tolist()))
