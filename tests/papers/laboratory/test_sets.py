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


def named(*arguments, **options):
    found = data_settings(BASE, *arguments, **options)
    return [(one.data_dir, one.tfds_name, one.document_language) for one in found]


def test_without_a_directory_it_is_the_toy_world_or_tfds():
    assert named() == [("", "", BASE.document_language)]
    assert named(languages=["it", "sw"]) == [("", "", "it"), ("", "", "sw")]
    assert named(tfds_names=["wiki_clir/fr"])[0][1] == "wiki_clir/fr"


def test_languages_of_a_directory(tiny_dir, tmp_path):
    directory = str(tiny_dir)
    assert named([directory]) == [(directory, "", "fr")]  # the only one need not be named
    for name, other in (("wiki_fr.documents", "wiki_it.documents"), ("en2fr.rel", "en2it.rel")):
        (tiny_dir / other).write_bytes((tiny_dir / name).read_bytes())
    found = named([directory], languages=["it", "fr", "tl"])
    assert found == [(directory, "", "fr"), (directory, "", "it")]
    for languages in ([], ["tl"]):
        with pytest.raises(InputError, match="fr, it"):
            named([directory], languages=languages)
    of_user = str(tmp_path)
    assert named([of_user], languages=["de"]) == [(of_user, "", "de")]
    with pytest.raises(InputError, match="in one language, but the flags name de, sw"):
        named([of_user], languages=["de", "sw"])


def test_a_set_in_the_layout_of_wikiclir_is_not_the_papers_and_is_named_once(tiny_dir, tmp_path):
    base = changed(RunSettings(), {"cache_dir": str(tmp_path / "cache")})
    data = data_settings(base.data, [str(tiny_dir)])
    (found,) = open_sets(base, data)
    assert (found.name, found.published) == ("tiny-en-fr", "")
    assert found.settings.data.data_dir == str(tiny_dir)
    with pytest.raises(InputError, match="tiny-en-fr"):
        open_sets(base, data * 2)
