"""Comparing systems query by query: differences from a baseline, tests, and intervals.

The paired functions take the scores of two systems on the same queries, `[queries]` each. They
leave out queries whose metric is undefined (NaN in both).
"""

import dataclasses
import itertools
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from absl import logging

from tf_smoothclir.evaluation import trec
from tf_smoothclir.evaluation.metrics import mean_metrics
from tf_smoothclir.evaluation.trec import RunMetrics
from tf_smoothclir.settings.training import METRICS
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.progress import progress_bar

# Metrics are computed in float32: smaller differences come from rounding.
_EQUAL_WITHIN = 1e-6
_MOST = 0.9  # of the judged queries; a run that answers fewer is named in a warning
SAMPLES = 100_000
RESAMPLES = 10_000
FEW_RESAMPLES = 1000  # of a report, which has an interval for each metric
_ROUNDING = 1e-6  # scores come from float32 metrics; sums that differ by less are equal
_SAMPLES_PER_BLOCK = 512
_VALUES_PER_BATCH = 1 << 22


@dataclasses.dataclass(frozen=True)
class Difference:
    """One system against the baseline, by one metric.

    Attributes:
        metric: Name of the metric.
        system: Name of the system.
        queries: Number of queries that have the metric.
        left_out: Number of queries that do not have it, because no document is relevant.
        mean: Mean of the system over the queries.
        baseline_mean: Mean of the baseline.
        difference: Mean of the system minus that of the baseline.
        low: Lower end of the 95% bootstrap interval of the difference.
        high: Upper end of that interval.
        randomization_p: p of the paired randomisation test.
        holm_p: `randomization_p`, adjusted for all systems of the metric.
        wins: Number of queries where the system is better.
        ties: Number of queries where both are equal.
        losses: Number of queries where the baseline is better.
    """

    metric: str
    system: str
    queries: int
    left_out: int
    mean: float
    baseline_mean: float
    difference: float
    low: float
    high: float
    randomization_p: float
    holm_p: float
    wins: int
    ties: int
    losses: int


def compare(
    systems: Mapping[str, RunMetrics],
    *,
    baseline: str = "",
    metrics: Sequence[str] = METRICS,
    seed: int = 13,
    samples: int = SAMPLES,
) -> list[Difference]:
    """Compares each system with the baseline, by each metric."""
    baseline = checked_baseline(list(systems), baseline)
    _check_same_queries(systems, baseline)
    comparisons, metrics = [], list(dict.fromkeys(metrics))
    others = [name for name in systems if name != baseline]
    with progress_bar(len(metrics) * len(others), "Test differences", "tests") as bar:
        for metric in metrics:
            of_metric = []
            for name in others:
                of_metric.append(
                    _difference(metric, name, systems[name], systems[baseline], seed, samples)
                )
                bar.update()
            adjusted = holm([difference.randomization_p for difference in of_metric])
            comparisons += [
                dataclasses.replace(difference, holm_p=float(p))
                for difference, p in zip(of_metric, adjusted)
            ]
    return comparisons


def checked_baseline(names: Sequence[str], baseline: str = "") -> str:
    """The name of the baseline: the first of `names` if `baseline` is empty."""
    if len(names) < 2:
        remedy = "Give the run directories of smoothclir-train, or TREC run files and --qrels"
        raise input_error("RUN RUN ...", f"{len(names)} given, but a comparison needs two", remedy)
    if baseline and baseline not in names:
        reason = "no run has this name"
        raise input_error(f"--baseline={baseline}", reason, f"Give one of: {', '.join(names)}")
    return baseline or names[0]


def _check_same_queries(systems: Mapping[str, RunMetrics], baseline: str) -> None:
    expected = systems[baseline].query_ids
    for name, system in systems.items():
        if system.query_ids != expected:
            different = sorted(set(system.query_ids).symmetric_difference(expected))
            reason = (
                f"it is evaluated on other queries than {baseline} ({len(different)} differ, such"
                f" as {different[:3]})"
            )
            raise input_error(name, reason, "Evaluate both on the same split of the same set")


def _difference(
    metric: str, name: str, system: RunMetrics, baseline: RunMetrics, seed: int, samples: int
) -> Difference:
    ours, theirs = system.per_query[metric], baseline.per_query[metric]
    ours = np.where(np.abs(ours - theirs) <= _EQUAL_WITHIN, theirs, ours)
    by_query = differences(ours, theirs)
    mean, baseline_mean = (mean_metrics({metric: v})[metric] for v in (ours, theirs))
    low, high = bootstrap_interval(by_query, seed=seed, samples=RESAMPLES)
    p = randomization_test(ours, theirs, seed=seed, samples=samples)
    return Difference(
        metric,
        name,
        queries=len(by_query),
        left_out=len(ours) - len(by_query),
        mean=mean,
        baseline_mean=baseline_mean,
        difference=mean - baseline_mean,
        low=low,
        high=high,
        randomization_p=p,
        holm_p=p,
        wins=int((by_query > 0).sum()),
        ties=int((by_query == 0).sum()),
        losses=int((by_query < 0).sum()),
    )


def read_systems(
    files: Mapping[str, tuple[Path, Path]],
    measures: Sequence[str] = (),
    shared: Path | None = None,
) -> tuple[dict[str, RunMetrics], int]:
    """Reads runs, and measures them by the judgments that they share, by further measures too."""
    # By the `shared` qrels, if there are any, on the queries that the others judge.
    systems, qrels = {}, _judgments([path for _, path in files.values()], shared)
    with progress_bar(len(files), "Read rankings", "runs") as bar:
        for name, (path, of_run) in files.items():
            system = systems[name] = trec.run_metrics(trec.read_run(path), qrels, measures)
            answered = len(qrels) - system.missing_queries
            if not answered:
                reason = f"it answers no query of {of_run}"
                raise input_error(path, reason, "Give the qrels of its queries")
            if answered < _MOST * len(qrels):
                logging.warning(
                    f"{path}: it answers {answered} of the {len(qrels)} judged queries; the other"
                    f" {system.missing_queries} score 0."
                )
            bar.update()
    return systems, trec.highest_grade(qrels)


def _judgments(paths: Sequence[Path], shared: Path | None) -> trec.Qrels:
    """What files of qrels say alike or, of the queries that they judge, what `shared` says."""
    given = None if shared is None else trec.read_qrels(shared)
    own: dict[Path, trec.Qrels] = {}
    for path in dict.fromkeys(paths):
        if path != shared:
            own[path] = trec.read_qrels(path)
            if given is not None:  # then their queries alone count
                own[path] = {query: {} for query in own[path]}
            _check_same_judgments(own, path)
    if given is None or not own:
        return given or next(iter(own.values()))
    (first, queries), *_ = own.items()
    kept = {query: given[query] for query in queries if query in given}
    if not any(grade > 0 for judged in kept.values() for grade in judged.values()):
        reason = f"it has no relevant document for any query of {first}"
        raise input_error(shared, reason, "Give qrels with the ids of the set")
    if left_out := sorted(queries.keys() - kept.keys()):
        logging.warning(
            f"{shared}: it judges {len(kept)} of the {len(queries)} queries of {first}; the others,"
            f" such as {left_out[:3]}, are left out."
        )
    return kept


def _check_same_judgments(read: Mapping[Path, trec.Qrels], path: Path) -> None:
    first = next(iter(read))
    ours, theirs = read[path], read[first]
    different = sorted(
        query for query in ours.keys() | theirs.keys() if ours.get(query) != theirs.get(query)
    )
    if different:
        raise input_error(
            path,
            f"its judgments differ from those of {first} for {len(different)} queries such as"
            f" {different[:3]}",
            "Compare runs on the same split of the same set, with the same sampled documents;"
            " --qrels of run files that rank these is RUN/evaluation/<split>/qrels.trec",
        )


def system_names(paths: Sequence[str | os.PathLike]) -> list[str]:
    """A name for each path: its last part, with as many parents as make it unique."""
    parts_of_each = [Path(os.path.abspath(path)).parts for path in paths]
    for path, parts in zip(paths, parts_of_each):
        if parts_of_each.count(parts) > 1:
            raise input_error(path, "it is given more than once", "Give each run once")
    return [str(Path(*_unique_end(parts, parts_of_each))) for parts in parts_of_each]


def _unique_end(parts: tuple[str, ...], everyone: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    ends = (parts[-length:] for length in itertools.count(1))
    return next(end for end in ends if sum(p[-len(end) :] == end for p in everyone) == 1)


def differences(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A - b over the queries that have a score, `[scored queries]` float64."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"Scores must be [queries] in both, but are {a.shape} and {b.shape}.")
    if np.isinf(a).any() or np.isinf(b).any():
        raise ValueError("Scores must be finite or NaN, but some are infinite.")
    undefined = np.isnan(a)
    if (undefined != np.isnan(b)).any():
        query = int(np.flatnonzero(undefined != np.isnan(b))[0])
        raise ValueError(f"Query {query} has a score in one system and NaN in the other.")
    return (a - b)[~undefined]


def randomization_test(a: np.ndarray, b: np.ndarray, *, seed: int, samples: int = SAMPLES) -> float:
    """P of a two-sided paired test by random signs (Fisher 1935; Smucker et al. 2007)."""
    # Were the systems interchangeable, the difference of each query might as well have the other
    # sign. The statistic is the absolute mean difference. With at most `samples` sign patterns, the
    # test is exact.
    # scipy's permutation_test does the same; for 100,000 samples of 5,000 queries it takes 49 s,
    # its monte_carlo_test 8 s, and this 1 s.
    if samples < 1:
        raise ValueError(f"samples must be at least 1, but is {samples}.")
    values = differences(a, b)
    values = values[values != 0]
    least_extreme = abs(values.sum()) - _ROUNDING * np.abs(values).sum()
    if len(values) <= math.log2(samples):
        sums = np.array([0.0])
        for value in values:
            sums = np.concatenate([sums + value, sums - value])
        return float(np.mean(np.abs(sums) >= least_extreme))
    generator = np.random.default_rng(seed)
    count = 0
    for begin in range(0, samples, _SAMPLES_PER_BLOCK):
        rows = min(_SAMPLES_PER_BLOCK, samples - begin)
        # One bit of the generator for each sign.
        packed = generator.integers(256, size=(rows, -(-len(values) // 8)), dtype=np.uint8)
        kept = np.unpackbits(packed, axis=1, count=len(values)).astype(np.float64)
        sums = 2 * (kept @ values) - values.sum()
        count += int((np.abs(sums) >= least_extreme).sum())
    return (count + 1) / (samples + 1)


def bootstrap_interval(
    values: np.ndarray, *, seed: int, samples: int = FEW_RESAMPLES
) -> tuple[float, float]:
    """The 95% percentile bootstrap interval of the mean of `[queries]` (Efron 1979)."""
    values = values[np.isfinite(values)]
    if not len(values):
        return 0.0, 0.0
    generator, means = np.random.default_rng(seed), []
    step = math.ceil(_VALUES_PER_BATCH / len(values))
    for begin in range(0, samples, step):
        shape = min(step, samples - begin), len(values)
        means.append(values[generator.integers(0, len(values), shape)].mean(axis=1))
    low, high = np.percentile(np.concatenate(means), [2.5, 97.5])
    return float(low), float(high)


def holm(p_values: Sequence[float]) -> np.ndarray:
    """Adjusts the p-values of a family of tests (Holm 1979), `[tests]`; scipy does not."""
    p_values = np.asarray(p_values, np.float64)
    if not ((p_values >= 0) & (p_values <= 1)).all():
        raise ValueError(f"p-values must be in [0, 1], but are {p_values.tolist()}.")
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(1, np.maximum.accumulate(factors * p_values[order]))
    return adjusted
