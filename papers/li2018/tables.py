"""Tables 1 to 3 of Li and Cheng 2018 on one set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import stats

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.statistics import collection_statistics
from tf_smoothclir.evaluation.compare import differences, holm
from tf_smoothclir.optimizers import learning_rate
from tf_smoothclir.papers.laboratory.system_metrics import ALPHA, SystemMetrics
from tf_smoothclir.papers.laboratory.systems import System
from tf_smoothclir.papers.laboratory.tables import (
    Page,
    Table,
    Written,
    figures_table,
    system_csv,
    system_table,
)
from tf_smoothclir.papers.li2018 import measures
from tf_smoothclir.papers.li2018.experiments import (
    BAE,
    MON,
    MT,
    OURS,
    PAPER_COLLECTIONS,
    PAPER_MAP,
    S2NET,
    XCNN,
)
from tf_smoothclir.papers.li2018.measures import GRADE_1, MAP, Measured

_PAPER = "paper, CLEF: not comparable"
_MARKS = (
    "Paired t-tests of the MAP of each query over the collection, means over the seeds, p < 0.05,"
    " without a correction, as in the paper; in brackets those that are left after Holm's"
    " correction over all tests of the table."
)
# What systems are tested against -> the marks by the sign of the difference, and who is not tested.
_ASKED_OF_TABLE_2 = {
    MT: ({-1: "-m"}, (MON, MT)),
    XCNN: ({-1: "-x", 1: "+x"}, (MON, MT, XCNN)),
}
_ASKED_OF_TABLE_3 = {OURS: ({-1: "-", 1: "+"}, (OURS,))}
_MEASURES = (
    "MAP counts grades 1 and 2; that of the collection is of the first 100 documents. grade 1: the"
    " mate is taken out of every ranking and grade 1 alone is relevant, MAP of the collection."
)


def _table_1(page: Page) -> Written:
    """Counts the set as the paper counts its own."""
    study = page.study
    counted = collection_statistics(RetrievalSet.load(source_of(study.settings.data)))
    row = (
        study.name,
        f"{counted['documents']:,}",
        f"{counted['document_vocabulary']:,}",
        f"{counted['document_length_mean']:.1f}",
        f"{counted['queries']:,}",
    )
    columns = ("collection", "N_d", "N_w", "DL_avg", "N_q")
    theirs = tuple((name, *counts) for name, counts in PAPER_COLLECTIONS.items())
    table = Table("Collection", columns, (row,))
    notes = ["N_w: lower-cased words that occur at least twice. N_q: queries of all three splits."]
    return Written([table, Table(_PAPER, columns, theirs)], [], notes, table.csv())


def _table_2(page: Page) -> Written:
    """Compares the systems with each other, and with queries in the language of the documents."""
    upper, translated = measures.monolingual(MON, page.study)
    systems = [upper, *map(measures.measured, page.systems)]
    shared = MAP if translated else GRADE_1
    shares = {
        system.system.name: f"{system.mean(shared) / upper.mean(shared):.1%}" for system in systems
    }
    theirs = ((pair, *of[:-1]) for pair, of in PAPER_MAP.items())
    queries = "that people translated" if translated else "made of the mates"
    notes = [
        f"{MON}: BM25 (k1 1.2, b 0.75) by queries {queries}. {MT}: a word-by-word translation by"
        " IBM Model 1, learned from the training pairs, and BM25; a stand-in, no translation"
        " system.",
        f"-m: below {MT}; -x: below {XCNN}; +x: above {XCNN}. {_MARKS}",
    ]
    facts = {"marks": marks(systems, _ASKED_OF_TABLE_2), f"{shared}, of MON": shares}
    paper = figures_table(_PAPER, ("data, pair", MON, MT, S2NET, BAE, XCNN, OURS), theirs)
    return _written(page, systems, facts, paper, notes)


def _table_3(page: Page) -> Written:
    """Compares the whole model with parts of it."""
    systems = list(map(measures.measured, page.systems))
    facts = {
        "marks": marks(systems, _ASKED_OF_TABLE_3),
        "discriminator": {system.name: _discriminator(system) for system in page.systems},
    }
    theirs = ((pair, *of[-2:]) for pair, of in PAPER_MAP.items())
    notes = [
        f"-, +: below, above {OURS}. {_MARKS}",
        "discriminator: the mean of its accuracies over the sources in the last epoch; chance is"
        " 0.333.",
    ]
    paper = figures_table(_PAPER, ("data, pair", "M", "M_adv"), theirs)
    return _written(page, systems, facts, paper, notes)


def _written(
    page: Page, systems: Sequence[Measured], facts: Mapping, paper: Table, notes: Sequence[str]
) -> Written:
    """The systems beside the paper's, and how they were trained."""
    rows, experiment, study = [system.system for system in systems], page.experiment, page.study
    ours = system_table(experiment.column, rows, measures.COLUMNS, facts=facts)
    text, seeds = study.settings.text, ", ".join(map(str, study.seeds))
    ways = {}  # kind of towers -> how they are trained, all of a kind alike
    for row in experiment.rows:
        if isinstance(row, System):
            settings = row.settings(study.settings)
            way, rate = settings.training, learning_rate(settings.training, 0)
            kind = "LSTMs" if settings.model.tower == "max_lstm" else "Rows of other towers"
            ways[kind] = (
                f"{kind}: {way.optimizer}, learning rate {rate:g}, batches of {way.batch_size},"
                f" {way.epochs} epochs."
            )
    settings = (
        f"All rows: queries cut at {text.max_query_tokens} words, documents at"
        f" {text.max_document_tokens}; the best epoch by validation MAP is kept; seeds {seeds}."
        f" {' '.join(ways.values())} What the paper leaves open, and what is taken here:"
        " papers/li2018/README.md."
    )
    notes = [settings, _MEASURES, *notes]
    return Written([ours, paper], notes=notes, csv=system_csv(study.name, rows))


def marks(systems: Sequence[Measured], asked: Mapping) -> dict[str, str]:
    """System -> marks: of tests in the asked direction, and in brackets after Holm."""
    by_name = {measured.system.name: measured for measured in systems if MAP in measured.per_query}
    tests = [
        (name, of_sign, differences(by_name[name].per_query[MAP], by_name[rival].per_query[MAP]))
        for name in by_name
        for rival, (of_sign, untested) in asked.items()
        if rival in by_name and name not in untested
    ]
    p = [stats.ttest_1samp(of, 0).pvalue if of.any() else 1.0 for *_, of in tests]
    p = np.nan_to_num(p, nan=1.0)  # NaN for a single query
    plain, left = {}, {}
    for (name, of_sign, values), uncorrected, corrected in zip(tests, p, holm(p)):
        if (mark := of_sign.get(np.sign(values.mean()))) and uncorrected < ALPHA:
            plain.setdefault(name, []).append(mark)
            if corrected < ALPHA:
                left.setdefault(name, []).append(mark)
    bracketed = {name: f" [{' '.join(of)}]" for name, of in left.items()}
    return {name: " ".join(of) + bracketed.get(name, "") for name, of in plain.items()}


def _discriminator(system: SystemMetrics) -> str:
    """The accuracy of the discriminator in the last epoch, each source alike."""
    accuracies = [
        [v for name, v in cell.metrics()["history"][-1].items() if name.startswith("accuracy_")]
        for cell in system.cells
    ]
    return f"{np.mean(accuracies):.3f}" if all(accuracies) else ""


WRITERS = {
    "li2018_table1": _table_1,
    "li2018_table2": _table_2,
    "li2018_table3": _table_3,
    "li2018_pooled": _table_3,
}
