"""What Yu and Allan 2020 conclude from Table 3, tested on another set."""

from __future__ import annotations

from collections.abc import Mapping

from tf_smoothclir.evaluation.compare import Difference, compare
from tf_smoothclir.evaluation.trec import RunMetrics
from tf_smoothclir.papers.laboratory.tables import Table

METRIC = "MAP"
SAMPLES = 10_000
ALPHA = 0.05
_UNSUPERVISED = ("BWE-Agg-Add", "BWE-Agg-IDF", "TbT-QT-BM25", "TbT-QT-QL")
_NEURAL = ("MP", "DRMM", "KNRM")
# What is said, the row that should be better, and the other one.
_PAIRS = (
    ("MP: cosine better than translated queries", "MP-Cosine", "MP-TbT-QT"),
    ("DRMM: cosine better than translated queries", "DRMM-Cosine", "DRMM-TbT-QT"),
    ("KNRM: cosine better than translated queries", "KNRM-Cosine", "KNRM-TbT-QT"),
    ("MP: cosine better than Gaussian", "MP-Cosine", "MP-Gaussian"),
    ("MP: cosine better than exact", "MP-Cosine", "MP-Exact"),
    ("MP: hybrid better than exact", "MP-Hybrid", "MP-Exact"),
    ("MP: cosine better than hybrid (3 of 4 pairs)", "MP-Cosine", "MP-Hybrid"),
    ("DRMM better than KNRM", "DRMM-Cosine", "KNRM-Cosine"),
    ("MP on a par with KNRM or better (2 of 4 pairs)", "MP-Cosine", "KNRM-Cosine"),
    ("TbT-QT better than BWE-Agg (but for Finnish)", "TbT-QT-QL", "BWE-Agg-IDF"),
    ("IDF helps BWE-Agg (not claimed, 4 of 4 pairs)", "BWE-Agg-IDF", "BWE-Agg-Add"),
    ("QL better than BM25 (not claimed, 4 of 4 pairs)", "TbT-QT-QL", "TbT-QT-BM25"),
    (
        "not in the paper: DRMM better than the untrained sum of maxima",
        "DRMM-Cosine",
        "Sum of maxima, untrained (ours)",
    ),
)


def claims_table(systems: Mapping[str, RunMetrics], means: Mapping[str, float], seed: int) -> Table:
    """Each claim with the difference in MAP, its interval and whether it holds."""
    pairs = [*_extremes(means), *_PAIRS]
    rows = []
    for text, better, other in pairs:
        if better in systems and other in systems:
            found = _difference(systems, better, other, seed)
            interval = f"{found.low:+.3f} to {found.high:+.3f}"
            names = f"{better} - {other}"
            rows.append((text, names, f"{found.difference:+.3f}", interval, _verdict(found)))
    columns = ("claim", "rows", "difference in MAP", "95% interval", "here")
    return Table("Claims of the paper", columns, tuple(rows))


def _extremes(means: Mapping[str, float]) -> list[tuple[str, str, str]]:
    """The claims about many rows, as the closest pair of each."""
    unsupervised = [name for name in _UNSUPERVISED if name in means]
    neural = [n for n in means if n.partition("-")[0] in _NEURAL and not n.endswith("(ours)")]
    if not unsupervised or len(neural) < 2:
        return []
    worst, best = min(neural, key=means.get), max(unsupervised, key=means.get)
    found = [("every neural row better than every unsupervised one: the closest two", worst, best)]
    others = [name for name in (*neural, *unsupervised) if name != "DRMM-Cosine"]
    second = max(others, key=means.get)
    return [*found, ("DRMM-Cosine best of all: against the next", "DRMM-Cosine", second)]


def _difference(systems: Mapping[str, RunMetrics], better: str, other: str, seed) -> Difference:
    two = {other: systems[other], better: systems[better]}
    return compare(two, metrics=(METRIC,), seed=seed, samples=SAMPLES)[0]


def _verdict(found: Difference) -> str:
    if found.randomization_p >= ALPHA:
        return f"no difference beyond chance (p = {found.randomization_p:.2g})"
    return "holds" if found.difference > 0 else "the reverse"
