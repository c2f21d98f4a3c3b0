"""The model that translates queries: what it keeps, and runs with it."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import scipy.sparse as sp

from tests.training.tiny_set import tiny_settings, write_tiny_set
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.lexical.rankers.bm25 import Bm25
from tf_smoothclir.lexical.rankers.query_likelihood import QueryLikelihood
from tf_smoothclir.lexical.translated_queries import TranslatedQueries
from tf_smoothclir.utils.errors import InputError

TRANSLATION = sp.csr_array(np.array([[0, 0.25, 0.75], [0, 1, 0]], np.float32))


@pytest.mark.parametrize(
    "model",
    [
        TranslatedQueries(Bm25(0.9, 0.4), "table", TRANSLATION, 1.5),
        TranslatedQueries(QueryLikelihood(30.0), "human", None),
    ],
)
def test_a_saved_model_comes_back(model, tmp_path):
    model.save(tmp_path / "lexical")
    found = TranslatedQueries.load(tmp_path / "lexical")
    assert (found.ranker, found.query_translation) == (model.ranker, model.query_translation)
    assert found.choices() == model.choices() == json.loads(json.dumps(model.choices()))
    if model.translation is None:
        assert found.translation is None
    else:
        assert found.translation.dtype == np.float32
        np.testing.assert_array_equal(found.translation.toarray(), TRANSLATION.toarray())


@pytest.mark.parametrize(
    ("old", "new"),
    [('"bm25"', '"bm26"'), ('"k1"', '"k2"'), ("0.9", '"much"'), ('"ranker"', '"name"')],
)
def test_a_damaged_file_is_named(tmp_path, old, new):
    TranslatedQueries(Bm25(0.9, 0.4), "table", TRANSLATION).save(tmp_path / "lexical")
    path = tmp_path / "lexical" / "lexical.json"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InputError, match=r"lexical\.json: .*Restore the file, or train again"):
        TranslatedQueries.load(path.parent)


def test_a_set_without_translated_queries_says_which_file_is_missing(tmp_path):
    settings = tiny_settings(write_tiny_set(tmp_path / "tiny"), tmp_path / "cache")
    source = source_of(settings.data)
    with pytest.raises(InputError, match=r"wiki_fr\.queries: there is no such file.*Put one there"):
        list(source.translated_queries())
    (tmp_path / "tiny" / "wiki_fr.queries").write_text("0\tTitre\tmot1 mot2\n")
    assert [tuple(text) for text in source.translated_queries()] == [("0", "Titre", "mot1 mot2")]


def test_another_kind_of_set_says_what_it_would_take():
    source = source_of(tiny_settings("", "").data)
    message = "the set has no queries in fr. Give a set .*wiki_fr.queries.*--query_translation"
    with pytest.raises(InputError, match=message):
        source.translated_queries()


def test_a_model_describes_itself():
    model = TranslatedQueries(Bm25(0.9, 0.4), "table", TRANSLATION)
    assert model.describe() == (
        "bm25 (k1 = 0.9, b = 0.4), translation of queries: table, at most 2 words for one"
    )
    assert re.match(r"k1 = 0.9, b = 0.4, in 0 s", model.facts()["chosen on validation"])
