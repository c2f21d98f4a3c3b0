"""A lexical model: what it keeps, and documents as it sees them."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from tests.lexical.helpers import words
from tf_smoothclir.lexical.model import LexicalModel
from tf_smoothclir.lexical.positions import FLAT, PositionProfile
from tf_smoothclir.lexical.psq import PsqSettings, impacts
from tf_smoothclir.utils.errors import InputError

TABLE = np.array([[0, 0, 0], [0, 0.75, 0.25], [0, 0, 1], [0, 0, 0]], np.float32)
BACKGROUND = np.array([0.1, 0.5, 0.4], np.float32)
PROFILE = PositionProfile(2.0, 1.5)


@pytest.fixture
def model():
    return LexicalModel(
        table=sp.csr_array(TABLE),
        background=BACKGROUND,
        fields=(PROFILE, FLAT),
        weights=np.array([[1, 2, 3], [0.5, 0.25, 0]], np.float32),
        feedback=12.5,
        psq=PsqSettings(alpha=0.1, beta=0.2),
        seconds=1.5,
        dictionary=0.3,
        lower_grades=0.03,
        length_power=-0.5,
        mean_length=2.0,
    )


def test_a_saved_model_comes_back_to_the_last_bit(model, tmp_path):
    model.save(tmp_path / "lexical")
    found = LexicalModel.load(tmp_path / "lexical")
    assert found.table.dtype == np.float32
    np.testing.assert_array_equal(found.table.toarray(), TABLE)
    for name in ("background", "weights"):
        assert getattr(found, name).dtype == np.float32
        np.testing.assert_array_equal(getattr(found, name), getattr(model, name))
    for name in (
        "fields",
        "feedback",
        "psq",
        "seconds",
        "dictionary",
        "lower_grades",
        "length_power",
        "mean_length",
    ):
        assert getattr(found, name) == getattr(model, name)
    assert found.choices() == model.choices()


def test_a_damaged_file_is_named(model, tmp_path):
    model.save(tmp_path / "lexical")
    path = tmp_path / "lexical" / "lexical.json"
    path.write_text(path.read_text().replace("12.5", '"much"'))
    with pytest.raises(InputError, match=r"lexical\.json: feedback must be a number.*train again"):
        LexicalModel.load(path.parent)


def test_a_pickle_is_not_opened(model, tmp_path):
    class Bomb:
        def __reduce__(self):
            return (tmp_path.joinpath("opened").mkdir, ())

    model.save(tmp_path / "lexical")
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


def test_impacts_are_the_weighted_sum_of_those_of_the_fields(model):
    documents = words([1, 2, 0, 1], [3], [], size=4)
    spelling = sp.csr_array(np.eye(4, 3, dtype=np.float32))
    found = model.impacts(documents, spelling).toarray()
    expected = sum(
        impacts(documents.matrix(field), model.table, spelling, BACKGROUND, model.psq).toarray()
        * weights
        for field, weights in zip(model.fields, model.weights)
    )
    # Four, one and no words, where the mean is two; an empty text counts as one of one word.
    expected *= np.array([[0.5], [2], [2]]) ** 0.5
    assert found == pytest.approx(expected)
    assert found[0, 1] > 0
    assert not found[1:].any()  # word 3 stands for nothing


def test_its_choices_are_json(model):
    assert json.loads(json.dumps(model.choices())) == {
        "translations": 3,
        "fields": [{"height": 2.0, "decay": 1.5}, {"height": 0.0, "decay": 1.0}],
        "dictionary": 0.3,
        "lower_grades": 0.03,
        "length_power": -0.5,
        "feedback": 12.5,
        "seconds": 1.5,
    }
