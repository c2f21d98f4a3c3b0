"""The tables of Li and Cheng 2018: marks, the view without mates, the paper's own figures."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from tests.cases import word
from tests.papers.laboratory.fakes import study_in
from tests.training.tiny_set import QUERIES, tiny_settings, words_of, write_tiny_set
from tf_smoothclir.papers.laboratory.catalogue import EXPERIMENTS
from tf_smoothclir.papers.laboratory.system_metrics import SystemMetrics, read_system_metrics
from tf_smoothclir.papers.li2018 import machine_translation as module
from tf_smoothclir.papers.li2018 import tables
from tf_smoothclir.papers.li2018.experiments import MON, MT, OURS, S2NET, XCNN, MachineTranslation
from tf_smoothclir.papers.li2018.measures import (
    COLUMNS,
    FULL_MRR,
    GRADE_1,
    MAP,
    Measured,
    _of_collection,
    _without_mates,
    measured,
    monolingual,
)
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings

RUN = {"q": {"mate": 9.0, "x": 8.0, "one": 7.0, "two": 1.0}}
QRELS = {"q": {"mate": 2, "one": 1, "two": 1, "x": 0}}


def test_without_mates_the_documents_of_grade_1_move_up_and_a_mate_alone_does_not_count():
    # x, one, two are left. The run does not answer p.
    found = _without_mates(RUN, {**QRELS, "mate alone": {"mate": 2}, "p": {"a": 1, "b": 2}})
    np.testing.assert_allclose(found, [np.nan, 0, (1 / 2 + 2 / 3) / 2])


def test_map_of_the_collection_counts_both_grades_and_mrr_ends_after_rank_10():
    # Ranks 1, 3 and 4 are relevant.
    assert _of_collection(RUN, QRELS)[MAP] == pytest.approx([(1 + 2 / 3 + 3 / 4) / 3])
    run = {"q": {f"d{place}": -float(place) for place in range(1, 21)}}
    for rank, expected in ((10, 1 / 10), (11, 0)):
        assert _of_collection(run, {"q": {f"d{rank}": 2}})[FULL_MRR] == pytest.approx([expected])


def marked(means, noise, asked_of):
    rows = [
        Measured(SystemMetrics(name, (), {}, {}), {MAP: mean + of})
        for (name, mean), of in zip(means.items(), noise)
    ]
    return tables.marks(rows, asked_of)


def test_marks_are_those_of_the_paper():
    means = {MON: 0.9, MT: 0.5, S2NET: 0.3, XCNN: 0.4, OURS: 0.5}
    noise = np.random.default_rng(0).normal(0, 0.1, size=(len(means), 400))
    found = marked(means, noise, tables._ASKED_OF_TABLE_2)
    assert found == {S2NET: "-m -x [-m -x]", XCNN: "-m [-m]", OURS: "+x [+x]"}
    # Holm takes back what many tests find by chance: one p of 0.03 among twelve.
    base, noise = np.random.default_rng(5).normal(size=(2, 50))
    noise -= noise.mean()
    just = noise / noise.std(ddof=1) + 2.24 / np.sqrt(50)  # t = 2.24, p = 0.03
    means = {OURS: base, "just": base, **{f"same {n}": base for n in range(1, 11)}}
    noise = [0, just, *(noise * n for n in range(1, 11))]
    assert marked(means, noise, tables._ASKED_OF_TABLE_3) == {"just": "+"}


def test_validation_chooses_translations_and_parameters(monkeypatch):
    """Those are chosen whose quality is highest, whatever the test queries say."""
    monkeypatch.setattr(module, "by_table", lambda table, spelling, most: np.eye(1) * most)
    collection = SimpleNamespace(occurrences=np.ones(1))
    monkeypatch.setattr(module, "collection_of", lambda texts: collection)

    def ranked(ranker, collection):
        values = vars(ranker).values()
        return SimpleNamespace(rows=lambda queries: (queries.toarray().item(), *values))

    def quality(rows):
        return -sum(abs(one - other) for one, other in zip(rows, best))

    best = (3.0, 2.0, 0.25)
    monkeypatch.setattr(module.Bm25, "__call__", ranked)
    monkeypatch.setattr(module, "Validation", lambda retrieval_set: quality)
    texts = SimpleNamespace(retrieval_set=None, queries=np.eye(1), spelling=None)
    rows, choices = module.chosen(texts, sp.csr_array(np.eye(1)))
    assert (rows, choices) == (best, {"translations": 3, "k1": 2.0, "b": 0.25})


@pytest.mark.slow
def test_rows_of_translated_queries_find_mates_and_people_s_queries_are_read(tmp_path, caplog):
    data = write_tiny_set(tmp_path / "tiny")
    study = study_in(tmp_path, tiny_settings(data, tmp_path / "cache"))
    (cell,) = MachineTranslation(MT).cells(study)
    cell.complete()
    assert cell.metrics()["test"]["MAP"] > 0.5
    assert {"full/MRR@10"} <= cell.metrics()["test"].keys()
    assert measured(read_system_metrics(MT, [cell])).per_query.keys() == {*COLUMNS}
    upper, translated = monolingual(MON, study)
    assert (upper.per_query.keys(), translated) == ({GRADE_1}, False)
    firsts = [word("mot", words_of(n)[0]) for n in range(QUERIES - 1)]  # not of the last
    lines = [f"{n}\tTitre\t{first}\n" for n, first in enumerate(firsts)]
    (data / "wiki_fr.queries").write_text("".join(lines))
    with caplog.at_level("WARNING", logger="absl"):
        upper, translated = monolingual(MON, study)
    assert "1 queries have no translation" in caplog.text
    assert (translated, upper.mean(MAP) > 0) == (True, True)


def test_no_row_trains_for_more_epochs_than_are_asked_for():
    *_, lstm = EXPERIMENTS["li2018_table2"].rows  # with four by itself
    for asked in (3, 4, 5):
        settings = lstm.settings(changed(RunSettings(), {"epochs": asked}))
        assert settings.training.epochs == min(asked, 4)
