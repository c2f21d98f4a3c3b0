"""Which sets the flags name."""

import pytest

from tests.training.tiny_set import write_tiny_set
from tf_smoothclir.papers.laboratory.sets import data_settings, open_sets
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.utils.errors import InputError

BASE = DataSettings()


@pytest.fixture
def tiny_dir(tmp_path):
    """A set with documents in French alone."""
    return write_tiny_set(tmp_path / "tiny")


@pytest.fixture
def two_languages(tiny_dir):
    """The same documents in Italian too."""
    for name, other in (("wiki_fr.documents", "wiki_it.documents"), ("en2fr.rel", "en2it.rel")):
        (tiny_dir / other).write_bytes((tiny_dir / name).read_bytes())
    return str(tiny_dir)


def named(*arguments, **options):
    found = data_settings(BASE, *arguments, **options)
    return [(one.data_dir, one.tfds_name, one.document_language) for one in found]


def test_without_a_directory_it_is_the_toy_world_or_tfds():
    assert named() == [("", "", BASE.document_language)]
    assert named(languages=["it", "sw"]) == [("", "", "it"), ("", "", "sw")]
    assert named(tfds_names=["wiki_clir/fr"])[0][1] == "wiki_clir/fr"


def test_the_only_language_of_a_directory_need_not_be_named(tiny_dir):
    (tiny_dir / "wiki_fr.documents").rename(tiny_dir / "wiki_tl.documents")
    assert named([str(tiny_dir)]) == [(str(tiny_dir), "", "tl")]


def test_several_languages_of_a_directory_are_several_sets(two_languages):
    found = named([two_languages], languages=["it", "fr", "tl"])
    assert found == [(two_languages, "", "fr"), (two_languages, "", "it")]
    for languages in ([], ["tl"]):
        with pytest.raises(InputError, match="fr, it"):
            named([two_languages], languages=languages)


def test_a_directory_of_the_users_own_has_one_language(tmp_path):
    assert named([str(tmp_path)], languages=["de"]) == [(str(tmp_path), "", "de")]
    with pytest.raises(InputError, match="in one language, but the flags name de, sw"):
        named([str(tmp_path)], languages=["de", "sw"])


def test_a_set_in_the_layout_of_wikiclir_is_not_the_papers_and_is_named_once(tiny_dir, tmp_path):
    base = changed(RunSettings(), {"cache_dir": str(tmp_path / "cache")})
    data = data_settings(base.data, [str(tiny_dir)])
    (found,) = open_sets(base, data)
    assert (found.name, found.published) == ("tiny-en-fr", "")
    assert found.settings.data.data_dir == str(tiny_dir)
    with pytest.raises(InputError, match="tiny-en-fr"):
        open_sets(base, data * 2)
