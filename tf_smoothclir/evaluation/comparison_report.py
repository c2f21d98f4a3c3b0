"""A comparison as a table for people, and as JSON for programs."""

import dataclasses
import os
from collections.abc import Mapping, Sequence

from tf_smoothclir.evaluation import trec
from tf_smoothclir.evaluation.compare import RESAMPLES, Difference
from tf_smoothclir.evaluation.metrics import RULES
from tf_smoothclir.evaluation.trec import RunMetrics
from tf_smoothclir.storage.files import make_directory, write_json, write_text
from tf_smoothclir.utils.printing import markdown_table

HEADER = (
    *("metric", "system", "queries", "mean", "difference (95% interval)", "p", "p (Holm)"),
    "wins/ties/losses",
)


def table_rows(rows: Sequence[Difference], baseline: str) -> list[list[str]]:
    """The cells of the tables: for each metric the baseline, then the other systems."""
    cells, metric = [], None
    for row in rows:
        if row.metric != metric:
            metric = row.metric
            blank = [""] * (len(HEADER) - 4)
            cells.append([metric, baseline, f"{row.queries:,}", f"{row.baseline_mean:.4f}", *blank])
        cells.append(
            [
                metric,
                row.system,
                f"{row.queries:,}",
                f"{row.mean:.4f}",
                f"{row.difference:+.4f} ({row.low:+.4f} to {row.high:+.4f})",
                *map(_p_value, (row.randomization_p, row.holm_p)),
                f"{row.wins}/{row.ties}/{row.losses}",
            ]
        )
    return cells


def _p_value(p: float) -> str:
    return f"{p:.4f}" if p >= 0.0001 else f"{p:.0e}"


def legend(
    rows: Sequence[Difference],
    systems: Mapping[str, RunMetrics],
    *,
    baseline: str,
    best_grade: int,
    seed: int,
    samples: int,
) -> dict[str, str]:
    """Rules that the numbers of a comparison depend on."""
    others = len(systems) - 1
    judged = len(systems[baseline].query_ids)
    left_out = max(row.left_out for row in rows)
    rules = {
        "baseline": f"{baseline}; a positive difference is better than it",
        "queries": f"{judged:,} judged; a metric leaves out those without a document that is"
        f" relevant for it, here {left_out:,} at most",
        "p": "two-sided paired randomisation test over queries, every pattern of signs where there"
        f" are at most {samples:,}, else {samples:,} random ones, seed {seed}",
        "p (Holm)": f"p adjusted for the {others} comparison{'s' * (others > 1)} within a metric;"
        " nothing is adjusted over metrics",
        "interval": f"95% percentile bootstrap over queries, {RESAMPLES:,} resamples, seed {seed}",
        "gain": RULES["gain"],
        "relevance": f"{RULES['relevance']}; the highest grade here is {best_grade}",
        "ties": RULES["ties"],
        "judgments": "unjudged documents have grade 0; relevant documents that are not retrieved"
        " count in NDCG and MAP; judged queries that a run lacks score 0",
    }
    depths = sorted(system.depth for system in systems.values())
    cutoffs = {row.metric: trec.cutoff(row.metric.removeprefix("full/")) for row in rows}
    longer = [name for name, cutoff in cutoffs.items() if (cutoff or depths[-1]) > depths[0]]
    if depths[0] < depths[-1] and longer:
        rules["depth"] = (
            f"rankings have from {depths[0]:,} to {depths[-1]:,} documents, so deeper ones have an"
            f" advantage by {', '.join(longer)}"
        )
    return {**rules, **{f"run {name}": _remarks(run) for name, run in systems.items()}}


def _remarks(run: RunMetrics) -> str:
    return (
        f"lacks {run.missing_queries:,} judged queries; left out are {run.unjudged_queries:,}"
        f" queries without judgments or of other splits; {run.unjudged_documents:,} documents are"
        f" unjudged; the longest ranking has {run.depth:,}"
    )


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Systems compared with a baseline; `print` shows a table.

    Attributes:
        rows: One for each metric and system.
        baseline: Name of the baseline.
        systems: Names of all systems, the baseline too.
        rules: What the numbers depend on: name -> text.
    """

    rows: list[Difference]
    baseline: str
    systems: tuple[str, ...]
    rules: dict[str, str]

    def __str__(self) -> str:
        """The table and its legend, as Markdown."""
        return f"{markdown_table(HEADER, table_rows(self.rows, self.baseline))}\n{self.legend}"

    def _repr_markdown_(self) -> str:
        """Markdown that a notebook shows."""
        return str(self)

    @property
    def legend(self) -> str:
        """The rules, a line each."""
        return "".join(f"* {name}: {text}.\n" for name, text in self.rules.items())

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Writes comparison.md and comparison.json.

        Args:
            directory: Made if it is missing.

        Raises:
            InputError: It cannot be written to.
        """
        path = make_directory(directory, "--output_dir")
        write_text(path / "comparison.md", str(self))
        content = {
            "baseline": self.baseline,
            "systems": list(self.systems),
            "comparisons": list(map(dataclasses.asdict, self.rows)),
            "rules": self.rules,
        }
        write_json(path / "comparison.json", content)
