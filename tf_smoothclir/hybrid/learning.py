"""Choosing the weights of a fusion on validation queries.

What is best on a sample of queries is a little better than it deserves. So a fusion has to show on
all validation queries that it is better than the best one of fewer parts by more than a standard
error, and by no metric worse. Else that one ranks. The lexical model comes first, since it costs
nearly nothing: without its share, be there feedback or not, vectors rank only where that is better
in the same way.
"""

import dataclasses
import functools
import itertools
import time
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from absl import logging

from tf_smoothclir.hybrid.fusion import Fusion
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.lexical.validation import (
    FEEDBACK_WEIGHTS,
    Validation,
    best_weight,
    feedback_variants,
    is_better,
    quality,
)
from tf_smoothclir.protocols.scorer import ScoreRows

SHARES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7)  # and any part alone
_EARLY_SHARES = (0.05, 0.1, 0.2, 0.5, 1.0)
_WORTH = 0.001  # of the measure on validation: towers that add less are not worth their time
_ANY_GAIN, _FAR_BEHIND = 0.0005, 0.35  # of the measure too: see `may_count`
_BEST_FUSIONS = 3  # a further part, and feedback, are tried with them


def learn_fusion(texts: LexicalTexts, parts: Mapping[str, ScoreRows]) -> Fusion:
    """Chooses shares of the parts, "lexical", "dense" and "encoder", and of feedback."""
    # On a sample of the validation queries, a second part takes shares of each part, and a third
    # one shares of the best fusions of two. Feedback is tried with the best fusions, and with the
    # lexical model alone. The best weight with each is then measured on all validation queries.
    begin = time.monotonic()
    learner = _Learner(texts, parts)
    fusion = learner.choose(learner.best_weights(learner.best_fusions()))
    fusion = dataclasses.replace(fusion, seconds=round(time.monotonic() - begin, 3))
    logging.info("Hybrid: %s (%.1f s)", fusion, fusion.seconds)
    return fusion


def may_count(
    texts: LexicalTexts, parts: Mapping[str, ScoreRows], others: Fusion, early: bool
) -> bool:
    """Whether towers that are still trained add enough to a fusion of all others to go on."""
    # Before training (`early`), what they add says little, but how they rank alone by vectors of
    # words that occur together tells much: they are 0.10 to 0.31 behind the table on bible-en-tl,
    # bible-en-fr and bible-en-multi, where they have a share in the end, and 0.38 to 0.41 on
    # mdn-en-de, where they have none (two or three seeds, each with its own split). So only those
    # are out of the race that add nothing and are far behind.
    return _Learner(texts, parts).may_gain(others, early)


class _Learner:
    """State that the steps of choosing share."""

    def __init__(self, texts: LexicalTexts, parts: Mapping[str, ScoreRows]):
        self._texts, self._parts = texts, parts
        self._sample = Validation(texts.retrieval_set)
        deviations = {
            f"{part}_deviation": self._sample.deviation(rows) for part, rows in parts.items()
        }
        self._lexical_alone = Fusion(**{"share": 0.0, "dense_deviation": 0.0, **deviations})
        self._vectors = [part for part in self._lexical_alone.shares if part in parts][1:]
        self._vectors_alone = [self._lexical_alone.with_share(part, 1.0) for part in self._vectors]

    def may_gain(self, others: Fusion, early: bool) -> bool:
        """Whether any of a few shares of towers is better than the others without them."""
        chosen = {name: getattr(others, name) for name in ("encoder_share", "feedback")}
        without = dataclasses.replace(self._lexical_alone, **chosen)
        fusions = [without, *(without.with_share("dense", share) for share in _EARLY_SHARES)]
        alone, *shared = self._qualities(fusions)
        # Feedback, which takes most of the time, changes little of which share is best.
        compared = without, fusions[1 + int(np.argmax(shared))]
        before, after = self._sample.per_query(lambda rows: self._scores(compared, rows))
        gain = quality(after) - quality(before)
        logging.info("What the towers add as they are: %+.4f on validation", gain)
        if early:
            return gain >= _ANY_GAIN or shared[-1] >= alone - _FAR_BEHIND
        return gain >= _WORTH and is_better(after, before)

    def _qualities(self, fusions: Sequence[Fusion]) -> list[float]:
        """Measures of fusions without feedback."""
        return [*map(quality, self._sample.per_query(functools.partial(self._fused, fusions)))]

    def best_fusions(self) -> list[Fusion]:
        """The lexical model alone, and the best of two parts, and of three, without feedback."""
        chosen = [self._lexical_alone]
        bases, qualities = [self._lexical_alone, *self._vectors_alone], {}
        for _ in self._vectors:
            extended = (
                base.with_share(part, share)
                for base, part, share in itertools.product(bases, self._vectors, SHARES)
                if not base.shares[part]
            )
            fusions = dict.fromkeys([*bases, *extended])
            new = [one for one in fusions if one not in qualities]
            qualities |= zip(new, self._qualities(new))
            # Stable: of equal ones the earlier, and the parts alone come first.
            bases = sorted(qualities, key=lambda one: -qualities[one])[:_BEST_FUSIONS]
            chosen += bases
        return list(dict.fromkeys(chosen))

    def best_weights(self, fusions: Sequence[Fusion]) -> list[Fusion]:
        """Fusions with the weight of feedback that is best for each."""
        feedback = self._texts.feedback()
        measured = self._sample.per_query(
            lambda query_rows: (
                variant
                for scores in self._fused(fusions, query_rows)
                for variant in feedback_variants(feedback, scores)
            )
        )
        number = len(FEEDBACK_WEIGHTS)
        return [
            dataclasses.replace(fusion, feedback=best_weight(measured[begin : begin + number]))
            for fusion, begin in zip(fusions, range(0, len(measured), number))
        ]

    def choose(self, fusions: Sequence[Fusion]) -> Fusion:
        """The best of fusions and of the parts, each as it ranks alone."""
        fusions = list(dict.fromkeys([*fusions, *self._vectors_alone]))
        validation = Validation(self._texts.retrieval_set, most_queries=None)
        of_each = validation.per_query(lambda rows: self._scores(fusions, rows))
        measured = dict(zip(fusions, of_each))
        with_words = [one for one in fusions if one.shares["lexical"]]
        groups = [
            [one for one in with_words if len(one.parts) == number]
            for number in range(1, len(self._parts) + 1)
        ]
        groups.append([one for one in fusions if one not in with_words])
        best = None
        for group in groups:  # feedback included
            sound = [
                one for one in group if best is None or is_better(measured[one], measured[best])
            ]
            best = max(sound, key=lambda one: quality(measured[one]), default=best)
        return best

    def _fused(self, fusions: Sequence[Fusion], query_rows: np.ndarray) -> Iterator[np.ndarray]:
        """Yields the scores of all documents by each fusion, without feedback."""
        scores = {part: rows(query_rows) for part, rows in self._parts.items()}
        for fusion in fusions:
            yield fusion.added(scores)

    def _scores(self, fusions: Sequence[Fusion], query_rows: np.ndarray) -> Iterator[np.ndarray]:
        """Yields the same with feedback."""
        for fusion, scores in zip(fusions, self._fused(fusions, query_rows)):
            yield self._texts.feedback(fusion.feedback).added_to(scores)
