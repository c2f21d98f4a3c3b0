"""The tables of Li and Cheng 2018: marks, the view without mates, the paper's own figures."""

import numpy as np
import pytest

from tf_smoothclir.papers.laboratory.catalogue import EXPERIMENTS
from tf_smoothclir.papers.li2018 import tables as li2018
from tf_smoothclir.papers.li2018.measures import FULL_MRR, MAP, _of_collection, _without_mates
from tf_smoothclir.papers.li2018.systems import MON, MT, OURS, S2NET, XCNN
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
        found = _of_collection(run, {"q": {f"d{rank}": 2}})
        assert found[FULL_MRR] == pytest.approx([expected])


def test_marks_are_those_of_the_paper():
    means = {MON: 0.9, MT: 0.5, S2NET: 0.3, XCNN: 0.4, OURS: 0.5}
    noise = np.random.default_rng(0).normal(0, 0.1, size=(len(means), 400))
    systems = {name: {MAP: mean + of} for (name, mean), of in zip(means.items(), noise)}
    found = li2018._marks_of_table_2(systems)
    assert found == {S2NET: "-m -x [-m -x]", XCNN: "-m [-m]", OURS: "+x [+x]"}
    # Holm takes back what many tests find by chance: one p of 0.03 among twelve.
    base, noise = np.random.default_rng(5).normal(size=(2, 50))
    noise -= noise.mean()
    just = noise / noise.std(ddof=1) + 2.24 / np.sqrt(50)  # t = 2.24, p = 0.03
    others = {f"same {number}": {MAP: base + noise * number} for number in range(1, 11)}
    systems = {OURS: {MAP: base}, "just": {MAP: base + just}, **others}
    assert li2018._marks_of_table_3(systems) == {"just": "+"}


def test_no_row_trains_for_more_epochs_than_are_asked_for():
    *_, lstm = EXPERIMENTS["li2018_table2"].systems  # with four by itself
    for asked in (3, 4, 5):
        settings = lstm.settings(changed(RunSettings(), {"epochs": asked}))
        assert settings.training.epochs == min(asked, 4)
