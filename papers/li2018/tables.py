"""Tables 1 to 3 of Li and Cheng 2018 on one set, and the course of the game."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.statistics import collection_statistics
from tf_smoothclir.evaluation.significance import holm, paired_t_test
from tf_smoothclir.optimizers.learning_rate import learning_rate
from tf_smoothclir.papers.laboratory import tables
from tf_smoothclir.papers.laboratory.catalogue import Experiment
from tf_smoothclir.papers.laboratory.plan import Study, StudySet
from tf_smoothclir.papers.laboratory.system_metrics import ALPHA, SystemMetrics, read_system_metrics
from tf_smoothclir.papers.li2018.measures import (
    COLUMNS,
    GRADE_1,
    MAP,
    measures_of,
    monolingual_measures,
    seed_means,
)
from tf_smoothclir.papers.li2018.plots import plot_game
from tf_smoothclir.papers.li2018.systems import (
    MON,
    MT,
    OURS,
    PAPER_COLLECTIONS,
    PAPER_MAP,
    SOSL,
    SOSL_NO_ADVERSARY,
    XCNN,
)

_PAPER = "paper, CLEF: not comparable"
_CHANCE = 1 / 3
_MARKS = (
    "Paired t-tests of the MAP of each query over the collection, means over the seeds, p < 0.05,"
    " without a correction, as in the paper; in brackets those that are left after Holm's"
    " correction over all tests of the table."
)
_MEASURES = (
    "MAP counts grades 1 and 2; that of the collection is of the first 100 documents. grade 1: the"
    " mate is taken out of every ranking and grade 1 alone is relevant, MAP of the collection."
)


def write_table_1(
    experiment: Experiment, study_set: StudySet, study: Study, directory: Path
) -> tables.Written:
    """Counts the set as the paper counts its own."""
    del experiment, study, directory
    found = collection_statistics(RetrievalSet.load(source_of(study_set.settings.data)))
    row = (
        study_set.name,
        f"{found.documents:,}",
        f"{found.document_vocabulary:,}",
        f"{found.document_length_mean:.1f}",
        f"{found.queries:,}",
    )
    columns = ("collection", "N_d", "N_w", "DL_avg", "N_q")
    theirs = tuple((name, *counts) for name, counts in PAPER_COLLECTIONS.items())
    table = tables.Table("Collection", columns, (row,))
    notes = ["N_w: lower-cased words that occur at least twice. N_q: queries of all three splits."]
    return tables.Written(
        [table, tables.Table(_PAPER, columns, theirs)], [], notes, tables.plain_csv(table)
    )


def write_table_2(
    experiment: Experiment, study_set: StudySet, study: Study, directory: Path
) -> tables.Written:
    """Compares the systems with each other, and with queries in the language of the documents."""
    del directory
    systems = _trained(experiment, study_set, study)
    measures = {name: measures_of(system) for name, system in systems.items()}
    monolingual, translated = monolingual_measures(study_set)
    measures = {MON: monolingual, **measures}
    marks = _marks_of_table_2(measures)
    shared = MAP if translated else GRADE_1
    share = _mean(monolingual, shared)
    rows = [
        (
            name,
            *(_text(found, column) for column in COLUMNS),
            marks.get(name, ""),
            f"{_mean(found, shared) / share:.1%}" if share else "",
            *_seeds(systems.get(name)),
        )
        for name, found in measures.items()
    ]
    columns = ("system", *COLUMNS, "marks", f"{shared}, of MON", "seeds: lowest, highest MAP")
    ours = tables.Table("Test queries", columns, tuple(rows))
    names = ("data, pair", MON, MT, "S2Net", "BAE", XCNN, OURS)
    theirs = tuple((pair, *(f"{v:.3f}" for v in of[:-1])) for pair, of in PAPER_MAP.items())
    queries = "that people translated" if translated else "made of the mates"
    notes = [
        _settings_note(experiment, study_set, study),
        _MEASURES,
        f"{MON}: BM25 (k1 1.2, b 0.75) by queries {queries}. {MT}: a word-by-word translation by"
        " IBM Model 1, learned from the training pairs, and BM25; a stand-in, no translation"
        " system.",
        f"-m: below {MT}; -x: below {XCNN}; +x: above {XCNN}. {_MARKS}",
    ]
    return tables.Written(
        [ours, tables.Table(_PAPER, names, theirs)], [], notes, _csv(study_set.name, measures)
    )


def write_table_3(
    experiment: Experiment, study_set: StudySet, study: Study, directory: Path
) -> tables.Written:
    """Compares the whole model with parts of it, and shows the course of the game."""
    systems = _trained(experiment, study_set, study)
    measures = {name: measures_of(system) for name, system in systems.items()}
    marks = _marks_of_table_3(measures)
    rows = [
        (
            name,
            *(_text(found, column) for column in COLUMNS),
            marks.get(name, ""),
            _at_best(systems[name], "source_probe"),
            _discriminator(systems[name]),
            *_seeds(systems[name]),
        )
        for name, found in measures.items()
    ]
    columns = (
        "model",
        *COLUMNS,
        "marks",
        "source probe",
        "discriminator",
        "seeds: lowest, highest MAP",
    )
    ours = tables.Table("Test queries", columns, tuple(rows))
    theirs = tuple((pair, f"{of[-2]:.3f}", f"{of[-1]:.3f}") for pair, of in PAPER_MAP.items())
    notes = [
        _settings_note(experiment, study_set, study),
        _MEASURES,
        f"-, +: below, above {OURS}; of {SOSL_NO_ADVERSARY}, below, above {SOSL}. {_MARKS}",
        "source probe: how often a logistic regression that is trained on the vectors of other"
        " validation queries, their translations and mates names the source right; discriminator:"
        " the mean of its accuracies over the sources in the last epoch. Chance is"
        f" {_CHANCE:.3f} for both. The probe is of the best epoch.",
    ]
    plots = []
    if systems:
        plots = [directory / f"{study_set.name}.png"]
        plot_game(plots[0], f"{experiment.title}, {study_set.name}", systems)
    theirs = tables.Table(_PAPER, ("data, pair", "M", "M_adv"), theirs)
    return tables.Written([ours, theirs], plots, notes, _csv(study_set.name, measures))


WRITERS = {
    "li2018_table1": write_table_1,
    "li2018_table2": write_table_2,
    "li2018_table3": write_table_3,
    "li2018_pooled": write_table_3,
}


def _settings_note(experiment: Experiment, study_set: StudySet, study: Study) -> str:
    text, seeds = study_set.settings.text, ", ".join(map(str, study.seeds))
    ways = {}  # kind of towers -> how they are trained, all of a kind alike
    for cell in study.final_cells(study_set, [experiment]):
        settings = cell.cell.settings
        if settings.retrieval.with_task:
            way, rate = settings.training, learning_rate(settings.training, 0)
            kind = "LSTMs" if settings.model.tower == "max_lstm" else "Rows of other towers"
            ways[kind] = (
                f"{kind}: {way.optimizer}, learning rate {rate:g}, batches of {way.batch_size},"
                f" {way.epochs} epochs."
            )
    return (
        f"All rows: queries cut at {text.max_query_tokens} words, documents at"
        f" {text.max_document_tokens}; the best epoch by validation MAP is kept; seeds {seeds}."
        f" {' '.join(ways.values())} What the paper leaves open, and what is taken here:"
        " papers/li2018/README.md."
    )


def _trained(experiment: Experiment, study_set: StudySet, study: Study) -> dict[str, SystemMetrics]:
    found = (read_system_metrics(s.name, study.cells(study_set, s)) for s in experiment.systems)
    return {system.name: system for system in found if system is not None}


def _mean(measures: Mapping[str, np.ndarray], column: str) -> float:
    return float(np.nanmean(measures[column]))


def _text(measures: Mapping[str, np.ndarray], column: str) -> str:
    return f"{_mean(measures, column):.3f}" if column in measures else ""


def _seeds(system: SystemMetrics | None) -> tuple[str]:
    if system is None or len(system.cells) < 2:
        return ("",)
    means = seed_means(system)
    return (f"{means.min():.3f}, {means.max():.3f}",)


def _marks_of_table_2(measures: Mapping[str, Mapping[str, np.ndarray]]) -> dict[str, str]:
    asked = []
    for name in measures:
        if MAP not in measures[name] or name == MON:
            continue
        asked += [(name, MT, "-m", -1)] * (name != MT)
        asked += [(name, XCNN, "-x", -1), (name, XCNN, "+x", 1)] * (name not in (XCNN, MT))
    return _tested(measures, asked)


def _marks_of_table_3(measures: Mapping[str, Mapping[str, np.ndarray]]) -> dict[str, str]:
    asked = []
    for name in measures:
        other = SOSL if name == SOSL_NO_ADVERSARY else OURS
        if name != other:
            asked += [(name, other, "-", -1), (name, other, "+", 1)]
    return _tested(measures, asked)


def _tested(
    measures: Mapping[str, Mapping[str, np.ndarray]], asked: Sequence[tuple[str, str, str, int]]
) -> dict[str, str]:
    """System -> marks: of tests in the asked direction, and in brackets after Holm.

    Args:
        measures: System -> measure -> `[queries]`.
    """
    asked = [one for one in asked if one[1] in measures]
    pairs = list(dict.fromkeys((name, other) for name, other, _, _ in asked))
    p = [paired_t_test(measures[name][MAP], measures[other][MAP]) for name, other in pairs]
    plain, corrected = dict(zip(pairs, p)), dict(zip(pairs, holm(p) if p else []))
    found = {}
    for names in (plain, corrected):
        for name, other, mark, sign in asked:
            difference = _mean(measures[name], MAP) - _mean(measures[other], MAP)
            if names[name, other] < ALPHA and np.sign(difference) == sign:
                found.setdefault(name, ([], []))[names is corrected].append(mark)
    return {
        name: " ".join(plain) + (f" [{' '.join(left)}]" if left else "")
        for name, (plain, left) in found.items()
    }


def _at_best(system: SystemMetrics, entry: str) -> str:
    """The mean over the seeds of an entry of the history, in the epoch that is kept."""
    found = []
    for cell, history in zip(system.cells, system.histories):
        select = cell.cell.settings.training.select_metric
        best = max(history, key=lambda record: record["validation"][select])
        if entry in best:
            found.append(best[entry])
    return f"{np.mean(found):.3f}" if found else ""


def _discriminator(system: SystemMetrics) -> str:
    """The accuracy of the discriminator in the last epoch, each source alike."""
    found = [
        [value for name, value in history[-1].items() if name.startswith("accuracy_")]
        for history in system.histories
    ]
    return f"{np.mean(found):.3f}" if all(found) else ""


def _csv(set_name: str, measures: Mapping[str, Mapping[str, np.ndarray]]) -> str:
    rows = tuple(
        (set_name, name, column, repr(_mean(found, column)), int(np.isfinite(found[column]).sum()))
        for name, found in measures.items()
        for column in COLUMNS
        if column in found
    )
    return tables.plain_csv(tables.Table("", ("set", "system", "measure", "mean", "queries"), rows))
