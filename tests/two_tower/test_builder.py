"""Building the model of the settings, and starting it from pre-trained vectors."""

import dataclasses

import numpy as np
import pytest

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.losses.ordinal import ThreePartL2
from tf_smoothclir.settings.given import objects_text
from tf_smoothclir.settings.model import ModelSettings
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.settings.training import TrainingSettings
from tf_smoothclir.two_tower.builder import build_model, load_pretrained
from tf_smoothclir.utils.errors import InputError

VOCABULARIES = {
    "query": ["[PAD]", "[UNK]", "cat", "dog", "sea"],
    "document": ["[PAD]", "[UNK]", "chat", "chien", "mer", "ciel"],
}
GIVEN = objects_text(loss=ThreePartL2())
FROZEN = {f"train_{role}_embeddings": False for role in ROLES}


def settings(seed=13, **model):
    return RunSettings(
        model=ModelSettings(**{"dim": 2, **model}), training=TrainingSettings(seed=seed)
    )


def tables(model):
    return {role: getattr(model, f"{role}_tower").embeddings.numpy() for role in ROLES}


def test_seed_and_role_decide_the_first_vectors():
    words = dict.fromkeys(ROLES, VOCABULARIES["query"])
    first, again, other = (tables(build_model(settings(s), words)) for s in (1, 1, 2))
    for role in ROLES:
        np.testing.assert_array_equal(first[role], again[role])
        assert (first[role] != other[role]).all()
    assert (first["query"] != first["document"]).all()


def test_tables_of_ngrams_begin_with_other_vectors_and_freeze_with_their_words():
    frozen, text = settings(train_query_embeddings=False), TextSettings(ngram_buckets=5)
    model = build_model(dataclasses.replace(frozen, text=text), VOCABULARIES)
    assert model.query_tower.trainable_weights == []
    assert len(model.document_tower.trainable_weights) == 2
    assert len({weight.numpy()[-1].tobytes() for weight in model.weights}) == 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loss": "three_part_l2", "thresholds": (0.2,)}, r"--cut_points: .* 3 grades, .* make 2"),
        (
            {"loss": "given", "objects": GIVEN, "thresholds": (0.2,)},
            r"--thresholds: .* 3 grades, .* make 2",
        ),
        ({"loss": "softmax", "temperature": 0.0}, "--loss, --temperature: temperature must be"),
        ({"thresholds": (0.7, 0.2)}, "--loss, --thresholds: thresholds must be"),
    ],
)
def test_settings_that_cannot_be_used_are_named(changes, message):
    batching = "lists" if changes.get("loss") == "softmax" else "pairs"
    with pytest.raises(InputError, match=message):
        build_model(changed(RunSettings(), {"batching": batching, **changes}), VOCABULARIES)


@pytest.mark.parametrize("changes", [{}, {"tower": "cnn"}, {"tower": "lstm"}])
def test_frozen_word_vectors_freeze_nothing_else(changes):
    for role in ROLES:
        freezing = {f"train_{role}_embeddings": False}
        model = build_model(settings(**changes, **freezing), VOCABULARIES)
        frozen = getattr(model, f"{role}_tower")
        others = {id(weight) for weight in frozen.trainable_weights}
        assert id(frozen.embeddings) not in others
        assert bool(others) == bool(changes)
        assert len(model.trainable_weights) > len(others)  # those of the other tower
    for kept in ({"token_weights": "learned"}, {"tower": "cnn"}):
        assert build_model(settings(**FROZEN, **kept), VOCABULARIES).trainable_weights


def load_vectors(path, content, **text):
    """The tables before document vectors are read, then the model."""
    path.write_text(content)
    run_settings = settings(document_embeddings=str(path))
    run_settings = dataclasses.replace(run_settings, text=TextSettings(**text))
    model = build_model(run_settings, VOCABULARIES)
    before = tables(model)
    load_pretrained(model, run_settings, VOCABULARIES)
    return before, model


def test_pretrained_vectors_are_loaded_and_reported(tmp_path, caplog):
    # word2vec text: 3 of the document words are in it, "ciel" is not.
    path, content = tmp_path / "fr.vec", "4 2\nchat 1 2\nchien 3 4\nmer 5 6\noiseau 7 8\n"
    with caplog.at_level("INFO", logger="absl"):
        before, model = load_vectors(path, content)
    found = tables(model)
    np.testing.assert_array_equal(found["document"][2:5], [[1, 2], [3, 4], [5, 6]])
    np.testing.assert_array_equal(found["document"][0], [0, 0])  # padding
    assert (found["document"][5] != 0).all()
    np.testing.assert_array_equal(found["query"], before["query"])
    assert f"Document vectors: 3 of 4 words (75.0%) found in {path}" in caplog.text
    # Pre-trained words begin without noise of n-grams.
    _, model = load_vectors(path, content, ngram_buckets=7)
    np.testing.assert_array_equal(model.document_tower.ngram_embeddings, np.zeros([7, 2]))
    assert (model.query_tower.ngram_embeddings.numpy() != 0).all()
    with pytest.raises(InputError, match="dimension 3"):
        load_vectors(path, "1 3\nchat 1 2 3\n")


def test_a_shared_vocabulary_is_one_tower_whose_table_does_not_differ_between_languages():
    words, text = dict.fromkeys(ROLES, VOCABULARIES["query"]), TextSettings(shared_vocabulary=True)
    found = build_model(dataclasses.replace(settings(), text=text), words)
    assert found.query_tower is found.document_tower
    assert len(found.trainable_weights) == 1
