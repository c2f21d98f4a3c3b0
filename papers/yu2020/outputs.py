"""Tables 1 to 3 of Yu and Allan 2020 on one set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.evaluation.significance import SAMPLES
from tf_smoothclir.papers.laboratory import tables
from tf_smoothclir.papers.laboratory.catalogue import Experiment
from tf_smoothclir.papers.laboratory.plan import Study, StudySet
from tf_smoothclir.papers.laboratory.system_metrics import (
    ALPHA,
    TEST_SEED,
    SystemMetrics,
    read_system_metrics,
    save_differences,
    significant,
)
from tf_smoothclir.papers.yu2020 import systems as rows_of
from tf_smoothclir.papers.yu2020.claims import claims_table
from tf_smoothclir.papers.yu2020.matching_data import MatchingData
from tf_smoothclir.papers.yu2020.options import (
    DOCUMENT_WORDS,
    MOST_COMMON,
    PATIENCE,
    QUERY_WORDS,
    WORD_VECTORS,
)
from tf_smoothclir.settings.training import METRICS
from tf_smoothclir.storage.files import read_json
from tf_smoothclir.training.run_data import retrieval_set_of

_METRICS = ("MAP", *(metric for metric in METRICS if metric != "MAP"))
# Table 1 shows the first of these that the set knows; "telephone" is the paper's.
_WORDS = ("telephone", "event", "string", "width", "color", "water", "king", "bread", "mountain")
_MOST_WORDS, _NEIGHBOURS = 5, 5


def matching_data(study_set: StudySet, study: Study) -> MatchingData:
    """A set as the systems with the first seed read it, without rotation."""
    settings = study.with_seed(study_set, study.seeds[0])
    retrieval_set = retrieval_set_of(source_of(settings.data), settings, SPLITS)
    tokenized_set = tokenize_set(retrieval_set, settings.text, settings.data.cache_dir)
    directory = Path(study.output_dir, "word_vectors")
    return MatchingData(tokenized_set, settings, study.matching, directory)


def write_table1(
    experiment: Experiment, study_set: StudySet, study: Study, directory: Path
) -> tables.Written:
    """Tabulates the words nearest to a few, in one language and across languages."""
    data, source = matching_data(study_set, study), source_of(study_set.settings.data)
    found = data.tables(translates=False)
    of_queries, of_documents = found.queries.numpy(), found.documents.numpy()
    names = {role: data.vocabulary(role) for role in ("query", "document")}
    places = {word: place for place, word in enumerate(names["query"])}
    known = [word for word in _WORDS if word in places and of_queries[places[word]].any()]
    rows = []
    for word in known[:_MOST_WORDS]:
        vector = of_queries[places[word]]
        for role, table in (("query", of_queries), ("document", of_documents)):
            cosines = np.where(data.content[role], table @ vector, -1)
            if role == "query":
                cosines[places[word]] = -1  # not the word itself
            best = np.argsort(-cosines, kind="stable")[:_NEIGHBOURS]
            nearest = ", ".join(f"{names[role][place]} {cosines[place]:.3f}" for place in best)
            language = getattr(source, f"{role}_language")
            rows.append((word, language, nearest))
    columns = ("word", "language", "five nearest words, with their cosines")
    table = tables.Table("Nearest words", columns, tuple(rows))
    return tables.Written([table], notes=[vectors_note(study)], csv=tables.plain_csv(table))


def write_table2(
    experiment: Experiment, study_set: StudySet, study: Study, directory: Path
) -> tables.Written:
    """Tabulates how many queries and documents there are, and how many are judged."""
    settings = study_set.settings
    retrieval_set = retrieval_set_of(source_of(settings.data), settings, SPLITS)
    queries = len(np.unique(retrieval_set.query_rows))
    relevant = (retrieval_set.grades > 0).sum() / queries
    listed = len(retrieval_set.grades) / queries + settings.training.negatives
    table = tables.Table(
        "Statistics",
        ("", study_set.name),
        (
            ("queries", f"{queries:,}"),
            ("documents", f"{len(retrieval_set.document_ids):,}"),
            ("relevant documents per query", f"{relevant:.1f}"),
            ("listed documents per query", f"{listed:.1f}"),
        ),
    )
    note = (
        f"Listed: the judged documents and {settings.training.negatives} sampled ones, in place of"
        " the paper's documents that people labeled; sampled ones are easier to tell apart."
    )
    return tables.Written([table], notes=[note], csv=tables.plain_csv(table))


def write_table3(
    experiment: Experiment, study_set: StudySet, study: Study, directory: Path
) -> tables.Written:
    """Tabulates all systems, tests them against the best one, and tests the paper's claims."""
    found = read_rows(experiment, study_set, study)
    if len(found) < 2:
        return tables.Written([], notes=["Fewer than two systems have finished."])
    of_paper = [one for one in found if one.name in {row.name for row in rows_of.PAPER}]
    best = max(of_paper or found, key=lambda one: one.values["MAP"].mean())
    significance = directory / f"{study_set.name}-significance"
    differences, means = save_differences(
        found, _METRICS, best.name, significance, study.scores_note
    )
    marked = significant(differences)
    claims = claims_table(means, {one.name: one.values["MAP"].mean() for one in found}, TEST_SEED)
    notes = [
        f"Best of the paper's systems by MAP: {best.name}. {tables.MARK}: differs from it; paired"
        f" randomisation test over queries, scores averaged over seeds, {SAMPLES:,} patterns, seed"
        f" {TEST_SEED}, Holm-corrected over the systems of a metric, p < {ALPHA:g}. Intervals and"
        " effect sizes: <set>-significance/. Bold: the best of the paper's systems in a column.",
        *notes_of(found, study_set, study),
    ]
    shown = _table(found, of_paper or found, marked)
    csv = tables.system_csv(study_set.name, found, marked, {})
    return tables.Written([shown, claims], notes=notes, csv=csv)


def read_rows(experiment: Experiment, study_set: StudySet, study: Study) -> list[SystemMetrics]:
    """The finished systems of an experiment, in its order."""
    cells = {row.name: study.matching_cells(study_set, row) for row in experiment.matching}
    trained = study.trained_systems(experiment)
    cells |= {one.name: study.cells(study_set, one) for one in trained}
    found = (read_system_metrics(name, of_row) for name, of_row in cells.items())
    return [one for one in found if one is not None]


def _table(found: Sequence[SystemMetrics], of_paper: Sequence[SystemMetrics], marked):
    highest = {m: max(one.values[m].mean() for one in of_paper) for m in _METRICS}
    pyramids = [one for one in of_paper if one.name.startswith("MP-")]
    best_pyramid = max(pyramids, key=lambda one: one.values["MAP"].mean(), default=None)
    rows = []
    for one in found:
        values = tables.metric_values(one, _METRICS, highest if one in of_paper else {}, marked)
        name = one.name + " (best MP)" * (one is best_pyramid)
        rows.append((name, *values, *_training(one)))
    columns = ("system", *_METRICS, "best epoch", "seconds")
    return tables.Table("Test queries", columns, tuple(rows))


def _training(one: SystemMetrics) -> tuple[str, str]:
    facts = [read_json(cell.run.metrics)["training"] for cell in one.cells]
    epochs = [number for of in facts for number in of.get("best_epochs", [of.get("best_epoch", 0)])]
    shown = _listed(sorted(set(epochs))) if any(epochs) else ""
    return shown, f"{np.mean([of['seconds'] for of in facts]):.0f}"


def notes_of(found: Sequence[SystemMetrics], study_set: StudySet, study: Study) -> list[str]:
    """What every figure depends on, and the choices that the paper leaves open."""
    options, settings = study.matching, study_set.settings
    rules = found[0].cells[0].metrics().rules
    protocol = "The set's own split 3:1:1"
    if options.folds:
        protocol = (
            f"Rotating {options.folds}-fold cross-validation, dealt by a hash of the query ids with"
            f" seed {settings.data.split_seed}: every query is a test query once; two towers and"
            " PSQ, which have one split, are left out"
        )
    return [
        f"{protocol}. Test queries: {_listed(sorted(set(found[0].queries.values())))}."
        f" {study.seeds_note}. Weights of the epoch with the highest validation MAP.",
        *(f"{name}: {rules[name]}." for name in ("lists", "ties", "relevance", "gain")),
        vectors_note(study),
        "Words: those with a letter or digit and more than one character, without those in more"
        f" than {MOST_COMMON['query']:.0%} of the training queries or"
        f" {MOST_COMMON['document']:.0%} of the documents (no stop list); networks read the words"
        f" with a vector, the first {QUERY_WORDS} of a query and {DOCUMENT_WORDS}"
        " of a document; MatchPyramid, Conv-KNRM and late interaction"
        f" {options.pyramid_query_words} and {options.pyramid_document_words}.",
        "Training: hinge of margin 1, the mean over triples of a document of grade 1 or more and"
        " each of 5 listed ones of grade 0, drawn anew each epoch; Adam, 0.001, batches of 64"
        f" relevant documents; at most {options.epochs} epochs, of MatchPyramid, Conv-KNRM"
        f" and late interaction {options.pyramid_epochs} (paper: 50); ended after"
        f" {PATIENCE} epochs without a better one.",
        "What the paper leaves open: MatchPyramid has one hidden layer of 20 units with ReLU and"
        " max pooling over real cells; K-NRM 19 kernels of width 0.1 and one of 0.001 at 1; DRMM"
        " 30-10-1 with tanh and the gate by term vectors; BM25 k1 1.2, b 0.75, QL Dirichlet with μ"
        " 1000; rows with translated queries are trained anew; no re-ranking of a first stage.",
        "Seconds: of one process that shared the machine; reading, vectors and features included.",
    ]


def vectors_note(study: Study) -> str:
    """Which word vectors a study has."""
    kind = study.matching.word_vectors
    return f"Word vectors: {WORD_VECTORS[kind]} (--word_vectors={kind})."


def _listed(values: Sequence) -> str:
    return ", ".join(map(str, values))
