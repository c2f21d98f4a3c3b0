"""Batches from a tokenized set."""

from __future__ import annotations

from tf_smoothclir.data.candidate_lists import CandidateLists, candidate_lists
from tf_smoothclir.data.pipeline import PIPELINES
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.tokenized_set import TokenizedSet
from tf_smoothclir.protocols.scorer import Scorer
from tf_smoothclir.protocols.task import Batches, Epoch
from tf_smoothclir.settings.training import TrainingSettings
from tf_smoothclir.training.mining import HardNegatives


class SampledBatches(Batches):
    """Batches from the texts and judgments of a set, with sampled and mined negatives."""

    def __init__(
        self,
        tokenized_set: TokenizedSet,
        settings: TrainingSettings,
        *,
        mined: RetrievalSet | None = None,
        both_at_once: bool = False,
    ):
        self._set = tokenized_set.retrieval_set
        self._settings = settings
        self._hard_negatives = None
        if settings.hard_negatives:
            self._hard_negatives = HardNegatives(mined or self._set, settings)
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
