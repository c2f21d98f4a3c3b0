"""Which sets the flags name."""

import pytest

from tests.training.tiny_set import write_tiny_set
from tf_smoothclir.papers.laboratory.sets import data_settings, open_sets
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.utils.errors import InputError

BASE = DataSettings()


def named(found):
    return [(one.data_dir, one.tfds_name, one.document_language) for one in found]


@pytest.fixture
def directory(tmp_path):
    """A set with documents in French alone."""
    return write_tiny_set(tmp_path / "tiny")


@pytest.fixture
def two_languages(directory):
    """The same documents in Italian too."""
    for name, other in (("wiki_fr.documents", "wiki_it.documents"), ("en2fr.rel", "en2it.rel")):
        (directory / other).write_bytes((directory / name).read_bytes())
    return directory


def test_without_flags_it_is_the_toy_world():
    assert named(data_settings(BASE)) == [("", "", BASE.document_language)]


def test_each_language_is_a_toy_world():
    assert named(data_settings(BASE, languages=["it", "sw"])) == [("", "", "it"), ("", "", "sw")]


def test_the_only_language_of_a_directory_need_not_be_named(directory):
    (directory / "wiki_fr.documents").rename(directory / "wiki_tl.documents")
    found = data_settings(BASE, [str(directory)])
    assert named(found) == [(str(directory), "", "tl")]


def test_several_languages_of_a_directory_are_several_sets(two_languages):
    found = data_settings(BASE, [str(two_languages)], languages=["it", "fr", "tl"])
    assert [one.document_language for one in found] == ["fr", "it"]


@pytest.mark.parametrize("languages", [[], ["tl"]])
def test_an_ambiguous_language_is_an_error(two_languages, languages):
    with pytest.raises(InputError, match="fr, it"):
        data_settings(BASE, [str(two_languages)], languages=languages)


def test_a_directory_of_the_users_own_has_one_language(tmp_path):
    found = data_settings(BASE, [str(tmp_path)], languages=["de"])
    assert [one.document_language for one in found] == ["de"]
    with pytest.raises(InputError, match="in one language, but the flags name de, sw"):
        data_settings(BASE, [str(tmp_path)], languages=["de", "sw"])


def test_datasets_of_tfds_are_sets():
    assert named(data_settings(BASE, tfds_names=["wiki_clir/fr"]))[0][1] == "wiki_clir/fr"


def test_a_set_in_the_layout_of_wikiclir_is_not_taken_for_the_papers(directory, tmp_path):
    base = changed(RunSettings(), {"cache_dir": str(tmp_path / "cache")})
    (found,) = open_sets(base, data_settings(base.data, [str(directory)]))
    assert (found.name, found.published) == ("tiny-en-fr", "")
    assert found.settings.data.data_dir == str(directory)


def test_two_sets_with_the_same_name_are_an_error(directory, tmp_path):
    base = changed(RunSettings(), {"cache_dir": str(tmp_path / "cache")})
    with pytest.raises(InputError, match="tiny-en-fr"):
        open_sets(base, data_settings(base.data, [str(directory)]) * 2)
