"""Every table and figure of the paper has an experiment with valid settings; the sets of flags."""

import shutil

import pytest

from tests.papers.laboratory.fakes import request_of, study_in
from tests.training.tiny_set import write_tiny_set
from tf_smoothclir.papers.laboratory.catalogue import EXPERIMENTS
from tf_smoothclir.papers.laboratory.sets import data_settings, studies_of
from tf_smoothclir.papers.liu2020.paper_numbers import paper_tables
from tf_smoothclir.papers.yu2020.options import MatchingOptions
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.presets import PAPER_TOWERS, changed, preset_settings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.utils.errors import InputError

OF_PAPERS = "table1 table2 table3 figure1 figure2 figure3 figure4 figure5 yu2020_table1"
OF_PAPERS += " yu2020_table2 yu2020_table3 yu2020_figure1 li2018_table1 li2018_table2 li2018_table3"


def test_every_table_and_figure_of_the_papers_is_there():
    assert list(EXPERIMENTS) == [*OF_PAPERS.split(), "li2018_pooled"]


@pytest.mark.parametrize("name", [name for name, one in EXPERIMENTS.items() if one.rows])
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


def named(*arguments, **options):
    found = data_settings(DataSettings(), *arguments, **options)
    return [(one.data_dir, one.tfds_name, one.document_language) for one in found]


def test_sets_and_languages_of_flags(tmp_path):
    assert named() == [("", "", DataSettings().document_language)]
    assert named(languages=["it", "sw"]) == [("", "", "it"), ("", "", "sw")]
    assert named(tfds_names=["wiki_clir/fr"])[0][1] == "wiki_clir/fr"
    tiny_dir = write_tiny_set(tmp_path / "tiny")  # with documents in French alone
    directory = str(tiny_dir)
    assert named([directory]) == [(directory, "", "fr")]  # the only one need not be named
    for name in ("wiki_{}.documents", "en2{}.rel"):
        shutil.copy(tiny_dir / name.format("fr"), tiny_dir / name.format("it"))
    found = named([directory], languages=["it", "fr", "tl"])
    assert found == [(directory, "", "fr"), (directory, "", "it")]
    for languages in ([], ["tl"]):
        with pytest.raises(InputError, match="fr, it"):
            named([directory], languages=languages)
    of_user = str(tmp_path / "own")
    assert named([of_user], languages=["de"]) == [(of_user, "", "de")]
    with pytest.raises(InputError, match="in one language, but the flags name de, sw"):
        named([of_user], languages=["de", "sw"])


def test_a_set_in_the_layout_of_wikiclir_is_not_the_papers_and_is_named_once(tmp_path):
    tiny_dir = str(write_tiny_set(tmp_path / "tiny"))
    base = changed(RunSettings(), {"cache_dir": str(tmp_path / "cache")})
    once = request_of(base, tmp_path, directories=[tiny_dir])
    (found,) = studies_of(once)
    assert (found.name, found.published) == ("tiny-en-fr", "")
    assert found.settings.data.data_dir == tiny_dir
    twice = request_of(base, tmp_path, directories=[tiny_dir] * 2)
    folds = request_of(base, tmp_path, directories=[tiny_dir], matching=MatchingOptions(folds=99))
    for wrong, message in ((twice, "tiny-en-fr"), (folds, "--matching_folds=99: there are 20 jud")):
        with pytest.raises(InputError, match=message):
            studies_of(wrong)
