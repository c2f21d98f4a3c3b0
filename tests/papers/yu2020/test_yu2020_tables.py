"""The systems, the figures and claims of the paper, the distribution of cosines, rotations."""

import numpy as np
import pytest

from tests.data.test_retrieval_set import ids
from tests.papers.laboratory.fakes import study_in
from tf_smoothclir.data.folds import rotated_sets
from tf_smoothclir.evaluation.trec import RunMetrics
from tf_smoothclir.papers.yu2020 import experiments, figure1, tables
from tf_smoothclir.papers.yu2020.options import MatchingOptions
from tf_smoothclir.utils.errors import InputError


def test_the_thirteen_systems_are_those_of_the_paper_and_ours_say_so():
    _, *table_3 = experiments.PAPER_TABLES["yu2020_table3"]
    assert [system.name for system in experiments.PAPER] == [name for name, *_ in table_3]
    assert len(table_3) == 13
    assert {system.eta for system in experiments.PAPER} == {0.3}  # the paper's best
    ours = [*experiments.OURS, *experiments.PRESET_SYSTEMS]
    assert all(system.name.endswith("(ours)") for system in ours)
    for table in experiments.PAPER_TABLES.values():
        assert len({len(row) for row in table}) == 1
    # Against slips in copying: what the paper says of its figures holds in them.
    ours = {name: np.array(values, float) for name, *values in table_3}
    for model in ("MP", "DRMM", "KNRM"):
        assert (ours[f"{model}-Cosine"] > ours[f"{model}-TbT-QT"]).all()
    assert all((ours["DRMM-Cosine"] >= values).all() for values in ours.values())
    assert (ours["BWE-Agg-IDF"] > ours["BWE-Agg-Add"]).all()
    assert (ours["TbT-QT-QL"] > ours["TbT-QT-BM25"]).all()
    means = [ours[name].mean().round(3) for name in ("BWE-Agg-Add", "MP-Cosine", "DRMM-Cosine")]
    assert means == [0.219, 0.339, 0.373]


def test_options_without_effect_do_not_change_what_is_computed():
    study = study_in(".", matching=MatchingOptions("given", 5, 9, 3, 6, 60))
    options = {row.name: row.cells(study)[0].options for row in experiments.PAPER}
    assert options["BWE-Agg-Add"] == MatchingOptions("given", 5)
    assert options["KNRM-Cosine"] == MatchingOptions("given", 5, 9)
    assert options["MP-Hybrid"] == MatchingOptions("given", 5, 50, 3, 6, 60)


def test_claims_hold_are_reversed_or_are_beyond_what_the_queries_can_tell():
    low, high = np.full(200, 0.4), np.full(200, 0.6)
    noise = np.tile([0.3, 0.5], 100)
    pairs = {"MP": (high, low + 0.05), "KNRM": (low, high), "DRMM": (low, noise)}
    rows = {f"{name}-Cosine": one for name, (one, _) in pairs.items()}
    rows |= {f"{name}-TbT-QT": other for name, (_, other) in pairs.items()}
    rows["BWE-Agg-Add"] = noise
    queries = tuple(map(str, range(200)))
    found = {name: RunMetrics(queries, {"MAP": of}, 0, 0, 0) for name, of in rows.items()}
    table = tables.claims_table(found, {name: values.mean() for name, values in rows.items()})
    verdicts = {row[1]: row[4] for row in table.rows}
    assert verdicts["MP-Cosine - MP-TbT-QT"] == "holds"
    assert verdicts["KNRM-Cosine - KNRM-TbT-QT"] == "the reverse"
    assert verdicts["DRMM-Cosine - DRMM-TbT-QT"].startswith("no difference beyond chance")
    # The lowest neural row, and the best unsupervised one.
    assert table.rows[0][1] == "KNRM-Cosine - BWE-Agg-Add"


def test_moments_and_shares_by_hand():
    """Cosines 1, 0, 0, 1, 0.6, 0.8: mean 3.4/6, mean square 3/6."""
    rows = np.array([[1, 0], [0, 1]], np.float32)
    found = figure1.similarities(rows, np.array([[1, 0], [0, 1], [0.6, 0.8]], np.float32))
    values = np.array([1, 0, 0.6, 0, 1, 0.8])
    assert found.counts.sum() == 6
    assert found.mean == pytest.approx(3.4 / 6)
    assert found.deviation == pytest.approx(np.sqrt(3 / 6 - (3.4 / 6) ** 2))
    assert found.skew == pytest.approx((((values - 3.4 / 6) / values.std()) ** 3).mean(), abs=1e-5)
    shares = [found.share_from(eta) for eta in (-1, 0.6, 0.61, 0.8, 0.9)]
    assert shares == pytest.approx([1, 4 / 6, 3 / 6, 3 / 6, 2 / 6])


def test_in_rotations_every_judged_query_is_a_test_query_and_a_validation_query_once(small_set):
    judged = {"q1", "q2", "q3", "q4", "q5", "q6", "q8"}
    sets = rotated_sets(small_set, 3, 13)
    for split in ("test", "validation"):
        parts = [ids(one, split) for one in sets]
        assert set().union(*parts) == judged
        assert sum(map(len, parts)) == len(judged)
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
    for one in sets:
        assert ids(one, "train") == judged - ids(one, "validation") - ids(one, "test")
    # Of 5 folds, rotation r trains with r, r+1, r+2, validates with r+3 and tests r+4.
    for before, after in zip(sets, [*sets[1:], sets[0]], strict=True):
        assert ids(after, "validation") == ids(before, "test")
    for folds in (2, 8):
        with pytest.raises(InputError, match="Use 3 to"):
            rotated_sets(small_set, folds, 13)
