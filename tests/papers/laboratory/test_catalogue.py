"""Every table and figure of the papers has an experiment with valid settings; sets are opened."""

import dataclasses

import pytest

from tests.cases import cases
from tests.papers.laboratory.fakes import study_in
from tests.training.tiny_set import tiny_settings, write_tiny_set
from tf_smoothclir.papers.laboratory.catalogue import EXPERIMENTS
from tf_smoothclir.papers.laboratory.reproduce import opened
from tf_smoothclir.papers.liu2020.paper_numbers import paper_tables
from tf_smoothclir.papers.yu2020.options import MatchingOptions
from tf_smoothclir.settings.presets import PAPER_TOWERS, preset_settings
from tf_smoothclir.utils.errors import InputError

OF_PAPERS = "table1 table2 table3 figure1 figure2 figure3 figure4 figure5 yu2020_table1"
OF_PAPERS += " yu2020_table2 yu2020_table3 yu2020_figure1 li2018_table1 li2018_table2 li2018_table3"


def test_every_table_and_figure_of_the_papers_is_there():
    assert list(EXPERIMENTS) == [*OF_PAPERS.split(), "li2018_pooled"]


@cases("name", *(name for name, one in EXPERIMENTS.items() if one.rows))
def test_rows_differ_and_have_valid_settings(name, tmp_path):
    study, rows = study_in(tmp_path), EXPERIMENTS[name].rows
    assert len({row.name for row in rows}) == len(rows)
    for row in rows:
        row.check(study.settings, 1)
    cells = {cell.name for row in rows for cell in row.cells(study)}
    assert len(cells) == len(rows)
    if name in ("table2", "table3"):
        theirs = dict.fromkeys(row[1] for row in paper_tables(name, comparable=False)[0].rows)
        assert [row.name for row in rows if row.name in theirs] == list(theirs)


def test_towers_of_table_3_are_those_of_the_papers_preset():
    for system in EXPERIMENTS["table3"].rows[1:]:
        tower = system.changes["tower"]
        paper = preset_settings("paper", {"tower": tower}).values()
        assert system.changes.items() <= {**paper, "loss": "sosl"}.items(), tower
        assert PAPER_TOWERS[tower].items() <= system.changes.items()


def test_a_set_in_the_layout_of_wikiclir_is_not_the_papers_and_has_a_query_for_each_fold(tmp_path):
    study = study_in(tmp_path, tiny_settings(write_tiny_set(tmp_path / "tiny"), tmp_path / "cache"))
    found = opened(study)
    assert (found.name, found.is_published) == ("tiny-en-fr", False)
    assert found.fingerprint != study.fingerprint
    folds = dataclasses.replace(study, matching=MatchingOptions(matching_folds=99))
    with pytest.raises(InputError, match="--matching_folds=99: there are 20 jud"):
        opened(folds)
