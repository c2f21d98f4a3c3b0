"""The experiments of Yu and Allan 2020: Tables 1 to 3 and Figure 1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.evaluation.compare import compare
from tf_smoothclir.evaluation.trec import RunMetrics
from tf_smoothclir.papers.laboratory.cells import opened_set
from tf_smoothclir.papers.laboratory.experiment import Experiment, Study
from tf_smoothclir.papers.laboratory.system_metrics import (
    ALPHA,
    TEST_SEED,
    SystemMetrics,
    test_note,
)
from tf_smoothclir.papers.laboratory.tables import (
    Page,
    Table,
    Value,
    Written,
    system_csv,
    system_table,
)
from tf_smoothclir.papers.yu2020 import figure1
from tf_smoothclir.papers.yu2020 import options as paper
from tf_smoothclir.papers.yu2020.experiments import PAPER, PAPER_TABLES
from tf_smoothclir.papers.yu2020.matching_data import MatchingData
from tf_smoothclir.settings.training import METRICS

_METRICS = ("MAP", *(metric for metric in METRICS if metric != "MAP"))
# Table 1 shows the first of these that the set knows; "telephone" is the paper's.
_WORDS = ("telephone", "event", "string", "width", "color", "water", "king", "bread", "mountain")
_MOST_WORDS, _NEIGHBOURS = 5, 5
_NOT_COMPARABLE = "paper, CLEF 2000-2003, fastText's aligned vectors: not comparable"
_SAMPLES = 10_000  # of the tests of claims
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


def _paper_table(experiment: Experiment) -> Table:
    columns, *rows = PAPER_TABLES[experiment.name]
    measure = "MAP, " * (experiment.name == "yu2020_table3")
    return Table(measure + _NOT_COMPARABLE, columns, tuple(rows))


def _data_of(study: Study) -> MatchingData:
    """A set as the systems with the first seed read it, without rotation."""
    settings = study.with_seed(study.seeds[0])
    return MatchingData(opened_set(settings), settings, study.matching)


def _table_1(page: Page) -> Written:
    """Tabulates the words nearest to a few, in one language and across languages."""
    data, rows = _data_of(page.study), []
    vectors = {role: of.numpy() for role, of in zip(ROLES, data.tables(translates=False).both)}
    places = {word: place for place, word in enumerate(data.vocabulary("query"))}
    known = [word for word in _WORDS if word in places and vectors["query"][places[word]].any()]
    for word in known[:_MOST_WORDS]:
        for role in ROLES:
            words, language = data.vocabulary(role), f"{role}_language"
            cosines = vectors[role] @ vectors["query"][places[word]]
            cosines = np.where(data.content[role], cosines, -1)
            if role == "query":
                cosines[places[word]] = -1  # not the word itself
            best = np.argsort(-cosines, kind="stable")[:_NEIGHBOURS]
            nearest = ", ".join(f"{words[place]} {cosines[place]:.3f}" for place in best)
            rows.append((word, getattr(data.retrieval_set.source, language), nearest))
    columns = ("word", "language", "five nearest words, with their cosines")
    table = Table("Nearest words", columns, tuple(rows))
    shown = [table, _paper_table(page.experiment)]
    return Written(shown, notes=[_vectors_note(page.study)], csv=table.csv())


def _table_2(page: Page) -> Written:
    """Tabulates how many queries and documents there are, and how many are judged."""
    study = page.study
    retrieval_set = opened_set(study.settings).retrieval_set
    negatives = study.settings.training.negatives
    queries = len(np.unique(retrieval_set.query_rows))
    relevant = (retrieval_set.grades > 0).sum() / queries
    listed = len(retrieval_set.grades) / queries + negatives
    rows = (
        ("queries", f"{queries:,}"),
        ("documents", f"{len(retrieval_set.document_ids):,}"),
        ("relevant documents per query", f"{relevant:.1f}"),
        ("listed documents per query", f"{listed:.1f}"),
    )
    table = Table("Statistics", ("", study.name), rows)
    note = (
        f"Listed: the judged documents and {negatives} sampled ones, in place of the paper's"
        " documents that people labeled; sampled ones are easier to tell apart."
    )
    return Written([table, _paper_table(page.experiment)], notes=[note], csv=table.csv())


def _table_3(page: Page) -> Written:
    """Tabulates all systems, tests them against the best one, and tests the paper's claims."""
    study, finished = page.study, page.systems
    if len(finished) < 2:
        return Written([], notes=["Fewer than two systems have finished."])
    names = {row.name for row in PAPER}
    of_paper = [system for system in finished if system.name in names] or finished
    best = max(of_paper, key=_map)
    marked, means = page.tested(best.name)
    notes = [
        f"Best of the paper's systems by MAP: {best.name}. {test_note('it')} Bold: the best of the"
        " paper's systems in a column.",
        *_notes(finished, study),
    ]
    shown = system_table(
        "system", finished, _METRICS, marked, facts=_facts(finished), rivals=of_paper
    )
    claims = claims_table(means, {system.name: _map(system) for system in finished})
    tables = [shown, claims, _paper_table(page.experiment)]
    return Written(tables, notes=notes, csv=system_csv(study.name, finished, marked))


def _map(system: SystemMetrics) -> float:
    return system.values["MAP"].mean()


def _facts(finished: Sequence[SystemMetrics]) -> dict[str, dict[str, str]]:
    """How long systems learned."""
    epochs, seconds = {}, {}
    for system in finished:
        facts = [cell.metrics()["training"] for cell in system.cells]
        best = {n for of in facts for n in of.get("best_epochs", [of.get("best_epoch", 0)])}
        epochs[system.name] = ", ".join(map(str, sorted(best))) if any(best) else ""
        seconds[system.name] = f"{np.mean([of['seconds'] for of in facts]):.0f}"
    return {"best epoch": epochs, "seconds": seconds}


def _figure_1(page: Page) -> Written:
    """Draws and tabulates the similarities of words, and MAP by the one that is a match."""
    study, finished = page.study, page.systems
    data = _data_of(study)
    kinds = figure1.similarities_of(data)
    measured = {system.cells[0].system.eta: system.values["MAP"] for system in finished}
    best = max(map(_map, finished), default=0)
    figure1.draw(page.plot, page.title, kinds, measured)
    rows = []
    for eta in (row.eta for row in page.experiment.rows):
        share, of = f"{kinds[figure1.ACROSS].share_from(eta):.3%}", measured.get(eta)
        shown = "" if of is None else Value(of, of.mean() == best)
        rows.append((f"{eta:g}", share, shown))
    columns = ("η", "pairs of words with a cosine of η or more", "MAP of MP-Exact")
    by_eta = Table("Pairs that count as exact matches, and MP-Exact (a, b)", columns, tuple(rows))
    notes = [
        "Pairs: every content word of the training queries with every content word of the"
        " documents, where both have a vector; each pair of words once. Within one language: the"
        " nearest document word of each query word (TbT-QT) in place of the query word.",
        *(_notes(finished, study) if finished else [_vectors_note(study)]),
    ]
    return Written([figure1.moments(kinds), by_eta], [page.plot], notes, figure1.counts_csv(kinds))


def _notes(finished: Sequence[SystemMetrics], study: Study) -> list[str]:
    """What every figure depends on, and the choices that the paper leaves open."""
    options, settings = study.matching, study.settings
    rules = finished[0].cells[0].metrics()["rules"]
    queries = ", ".join(map(str, sorted({*finished[0].queries.values()})))
    protocol = "The set's own split 3:1:1"
    if options.matching_folds:
        protocol = (
            f"Rotating {options.matching_folds}-fold cross-validation, dealt by a hash of the query"
            f" ids with seed {settings.data.split_seed}: every query is a test query once; two"
            " towers and PSQ, which have one split, are left out"
        )
    return [
        f"{protocol}. Test queries: {queries}. {study.seeds_note}. Weights of the epoch with the"
        " highest validation MAP.",
        *(f"{name}: {rules[name]}." for name in ("lists", "ties", "relevance", "gain")),
        _vectors_note(study),
        "Words: those with a letter or digit and more than one character, without those in more"
        f" than {paper.MOST_COMMON['query']:.0%} of the training queries or"
        f" {paper.MOST_COMMON['document']:.0%} of the documents (no stop list); networks read the"
        f" words with a vector, the first {paper.QUERY_WORDS} of a query and {paper.DOCUMENT_WORDS}"
        " of a document; MatchPyramid and late interaction"
        f" {options.pyramid_query_words} and {options.pyramid_document_words}.",
        "Training: hinge of margin 1, the mean over triples of a document of grade 1 or more and"
        " each of 5 listed ones of grade 0, drawn anew each epoch; Adam, 0.001, batches of 64"
        f" relevant documents; at most {options.matching_epochs} epochs, of MatchPyramid"
        f" and late interaction {options.pyramid_epochs} (paper: 50); ended after"
        f" {paper.PATIENCE} epochs without a better one.",
        "What the paper leaves open: MatchPyramid has one hidden layer of 20 units with ReLU and"
        " max pooling over real cells; K-NRM 19 kernels of width 0.1 and one of 0.001 at 1; DRMM"
        " 30-10-1 with tanh and the gate by term vectors; BM25 k1 1.2, b 0.75, QL Dirichlet with μ"
        " 1000; rows with translated queries are trained anew; no re-ranking of a first stage.",
        "Seconds: of one process that shared the machine; reading, vectors and features included.",
    ]


def _vectors_note(study: Study) -> str:
    """Which word vectors a study has."""
    kind = study.matching.word_vectors
    return f"Word vectors: {paper.WORD_VECTORS[kind]} (--word_vectors={kind})."


def claims_table(systems: Mapping[str, RunMetrics], means: Mapping[str, float]) -> Table:
    """Each claim with the difference in MAP, its interval and whether it holds."""
    rows = []
    for claim, better, other in (*_extremes(means), *_PAIRS):
        if not {better, other} <= systems.keys():
            continue
        two = {name: systems[name] for name in (other, better)}
        (found,) = compare(two, metrics=("MAP",), seed=TEST_SEED, samples=_SAMPLES)
        verdict = "holds" if found.difference > 0 else "the reverse"
        if found.randomization_p >= ALPHA:
            verdict = f"no difference beyond chance (p = {found.randomization_p:.2g})"
        interval = f"{found.low:+.3f} to {found.high:+.3f}"
        rows.append((claim, f"{better} - {other}", f"{found.difference:+.3f}", interval, verdict))
    columns = ("claim", "rows", "difference in MAP", "95% interval", "here")
    return Table("Claims of the paper", columns, tuple(rows))


def _extremes(means: Mapping[str, float]) -> Iterable[tuple[str, str, str]]:
    """The claims about many rows, as the closest pair of each."""
    unsupervised = [name for name in _UNSUPERVISED if name in means]
    neural = [n for n in means if n.partition("-")[0] in _NEURAL and not n.endswith("(ours)")]
    if unsupervised and len(neural) > 1:
        claim = "every neural row better than every unsupervised one: the closest two"
        yield claim, min(neural, key=means.get), max(unsupervised, key=means.get)
        others = [name for name in (*neural, *unsupervised) if name != "DRMM-Cosine"]
        second = max(others, key=means.get)
        yield "DRMM-Cosine best of all: against the next", "DRMM-Cosine", second


WRITERS = {
    "yu2020_table1": _table_1,
    "yu2020_table2": _table_2,
    "yu2020_table3": _table_3,
    "yu2020_figure1": _figure_1,
}
