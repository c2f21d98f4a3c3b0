"""Figure 1 of Yu and Allan 2020: how similar words are, and which similarity is an exact match."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from tf_smoothclir.evaluation.plots import COLOURS, plt, save_png
from tf_smoothclir.papers.laboratory.tables import Table
from tf_smoothclir.papers.yu2020.matching_data import MatchingData
from tf_smoothclir.utils.printing import csv_table

_BINS = 200  # of cosines from -1 to 1: 0.01 each
_ROWS_AT_ONCE = 256
ACROSS, WITHIN = "across languages", "within one language"


@dataclasses.dataclass(frozen=True)
class Similarities:
    """The distribution of the cosines of pairs of words."""

    counts: np.ndarray  # `[bins]` int64, from -1 to 1
    mean: float  # of all pairs
    deviation: float  # standard deviation
    skew: float  # third standardised moment

    def share_from(self, eta: float) -> float:
        """The share of pairs in the bins from `eta` on."""
        first = round((eta + 1) / 2 * _BINS)
        return self.counts[first:].sum() / max(1, self.counts.sum())


def similarities(rows: np.ndarray, columns: np.ndarray) -> Similarities:
    """Counts the cosines of all pairs of two lists of words, `[words, dim]` of length 1, once."""
    counts, sums = np.zeros(_BINS, np.int64), np.zeros(3)
    for begin in range(0, len(rows), _ROWS_AT_ONCE):
        cosines = np.clip(rows[begin : begin + _ROWS_AT_ONCE] @ columns.T, -1, 1)
        # Rounding must not lift 0.2999999 into the bin of 0.3, nor the other way round.
        bins = np.minimum(((cosines + 1) * (_BINS / 2) + 1e-4).astype(np.int32), _BINS - 1)
        counts += np.bincount(bins.ravel(), minlength=_BINS)
        powers = cosines.astype(np.float64)
        sums += [powers.sum(), (powers**2).sum(), (powers**3).sum()]
    pairs = max(1, len(rows) * len(columns))
    mean, square, cube = sums / pairs
    deviation = float(np.sqrt(max(square - mean**2, 0)))
    third = cube - 3 * mean * square + 2 * mean**3
    return Similarities(counts, float(mean), deviation, float(third / max(deviation, 1e-12) ** 3))


def similarities_of(data: MatchingData) -> dict[str, Similarities]:
    """Those of content words across languages, and of translated query words (TbT-QT)."""
    tables = data.tables(translates=False)
    documents = _content(tables.documents.numpy(), data.content["document"])
    translated = data.tables(translates=True).queries.numpy()
    return {
        ACROSS: similarities(_content(tables.queries.numpy(), data.content["query"]), documents),
        WITHIN: similarities(_content(translated, data.content["query"]), documents),
    }


def _content(table: np.ndarray, content: np.ndarray) -> np.ndarray:
    return table[content & table.any(axis=1)]


def moments(kinds: dict[str, Similarities]) -> Table:
    """Mean, deviation and skew of each kind."""
    rows = tuple(
        (name, f"{of.counts.sum():,}", f"{of.mean:+.4f}", f"{of.deviation:.4f}", f"{of.skew:+.2f}")
        for name, of in kinds.items()
    )
    columns = ("pairs of words", "pairs", "mean", "standard deviation", "skew")
    return Table("Distribution of the cosines of pairs of words (c)", columns, rows)


def draw(
    path: Path, title: str, kinds: dict[str, Similarities], measured: dict[float, np.ndarray]
) -> None:
    """Draws shares of matches beside MAP by η, `[seeds]`, and the distributions."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), constrained_layout=True)
    etas = np.arange(0.05, 0.901, 0.05)
    shares = [100 * kinds[ACROSS].share_from(eta) for eta in etas]
    left.plot(etas, shares, "s--", color=COLOURS[5], label="pairs of words")
    left.set(xlabel="η", ylabel="pairs with a cosine of η or more (%)", yscale="symlog")
    left.set_yscale("symlog", linthresh=0.001)
    if measured:
        axis = left.twinx()
        axis.plot(list(measured), [of.mean() for of in measured.values()], "o-", color=COLOURS[0])
        axis.set_ylabel("MAP of MP-Exact", color=COLOURS[0])
    left.yaxis.label.set_color(COLOURS[5])
    left.grid(alpha=0.3)
    middles = np.linspace(-1, 1, _BINS + 1)[:-1] + 1 / _BINS
    for (name, of), colour, style in zip(kinds.items(), COLOURS, ("-", "--")):
        density = of.counts / max(1, of.counts.sum()) * (_BINS / 2)
        right.plot(middles, density, style, color=colour, label=name)
    right.set(xlabel="cosine of two words", ylabel="density", xlim=(-0.5, 1), yscale="log")
    right.grid(alpha=0.3)
    right.legend()
    figure.suptitle(title)
    save_png(figure, path, dpi=150)


def counts_csv(kinds: dict[str, Similarities]) -> str:
    """The counts of each kind, by the lower end of a bin."""
    rows = enumerate(zip(*(of.counts for of in kinds.values())))
    return csv_table(
        ("cosine_from", *kinds),
        ((f"{place * 2 / _BINS - 1:.2f}", *counts) for place, counts in rows),
    )
