"""Choosing the formula and the weights of a fusion on validation queries.

What is best on a sample of queries is a little better than it deserves. So a fusion has to show on
all validation queries that it is better than its better half by more than a standard error, and by
no metric worse. Else the better half ranks alone.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence

import numpy as np
from absl import logging

from tf_smoothclir.hybrid.fusion import FORMULAS, Fusion
from tf_smoothclir.lexical.learning import FEEDBACK_WEIGHTS, feedback_variants
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.lexical.validation import Validation, is_better, quality
from tf_smoothclir.protocols.scorer import ScoreRows

SHARES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7)  # and either half alone
_EARLY_SHARES = (0.05, 0.1, 0.2, 0.5, 1.0)
_WORTH = 0.002  # of the measure on validation: towers that add less are not worth their time
_BEST_FUSIONS = 3  # feedback is tried with them


def learn_fusion(
    texts: LexicalTexts,
    lexical: ScoreRows,
    dense: ScoreRows,
    formulas: Sequence[str] = FORMULAS,
) -> Fusion:
    """Chooses the formula, the share of the towers, and the weight of feedback.

    On a sample of the validation queries, feedback is tried with the three fusions that are best
    without it, and with the lexical model alone. The best weight with each is then measured on all
    validation queries.
    """
    begin = time.monotonic()
    learner = _Learner(texts, lexical, dense)
    found = learner.choose(learner.best_weights(learner.best_fusions(formulas)))
    found = dataclasses.replace(found, seconds=round(time.monotonic() - begin, 3))
    logging.info("Hybrid: %s (%.1f s)", found, found.seconds)
    return found


def may_count(
    texts: LexicalTexts, lexical: ScoreRows, dense: ScoreRows, *, feedback: float
) -> bool:
    """Whether towers that are still trained add enough to a lexical model to go on.

    What they add shows before they know much: 0.007 after 16 steps on wiki-en-vi, where they have a
    share in the end.
    """
    return _Learner(texts, lexical, dense).may_gain(feedback)


class _Learner:
    """State that the steps of choosing share."""

    def __init__(self, texts: LexicalTexts, lexical: ScoreRows, dense: ScoreRows):
        self._texts = texts
        self._lexical, self._dense = lexical, dense
        self._sample = Validation(texts.retrieval_set)
        deviations = self._sample.deviation(lexical), self._sample.deviation(dense)
        self._lexical_alone = Fusion(0.0, *deviations)
        self._towers_alone = dataclasses.replace(self._lexical_alone, share=1.0)

    def may_gain(self, feedback: float) -> bool:
        """Whether any of a few shares is better than the lexical model alone."""
        alone = dataclasses.replace(self._lexical_alone, feedback=feedback)
        fusions = [dataclasses.replace(alone, share=share) for share in (0.0, *_EARLY_SHARES)]
        measured = self._sample.per_query(lambda rows: self._scores(fusions, rows))
        best = max(measured[1:], key=quality)
        gain = quality(best) - quality(measured[0])
        logging.info("What the towers add as they are: %+.4f on validation", gain)
        return gain >= _WORTH and is_better(best, measured[0])

    def best_fusions(self, formulas: Sequence[str]) -> list[Fusion]:
        """The lexical model alone, and what is best without feedback."""
        fusions = [self._lexical_alone, self._towers_alone]
        fusions += [
            dataclasses.replace(self._lexical_alone, share=share, formula=formula)
            for formula in formulas
            for share in SHARES
        ]
        qualities = self._sample.of_variants(lambda query_rows: self._fused(fusions, query_rows))
        # Stable: of equal ones the earlier, and the halves alone come first.
        best_first = np.argsort(-np.asarray(qualities), kind="stable")
        best = (fusions[place] for place in best_first[:_BEST_FUSIONS])
        return list(dict.fromkeys([self._lexical_alone, *best]))

    def best_weights(self, fusions: Sequence[Fusion]) -> list[Fusion]:
        """Fusions with the weight of feedback that is best for each."""
        feedback = self._texts.feedback(1.0)
        qualities = self._sample.of_variants(
            lambda query_rows: (
                variant
                for scores in self._fused(fusions, query_rows)
                for variant in feedback_variants(feedback, scores)
            )
        )
        # `[fusions, weights]`; the first weight is 0, so feedback must be better to be chosen.
        best = np.reshape(qualities, (len(fusions), -1)).argmax(axis=1)
        return [
            dataclasses.replace(fusion, feedback=FEEDBACK_WEIGHTS[place])
            for fusion, place in zip(fusions, best)
        ]

    def choose(self, fusions: Sequence[Fusion]) -> Fusion:
        """The best of fusions and of the halves, each as it ranks alone."""
        fusions = list(dict.fromkeys([*fusions, self._towers_alone]))
        validation = Validation(self._texts.retrieval_set, most_queries=None)
        measured = dict(
            zip(fusions, validation.per_query(lambda rows: self._scores(fusions, rows)))
        )
        # A fusion must show that it is better than the better half, feedback included.
        halves = [one for one in fusions if one.share == 0 or one == self._towers_alone]
        better_half = max(halves, key=lambda one: quality(measured[one]))
        sound = [one for one in fusions if is_better(measured[one], measured[better_half])]
        return max(sound, key=lambda one: quality(measured[one]), default=better_half)

    def _fused(self, fusions: Sequence[Fusion], query_rows: np.ndarray) -> Iterator[np.ndarray]:
        """Yields the scores of all documents by each fusion, without feedback."""
        scores = self._lexical(query_rows), self._dense(query_rows)
        points: dict[str, list[np.ndarray]] = {}  # those of a formula, computed once for all shares
        for fusion in fusions:
            if fusion.formula not in points:
                points[fusion.formula] = [fusion.points(part) for part in scores]
            yield fusion.added(*points[fusion.formula])

    def _scores(self, fusions: Sequence[Fusion], query_rows: np.ndarray) -> Iterator[np.ndarray]:
        """Yields the same with feedback."""
        for fusion, scores in zip(fusions, self._fused(fusions, query_rows)):
            yield self._texts.feedback(fusion.feedback).added_to(scores)
