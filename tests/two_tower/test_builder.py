"""Building the model of the settings, and starting it from pre-trained vectors."""

import dataclasses

import numpy as np
import pytest

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.plugins import LOSSES
from tf_smoothclir.settings.model import ModelSettings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.settings.training import TrainingSettings
from tf_smoothclir.two_tower.builder import build_model, configured_loss, load_pretrained
from tf_smoothclir.utils.errors import InputError

VOCABULARIES = {
    "query": ["[PAD]", "[UNK]", "cat", "dog", "sea"],
    "document": ["[PAD]", "[UNK]", "chat", "chien", "mer", "ciel"],
}


def settings(seed=13, **model):
    return RunSettings(
        model=ModelSettings(**{"dim": 2, **model}), training=TrainingSettings(seed=seed)
    )


def tables(model):
    return {role: getattr(model, f"{role}_tower").embeddings.numpy() for role in ROLES}


def test_sizes_epsilon_loss_and_optimizer_are_those_of_the_settings():
    model = build_model(settings(epsilon=0.25, thresholds=(-0.1, 0.4)), VOCABULARIES)
    assert {role: table.shape for role, table in tables(model).items()} == {
        "query": (5, 2),
        "document": (6, 2),
    }
    assert model.similarity.epsilon == 0.25
    assert model.loss.thresholds == (-0.1, 0.4)
    assert model.optimizer.learning_rate.numpy() == pytest.approx(0.01)
    assert model.clip_norm == 5.0


def test_same_seed_same_bits_and_other_seed_others():
    first, again, other = (tables(build_model(settings(s), VOCABULARIES)) for s in (1, 1, 2))
    for role in ROLES:
        np.testing.assert_array_equal(first[role], again[role])
        assert (first[role] != other[role]).all()


def test_towers_begin_with_different_vectors():
    found = tables(build_model(settings(), dict.fromkeys(ROLES, VOCABULARIES["query"])))
    assert (found["query"] != found["document"]).all()


def test_tower_that_reads_word_order_has_no_weights_of_tokens():
    with pytest.raises(InputError, match=r"--token_weights=idf --tower=lstm: .* Leave one"):
        build_model(settings(tower="lstm", token_weights="idf"), VOCABULARIES)


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_is_built_with_its_settings(name):
    values = {
        "thresholds": (-0.1, 0.4),
        "temperature": 0.25,
        "cut_points": (-0.2, 0.1, 0.3),
        "lower_grade_weight": 0.4,
    }
    model, lists = ModelSettings(loss=name, **values), TrainingSettings(batching="lists")
    loss = configured_loss(RunSettings(model=model, training=lists))
    assert type(loss) is LOSSES[name]
    assert {key: getattr(loss, key) for key in loss.settings} == {
        key: values[key] for key in loss.settings
    }


@pytest.mark.parametrize("name", LOSSES)
def test_listwise_losses_and_no_others_are_refused_for_pairs(name):
    settings = RunSettings(model=ModelSettings(loss=name))
    if not LOSSES[name].needs_lists:
        configured_loss(settings)
        return
    with pytest.raises(InputError, match=rf"^--loss={name} --batching=pairs: .* --batching=lists"):
        build_model(settings, VOCABULARIES)


def test_loss_for_three_grades_refuses_thresholds_for_two():
    settings = RunSettings(model=ModelSettings(loss="three_part_l2", thresholds=(0.2,)))
    with pytest.raises(
        InputError,
        match=r"^--loss, --thresholds, --cut_points: .* is for 3 grades, .*\(0\.2,\) make 2",
    ):
        configured_loss(settings)


def test_temperature_zero_is_named():
    settings = RunSettings(
        model=ModelSettings(loss="softmax", temperature=0.0),
        training=TrainingSettings(batching="lists"),
    )
    with pytest.raises(InputError, match=r"^--loss, --temperature: temperature must be"):
        configured_loss(settings)


@pytest.mark.parametrize("tower", ["average_pooling", "cnn", "lstm"])
@pytest.mark.parametrize("role", ROLES)
def test_frozen_word_vectors_freeze_nothing_else(tower, role):
    model = build_model(settings(tower=tower, **{f"train_{role}_embeddings": False}), VOCABULARIES)
    frozen = getattr(model, f"{role}_tower")
    others = {id(w) for w in frozen.trainable_weights}
    assert id(frozen.embeddings) not in others
    assert bool(others) == (tower != "average_pooling")


@pytest.mark.parametrize("thresholds", [(0.7, 0.2), (0.2, 0.2), (0.2, 1.0), ()])
def test_thresholds_that_cannot_be_used_are_named(thresholds):
    with pytest.raises(InputError, match=r"^--loss, --thresholds: thresholds must be"):
        configured_loss(RunSettings(model=ModelSettings(thresholds=thresholds)))


def test_nothing_left_to_train_is_an_error():
    frozen = settings(train_query_embeddings=False, train_document_embeddings=False)
    with pytest.raises(InputError, match=r"nothing is left to train.*at least one"):
        build_model(frozen, VOCABULARIES)


@pytest.mark.parametrize("kept", [{"token_weights": "learned"}, {"tower": "cnn"}])
def test_frozen_word_vectors_leave_other_weights_to_train(kept):
    frozen = {f"train_{role}_embeddings": False for role in ROLES}
    model = build_model(settings(**frozen, **kept), VOCABULARIES)
    assert model.trainable_weights


@pytest.mark.parametrize("role", ROLES)
def test_one_frozen_tower_leaves_the_other_trainable(role):
    model = build_model(settings(**{f"train_{role}_embeddings": False}), VOCABULARIES)
    other = {"query": "document", "document": "query"}[role]
    assert [w.name for w in model.trainable_weights] == [
        w.name for w in getattr(model, f"{other}_tower").weights
    ]


def test_pretrained_vectors_are_loaded_and_reported(tmp_path, caplog):
    # word2vec text: 3 of the document words are in it, "ciel" is not.
    path = tmp_path / "fr.vec"
    path.write_text("4 2\nchat 1 2\nchien 3 4\nmer 5 6\noiseau 7 8\n")
    run_settings = settings(document_embeddings=str(path))
    model = build_model(run_settings, VOCABULARIES)
    query = tables(model)["query"]
    with caplog.at_level("INFO", logger="absl"):
        load_pretrained(model, run_settings, VOCABULARIES)
    found = tables(model)
    np.testing.assert_array_equal(found["document"][2:5], [[1, 2], [3, 4], [5, 6]])
    np.testing.assert_array_equal(found["document"][0], [0, 0])  # padding
    assert (found["document"][5] != 0).all()
    np.testing.assert_array_equal(found["query"], query)
    assert f"Document vectors: 3 of 4 words (75.0%) found in {path}" in caplog.text


def test_pretrained_vectors_of_another_length_are_refused(tmp_path):
    path = tmp_path / "fr.vec"
    path.write_text("1 3\nchat 1 2 3\n")
    run_settings = settings(document_embeddings=str(path))
    with pytest.raises(InputError, match="dimension 3"):
        load_pretrained(build_model(run_settings, VOCABULARIES), run_settings, VOCABULARIES)


def test_pretrained_words_begin_without_noise_of_ngrams(tmp_path):
    path = tmp_path / "fr.vec"
    path.write_text("1 2\nchat 1 2\n")
    run_settings = dataclasses.replace(
        settings(document_embeddings=str(path)), text=TextSettings(ngram_buckets=7)
    )
    model = build_model(run_settings, VOCABULARIES)
    load_pretrained(model, run_settings, VOCABULARIES)
    np.testing.assert_array_equal(model.document_tower.ngram_embeddings, np.zeros([7, 2]))
    assert (model.query_tower.ngram_embeddings.numpy() != 0).all()


def test_one_begin_of_word_vectors_is_enough(tmp_path):
    both = settings(initial_vectors="bilingual", document_embeddings=str(tmp_path / "fr.vec"))
    with pytest.raises(InputError, match="--initial_vectors=bilingual --query_embeddings"):
        build_model(both, VOCABULARIES)


def test_a_shared_vocabulary_is_one_tower():
    words = dict.fromkeys(ROLES, VOCABULARIES["query"])
    found = build_model(
        dataclasses.replace(settings(), text=TextSettings(shared_vocabulary=True)), words
    )
    assert found.query_tower is found.document_tower
    assert len(found.trainable_weights) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"train_query_embeddings": False},
        {"query_embeddings": "one.vec", "document_embeddings": "other.vec"},
    ],
)
def test_a_shared_table_does_not_differ_between_the_languages(changes):
    shared = dataclasses.replace(settings(**changes), text=TextSettings(shared_vocabulary=True))
    with pytest.raises(InputError, match=r"^--shared_vocabulary .* one embedding table"):
        build_model(shared, dict.fromkeys(ROLES, VOCABULARIES["query"]))
