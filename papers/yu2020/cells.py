"""Cells of Yu and Allan 2020: one system on one set with one seed, over all of its rotations."""

from __future__ import annotations

import dataclasses
import time

import numpy as np

from tf_smoothclir.data.candidate_lists import CandidateLists, candidate_lists, pair_key
from tf_smoothclir.data.folds import rotated_sets
from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.evaluation.evaluate import NEGATIVES_SEED
from tf_smoothclir.papers.laboratory.cells import Cell, opened_set
from tf_smoothclir.papers.yu2020.matching_data import MatchingData
from tf_smoothclir.papers.yu2020.options import PAIRS, Matching, MatchingOptions
from tf_smoothclir.papers.yu2020.ranking import scorer_of
from tf_smoothclir.settings.model import ModelSettings
from tf_smoothclir.settings.run import RunSettings


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
        model = ModelSettings() if self.options.word_vectors == PAIRS else settings.model
        read = RunSettings(settings.data, settings.text, model).values_with_effect()
        own = dataclasses.asdict(self.system), self.options.values()
        return [read, *own, settings.training.negatives]

    def compute(self):
        retrieval_set, folds = opened_set(self.settings).retrieval_set, self.options.matching_folds
        # In rotations, every query is a test query once, and there is no validation in common.
        rotations, splits = [retrieval_set], ("test", "validation")
        if folds:
            rotations = rotated_sets(retrieval_set, folds, self.settings.data.split_seed)
            retrieval_set, splits = _all_for_testing(retrieval_set), ("test",)
        scores, learned = zip(*(self._rotation(of_rotation, splits) for of_rotation in rotations))
        training = {
            "seconds": round(sum(of_rotation["seconds"] for of_rotation in learned), 3),
            "best_epochs": [of_rotation["best_epoch"] for of_rotation in learned],
        }
        known = KnownScores(dict(item for of in scores for item in of.items()))
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


class KnownScores:
    """Scores of pairs that were computed before; a `Scorer`."""

    def __init__(self, scores: dict[int, float]):
        self._scores = scores

    def score(self, lists: CandidateLists) -> np.ndarray:
        """`[pairs]` float32; raises `KeyError` for a pair without a score."""
        return np.array([self._scores[key] for key in _keys(lists)], np.float32)


def _keys(lists: CandidateLists) -> list[int]:
    return pair_key(lists.pair_query_rows, lists.document_rows).tolist()


def _all_for_testing(retrieval_set: RetrievalSet) -> RetrievalSet:
    splits = np.full_like(retrieval_set.splits, -1)
    splits[np.unique(retrieval_set.query_rows)] = SPLITS.index("test")
    return dataclasses.replace(retrieval_set, splits=splits)
