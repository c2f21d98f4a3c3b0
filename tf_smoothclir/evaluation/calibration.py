"""Cut points between grades, found on validation queries after training.

The thresholds of a loss say where scores should be, not where they are. Of documents of candidate
lists, the cut points are those of the largest macro-averaged accuracy: the mean, over the grades,
of the share of the documents of a grade that are predicted right. Each grade counts alike, so the
number of sampled documents does not matter.

By the score of a hit, a grade is predicted where at least that grade is more probable than not, by
a logistic regression over the first hits of shortened queries, and where four of five of these that
score as high have it. Scores that are sums over words grow with the query, so they are divided by a
power of the number of its words. Hits after the first also need a share of its score for which both
hold of them.
"""

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np

from tf_smoothclir.evaluation.evaluate import Evaluation, Hits
from tf_smoothclir.protocols.text_search import BEYOND, CutPoints, hit_shares

PRECISION = 0.8  # of predicted grades
_BELOW_THE_FIRST = float(np.nextafter(np.float32(1), np.float32(0)))


def calibrated(validation: Evaluation, of_short: Hits | None = None) -> CutPoints:
    """Cut points for candidate lists and, where there are `of_short` queries' hits, for hits."""
    lists = best_cut_points(validation.scores_by_grade)
    if of_short is None or not len(of_short.scores):
        return CutPoints(lists, (), lists)
    scores, grades = of_short.scores[:, 0], of_short.grades[:, 0]
    cut_points = CutPoints((), (), lists, power_of_words(scores, grades > 0, of_short.words))
    scores = scores * cut_points.of_words(of_short.words)
    points = reliable_cut_points(scores, grades, len(validation.scores_by_grade))
    cut_points = dataclasses.replace(cut_points, scores=points)
    return dataclasses.replace(cut_points, shares=reliable_shares(validation.hits, cut_points))


def power_of_words(scores: np.ndarray, is_right: np.ndarray, words: np.ndarray | int) -> float:
    """The power of a query's known words that scores grow by without being right more often."""
    # From a logistic regression over the logarithms of both, of `[hits]` first hits.
    counted = scores > 0
    words = np.broadcast_to(np.maximum(words, 1), scores.shape)
    features = np.log(np.stack([scores[counted], words[counted]], axis=1, dtype=np.float64))
    if not counted.any() or not np.ptp(features, axis=0).all():
        return 0.0
    deviations = features.std(axis=0)
    slopes, _ = _logistic((features - features.mean(axis=0)) / deviations, is_right[counted])
    of_score, of_words = slopes / deviations
    return float(np.clip(-of_words / of_score, 0, 1)) if of_score > 0 else 0.0


def reliable_cut_points(
    scores: np.ndarray, grades: np.ndarray, num_grades: int
) -> tuple[float, ...]:
    """From grade 1 on, the score of `[hits]` first hits from which on the grade is reliable."""
    points = [_reliable(scores, grades >= grade) for grade in range(1, num_grades)]
    return tuple(np.maximum.accumulate(points).tolist())


def reliable_shares(hits: Hits, cut_points: CutPoints) -> tuple[float, ...]:
    """From grade 1 on, the share of the first score from which on later hits have the grade."""
    # Of those whose score has it; where too few do, only a hit that scores like the first one.
    by_score = cut_points.of_hits(hits.scores, hits.words)[:, 1:]
    shares, grades = hit_shares(hits.scores)[:, 1:], hits.grades[:, 1:]
    points = [
        _reliable(shares[by_score >= grade], grades[by_score >= grade] >= grade)
        for grade in range(1, len(cut_points.scores) + 1)
    ]
    return tuple(np.clip(np.maximum.accumulate(points), 0, _BELOW_THE_FIRST).tolist())


def _reliable(scores: np.ndarray, is_right: np.ndarray) -> float:
    """The score from which on hits are more probably right than wrong, and `PRECISION` of them."""
    return max(_probable(scores, is_right), _precise(scores, is_right)) if len(scores) else BEYOND


def _probable(scores: np.ndarray, is_right: np.ndarray) -> float:
    """The score at which a hit is as probably right as wrong."""
    mean, deviation = float(np.mean(scores)), float(np.std(scores)) or 1.0
    standard = (scores.astype(np.float64) - mean) / deviation
    (slope,), bias = _logistic(standard[:, np.newaxis], is_right)
    # Where scores say nothing, all are as probable.
    even = mean - deviation * bias / slope if slope > 0 else -np.copysign(np.inf, bias)
    # No score that was not seen decides: beyond them, a line says nothing.
    if even > np.max(scores):
        return BEYOND
    return float(np.float32(max(even, np.nextafter(np.min(scores), np.float32(-np.inf)))))


def _precise(scores: np.ndarray, is_right: np.ndarray) -> float:
    """The lowest score above which `PRECISION` of hits are right; `BEYOND` without one."""
    values, place = np.unique(scores.astype(np.float32), return_inverse=True)
    number, right = (
        np.bincount(place, of_each)[::-1].cumsum()[::-1] for of_each in (None, is_right)
    )
    reached = np.flatnonzero(right >= PRECISION * number)
    return _between(values, int(reached[0])) if len(reached) else BEYOND


def _logistic(features: np.ndarray, is_right: np.ndarray) -> tuple[np.ndarray, float]:
    """Slopes and bias of a logistic regression over `[hits, features]` of deviation 1."""
    signs = np.where(is_right, 1.0, -1.0)

    def loss(weights: np.ndarray) -> float:
        slopes, bias = weights[:-1], weights[-1]
        odds = features @ slopes + bias
        return np.logaddexp(0, -signs * odds).sum() + (slopes**2).sum() / 2

    from scipy import optimize  # here, because an export needs none of it

    found = optimize.minimize(loss, np.zeros(1 + features.shape[1])).x
    return found[:-1], float(found[-1])


def best_cut_points(scores_by_grade: Sequence[np.ndarray]) -> tuple[float, ...]:
    """The K-1 cut points, between neighbouring scores, of the highest macro-averaged accuracy."""
    # Exact: with P_g[c] the share of the documents of grade g below c, the accuracy is a constant
    # plus the sum of P_{g-1}[c_g] - P_g[c_g] over the cut points. So the best sum whose last cut
    # point is c_g adds this to the best sum of those before it that are not above c_g. Two are
    # equal where the grade between is better never predicted.
    by_grade = [np.sort(np.asarray(scores, np.float32)) for scores in scores_by_grade]
    values = np.unique(np.concatenate(by_grade))
    # Place c is above the c lowest values.
    shares = [
        np.append(0, np.searchsorted(scores, values, "right")) / max(1, len(scores))
        for scores in by_grade
    ]
    places, sums = [], np.zeros(len(values) + 1)
    for lower, upper in itertools.pairwise(shares):
        sums = np.maximum.accumulate(sums) + lower - upper
        places.append(sums)
    last, chosen = len(values), []
    for sums in reversed(places):
        last = int(np.argmax(sums[: last + 1]))
        chosen.append(last)
    return tuple(_between(values, place) for place in reversed(chosen))


def _between(values: np.ndarray, place: int) -> float:
    if place == 0:
        return float(np.nextafter(values[0], np.float32(-np.inf)))
    below = values[place - 1]
    if place == len(values):
        return float(below)
    middle = np.float32(below + (values[place] - below) / 2)
    return float(below if middle >= values[place] else middle)
