"""The page of a set: one table of all systems, the tests, how everything was made."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.rivals.measured import Measured
from tf_smoothclir.evaluation.compare import Difference, bootstrap_interval, compare, read_systems
from tf_smoothclir.evaluation.metrics import mean_metrics
from tf_smoothclir.utils.printing import markdown_table

FULL_MRR = "full/MRR@10"
METRICS = ("NDCG@5", "P_mr@1", "MAP", FULL_MRR)
_SEED = 13  # of intervals and tests, as in the evaluation of a run
_SIGNIFICANT = 0.05


@dataclasses.dataclass(frozen=True)
class Comparison:
    """All systems on the test split of a set."""

    systems: Mapping[str, Measured]  # name -> what was measured, in the order of the table
    metrics: dict[str, dict[str, float]]  # name -> metric -> mean
    # Name -> metric -> (low, high), 95% bootstrap interval.
    intervals: dict[str, dict[str, tuple[float, float]]]
    queries: int  # number of test queries
    best: str | None  # name of our run that is best on validation; None without a run of ours
    differences: list[Difference]  # of every other system from it

    def content(self) -> dict:
        """All figures, for JSON."""
        return {
            "queries": self.queries,
            "best": self.best,
            "systems": {
                name: {
                    **system.figures(),
                    "metrics": self.metrics[name],
                    "intervals": self.intervals[name],
                }
                for name, system in self.systems.items()
            },
            "differences": [dataclasses.asdict(one) for one in self.differences],
        }


def compared(systems: Mapping[str, Measured]) -> Comparison:
    """Reads the TREC files of all systems, and tests their differences from our best run."""
    folders = {name: Path(system.evaluation) for name, system in systems.items()}
    found, full = (
        read_systems({n: (f / f"{a}run.trec", f / f"{a}qrels.trec") for n, f in folders.items()})[0]
        for a in ("", "full.")
    )
    for name, run in found.items():
        run.per_query[FULL_MRR] = full[name].per_query["MRR@10"]
    per_query = {name: {m: run.per_query[m] for m in METRICS} for name, run in found.items()}
    ours = [name for name, system in systems.items() if system.ours]
    best = max(ours, key=lambda name: systems[name].quality, default=None)
    tested = best is not None and len(systems) > 1
    return Comparison(
        systems,
        {name: mean_metrics(values) for name, values in per_query.items()},
        {
            name: {m: bootstrap_interval(v, seed=_SEED) for m, v in values.items()}
            for name, values in per_query.items()
        },
        queries=len(next(iter(found.values())).query_ids),
        best=best,
        differences=compare(found, baseline=best, metrics=METRICS) if tested else [],
    )


def page(
    comparison: Comparison,
    *,
    title: str,
    command: str,
    machine: str,
    recipes: Mapping[str, str],
    left_out: Mapping[str, str],
) -> str:
    """The page as Markdown."""
    parts = [
        f"# {title}: this package and its rivals",
        f"`{command}`",
        f"Test split, {comparison.queries:,} queries, 95% bootstrap intervals. All systems learned"
        " from the same training queries, the rivals from their documents of the highest grade; all"
        " choose on the same validation queries, and rank the same candidate lists and, for"
        " full/MRR@10, the whole collection.",
        _quality_table(comparison),
    ]
    if comparison.differences:
        parts.append(
            f"† differs from {comparison.best}, which is our best run on validation, with p < 0.05:"
            " paired randomisation test over queries, Holm's correction over the systems of a"
            " metric."
        )
    parts += ["## What it costs", _cost_table(comparison.systems), _ABOUT_COSTS]
    if comparison.differences:
        parts += [f"## Differences from {comparison.best}", _difference_table(comparison)]
    parts += ["## How", "\n".join(f"* {title}: {text}." for title, text in recipes.items())]
    if choices := _choices(comparison):
        parts += ["What validation chose, by the mean of NDCG@5 and full MRR@10:", choices]
    if left_out:
        parts += ["## Not run", "\n".join(f"* {name}: {why}" for name, why in left_out.items())]
    versions: dict[str, str] = {}
    for system in comparison.systems.values():
        versions |= system.packages
    listed = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    parts += ["## Where", f"{machine}. {listed}."]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


_ABOUT_COSTS = (
    "Times come from a shared machine, whose load is in the last column: trust ratios, and large"
    " ones only. learned: seconds of learning and indexing, of the chosen variant; tuned: of all"
    " variants with their validation; runs of ours choose while they learn. CPU: of the whole"
    " process, on all cores, with imports and all evaluation; the fairer figure on such a machine."
    " A query goes alone to the whole collection, for its ten best documents, by the search of the"
    " package itself, on one core; queries of the rivals are tokenised before, those of ours are"
    " not. documents/s: encoded by one core; for runs of ours, read and indexed by words and"
    " vectors. MB: peak of the process that learned, with TensorFlow in all of them, because it"
    " evaluates."
)


def _quality_table(comparison: Comparison) -> str:
    significant = {
        (one.system, one.metric) for one in comparison.differences if one.holm_p < _SIGNIFICANT
    }
    rows = []
    for name in comparison.systems:
        cells = []
        for metric in METRICS:
            low, high = comparison.intervals[name][metric]
            mark = " †" if (name, metric) in significant else ""
            cells.append(f"{comparison.metrics[name][metric]:.3f}{mark} ({low:.3f} to {high:.3f})")
        rows.append([f"**{name}**" if comparison.systems[name].ours else name, *cells])
    return markdown_table(["", *METRICS], rows)


def _cost_table(systems: Mapping[str, Measured]) -> str:
    rows = []
    for name, system in systems.items():
        rows.append(
            [
                name,
                f"{system.seconds:,.1f}",
                f"{system.tuned_seconds:,.0f}" if system.tried else "",
                f"{system.cpu_seconds:,.0f}" if system.cpu_seconds else "",
                f"{system.latency.median:.2f}",
                f"{system.latency.p99:.2f}",
                f"{system.texts_per_second:,.0f}" if system.texts_per_second else "",
                f"{system.megabytes:,.0f}",
                f"{system.load:.1f}",
            ]
        )
    times = ["learned, s", "tuned, s", "CPU, s", "query, median ms", "p99 ms"]
    header = ["", *times, "documents/s", "MB", "load"]
    return markdown_table(header, rows)


def _difference_table(comparison: Comparison) -> str:
    rows = [
        [
            one.metric,
            one.system,
            f"{one.difference:+.4f} ({one.low:+.4f} to {one.high:+.4f})",
            f"{one.holm_p:.2g}",
            f"{one.wins:,} / {one.ties:,} / {one.losses:,}",
        ]
        for one in comparison.differences
    ]
    header = ["metric", "system", "difference (95% interval)", "p (Holm)", "better / equal / worse"]
    return markdown_table(header, rows)


def _choices(comparison: Comparison) -> str:
    rows: Sequence[Sequence[str]] = [
        [name, system.setting, ", ".join(f"{s}: {q:.3f}" for s, q in system.tried.items())]
        for name, system in comparison.systems.items()
        if len(system.tried) > 1
    ]
    return markdown_table(["", "chosen", "tried"], rows) if rows else ""
