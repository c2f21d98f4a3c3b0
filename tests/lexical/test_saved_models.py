"""Lexical models: what they keep on disk, and documents as they see them."""

import json
import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp

from tests.lexical.helpers import words
from tests.training.tiny_set import tiny_settings, write_tiny_set
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.lexical.model import LexicalModel
from tf_smoothclir.lexical.positions import FLAT, PositionProfile
from tf_smoothclir.lexical.psq import PsqSettings, impacts
from tf_smoothclir.lexical.rankers.bm25 import Bm25
from tf_smoothclir.lexical.rankers.query_likelihood import QueryLikelihood
from tf_smoothclir.lexical.translated_queries import TranslatedQueries
from tf_smoothclir.utils.errors import InputError

TABLE = np.array([[0, 0, 0], [0, 0.75, 0.25], [0, 0, 1], [0, 0, 0]], np.float32)
BACKGROUND = np.array([0.1, 0.5, 0.4], np.float32)
MODEL = LexicalModel(
    table=sp.csr_array(TABLE),
    background=BACKGROUND,
    fields=(PositionProfile(2.0, 1.5), FLAT),
    weights=np.array([[1, 2, 3], [0.5, 0.25, 0]], np.float32),
    feedback=12.5,
    psq=PsqSettings(alpha=0.1, beta=0.2),
    seconds=1.5,
    dictionary=0.3,
    lower_grades=0.03,
    length_power=-0.5,
    mean_length=2.0,
)
TRANSLATION = sp.csr_array(np.array([[0, 0.25, 0.75], [0, 1, 0]], np.float32))
BM25_BY_TABLE = TranslatedQueries(Bm25(0.9, 0.4), "table", TRANSLATION, 1.5)
LIKELIHOOD_BY_HUMANS = TranslatedQueries(QueryLikelihood(30.0), "human", None)


@pytest.mark.parametrize("model", [MODEL, BM25_BY_TABLE, LIKELIHOOD_BY_HUMANS])
def test_a_saved_model_comes_back_to_the_last_bit(model, tmp_path):
    model.save(tmp_path / "lexical")
    found = type(model).load(tmp_path / "lexical")
    assert vars(found).keys() == vars(model).keys()
    for name, expected in vars(model).items():
        value = getattr(found, name)
        if sp.issparse(expected):
            value, expected = value.toarray(), expected.toarray()
        if isinstance(expected, np.ndarray):
            assert value.dtype == np.float32
            np.testing.assert_array_equal(value, expected)
        else:
            assert value == expected
    assert found.choices() == model.choices()


def test_choices_are_json():
    assert json.loads(json.dumps(MODEL.choices())) == {
        "translations": 3,
        "fields": [{"height": 2.0, "decay": 1.5}, {"height": 0.0, "decay": 1.0}],
        "dictionary": 0.3,
        "lower_grades": 0.03,
        "length_power": -0.5,
        "feedback": 12.5,
        "seconds": 1.5,
    }
    assert json.loads(json.dumps(BM25_BY_TABLE.choices())) == BM25_BY_TABLE.choices()
    assert BM25_BY_TABLE.describe() == (
        "bm25 (k1 = 0.9, b = 0.4), translation of queries: table, at most 2 words for one"
    )
    facts = BM25_BY_TABLE.facts()
    assert re.match(r"k1 = 0.9, b = 0.4, in 2 s", facts["chosen on validation"])


@pytest.mark.parametrize(
    ("model", "old", "new", "reason"),
    [
        (MODEL, "12.5", '"much"', "feedback must be a number"),
        (BM25_BY_TABLE, '"bm25"', '"bm26"', ""),
        (BM25_BY_TABLE, '"k1"', '"k2"', ""),
        (BM25_BY_TABLE, "0.9", '"much"', ""),
        (BM25_BY_TABLE, '"ranker"', '"name"', ""),
    ],
)
def test_a_damaged_file_is_named(tmp_path, model, old, new, reason):
    model.save(tmp_path / "lexical")
    path = tmp_path / "lexical" / "lexical.json"
    path.write_text(path.read_text().replace(old, new))
    message = rf"lexical\.json: {reason}.*Restore the file, or train again"
    with pytest.raises(InputError, match=message):
        type(model).load(path.parent)


def test_a_pickle_is_not_opened(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (tmp_path.joinpath("opened").mkdir, ())

    MODEL.save(tmp_path / "lexical")
    path = tmp_path / "lexical" / "lexical.npz"
    with np.load(path) as arrays:
        content = dict(arrays)
    np.savez(path, **{**content, "weights": np.array([Bomb()], object)})
    with pytest.raises(ValueError, match="allow_pickle=False"):
        LexicalModel.load(path.parent)
    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ValueError, match="pickle"):
        LexicalModel.load(path.parent)
    assert not (tmp_path / "opened").exists()


def test_impacts_are_the_weighted_sum_of_those_of_the_fields():
    documents = words([1, 2, 0, 1], [3], [], size=4)
    spelling = sp.csr_array(np.eye(4, 3, dtype=np.float32))
    found = MODEL.impacts(documents, spelling).toarray()
    expected = sum(
        impacts(documents.matrix(field), MODEL.table, spelling, BACKGROUND, MODEL.psq).toarray()
        * weights
        for field, weights in zip(MODEL.fields, MODEL.weights)
    )
    # Four, one and no words, where the mean is two; an empty text counts as one of one word.
    expected *= np.array([[0.5], [2], [2]]) ** 0.5
    assert found == pytest.approx(expected)
    assert found[0, 1] > 0
    assert not found[1:].any()  # word 3 stands for nothing


def test_translated_queries_are_read_or_what_they_would_take_is_said(tmp_path):
    settings = tiny_settings(write_tiny_set(tmp_path / "tiny"), tmp_path / "cache")
    source = source_of(settings.data)
    with pytest.raises(InputError, match=r"wiki_fr\.queries: there is no such file.*Put one there"):
        list(source.translated_queries())
    (tmp_path / "tiny" / "wiki_fr.queries").write_text("0\tTitre\tmot1 mot2\n")
    assert [tuple(text) for text in source.translated_queries()] == [("0", "Titre", "mot1 mot2")]
    message = "the set has no queries in fr. Give a set .*wiki_fr.queries.*--query_translation"
    with pytest.raises(InputError, match=message):
        source_of(tiny_settings("", "").data).translated_queries()
