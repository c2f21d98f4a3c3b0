"""Every table and figure of the paper has an experiment with valid settings; the sets of flags."""

import shutil

import pytest

from tests.training.tiny_set import write_tiny_set
from tf_smoothclir.papers.laboratory.catalogue import EXPERIMENTS
from tf_smoothclir.papers.laboratory.sets import data_settings, open_sets
from tf_smoothclir.papers.liu2020.paper_numbers import paper_values
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.presets import PAPER_TOWERS, changed, preset_settings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.utils.errors import InputError

TRAINED = [name for name, experiment in EXPERIMENTS.items() if experiment.systems]
OF_PAPERS = "table1 table2 table3 figure1 figure2 figure3 figure4 figure5 theory li2018_table1"
OF_PAPERS += " li2018_table2 li2018_table3 yu2020_table1 yu2020_table2 yu2020_table3 yu2020_figure1"


def test_every_table_and_figure_of_the_papers_is_there():
    assert EXPERIMENTS.keys() >= {*OF_PAPERS.split()}
    assert len(TRAINED) == 17


@pytest.mark.parametrize("name", TRAINED)
def test_systems_differ_and_have_valid_settings(name):
    systems = EXPERIMENTS[name].systems
    assert len({system.name for system in systems}) == len(systems)
    files = {"query_embeddings": "q.vec", "document_embeddings": "d.vec"}
    shown = {
        (changed(RunSettings(), {**files, **system.changes}, varied=files), system.part)
        for system in systems
    }
    assert len(shown) == len(systems)
    for of_paper in paper_values(name).values():
        assert [one.name for one in systems if one.name in of_paper] == list(of_paper)


def test_a_row_of_the_ablation_is_named_for_what_it_takes_from_the_dense_preset():
    systems = {system.name: system.changes for system in EXPERIMENTS["ablation"].systems}
    dense = systems["--preset=dense"]
    rows = [name for name in systems if name.startswith("--preset=dense --")]
    assert len(rows) > 8
    for name in rows:
        flags = {flag.partition("=")[0] for flag in name.split(" --")[1:]}
        assert {key for key, v in systems[name].items() if v != dense.get(key)} == flags


def test_towers_of_table_3_are_those_of_the_papers_preset():
    for system in EXPERIMENTS["table3"].systems[1:]:
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
    tiny_dir = write_tiny_set(tmp_path / "tiny")
    base = changed(RunSettings(), {"cache_dir": str(tmp_path / "cache")})
    data = data_settings(base.data, [str(tiny_dir)])
    (found,) = open_sets(base, data)
    assert (found.name, found.published) == ("tiny-en-fr", "")
    assert found.settings.data.data_dir == str(tiny_dir)
    with pytest.raises(InputError, match="tiny-en-fr"):
        open_sets(base, data * 2)
