"""The model of the settings; vectors to begin with, pre-trained or made of the pairs."""

import dataclasses

import numpy as np
import pytest

from tests.cases import cases
from tests.training.test_trainer import begin, start, weights
from tf_smoothclir import InputError, SmoothOrdinalSearchLoss
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.settings import given, run, training
from tf_smoothclir.settings.model import ModelSettings
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.two_tower import builder
from tf_smoothclir.two_tower.builder import build_model, load_pretrained
from tf_smoothclir.two_tower.scorer import SetEncoder

VOCABULARIES = {"query": ["[PAD]", "[UNK]", "cat", "dog", "sea"]}
VOCABULARIES["document"] = ["[PAD]", "[UNK]", "chat", "chien", "mer", "ciel"]
GIVEN = {"loss": "given", "objects": given.objects_text(loss=SmoothOrdinalSearchLoss())}
FROZEN = {f"train_{role}_embeddings": False for role in ROLES}


def settings(seed=13, **model):
    own = ModelSettings(**{"dim": 2, **model})
    return run.RunSettings(model=own, training=training.TrainingSettings(seed=seed))


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


@cases(
    "changes, message",
    ({"loss": "three_part_l2", "thresholds": (0.2,)}, r"--cut_points: .* 3 grades, .* make 2"),
    ({**GIVEN, "thresholds": (0.2,)}, r"for 3 grades, .* set has 2: give the loss 1 t"),
    ({"loss": "softmax", "temperature": 0.0}, "--loss, --temperature: temperature must be"),
    ({"thresholds": (0.7, 0.2)}, "--loss, --thresholds: thresholds must be"),
)
def test_settings_that_cannot_be_used_are_named(changes, message):
    batching = "lists" if changes.get("loss") == "softmax" else "pairs"
    with pytest.raises(InputError, match=message):
        build_model(changed(run.RunSettings(), {"batching": batching, **changes}), VOCABULARIES)


@cases("changes", {}, {"tower": "cnn"}, {"tower": "lstm"})
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


def mean_rank_of_mates(settings, path):
    """Of the document of grade 2, before any training; best is 1."""
    tokenized_set, trainer = begin(settings, path)
    encoded, judged = SetEncoder(trainer.task.model, tokenized_set)(), tokenized_set.retrieval_set
    train = judged.splits == SPLITS.index("train")
    pairs = train[judged.query_rows] & (judged.grades == 2)
    queries, mates = judged.query_rows[pairs], judged.document_rows[pairs]
    scores = encoded.queries[queries] @ encoded.documents.T
    return (scores > scores[np.arange(len(queries)), mates][:, None]).sum(axis=1).mean() + 1


@cases("more", {}, {"shared_vocabulary": True, "ngram_buckets": 50})
def test_translations_start_near_each_other(more, tiny, tmp_path):
    random, bilingual = (
        mean_rank_of_mates(tiny(dim=64, initial_vectors=kind, **more), tmp_path / kind)
        for kind in ("random", "bilingual")
    )
    assert bilingual < 0.6 * random


def test_vectors_of_words_of_pairs_start_and_those_of_cnn_as_short_as_random_ones(tiny, tmp_path):
    kinds = "average_pooling", "cnn", "lstm"
    of_towers = [tiny(initial_vectors="bilingual", tower=kind) for kind in kinds]
    models = [start(settings, tmp_path / settings.model.tower)[1] for settings in of_towers]
    for role in ROLES:
        tables = [getattr(model, f"{role}_tower").embeddings.numpy() for model in models]
        assert not tables[0][:2].any()  # padding and unknown
        assert tables[0][2:].any()
        np.testing.assert_allclose(tables[1], 0.1 * tables[0], rtol=1e-6)
        np.testing.assert_array_equal(tables[2], tables[0])


def test_ngrams_start_near_their_words(tiny, tmp_path, monkeypatch):
    settings = tiny(initial_vectors="bilingual", shared_vocabulary=True, ngram_buckets=10_000)
    tokenized_set, trainer = begin(settings, tmp_path / "run")
    tower, ngrams = trainer.task.model.query_tower, tokenized_set.ngrams("query")
    # Of one word alone, an n-gram is that word, but shorter.
    buckets = ngrams.values[: ngrams.offsets[tower.vocabulary_size]]
    word = next(w for w in range(2, tower.vocabulary_size) if tower.embeddings[w].numpy().any())
    alone = [b for b in ngrams[word] if np.count_nonzero(buckets == b) == 1]
    assert alone
    expected = 0.3 * tower.embeddings[word]
    for bucket in alone:
        np.testing.assert_allclose(tower.ngram_embeddings[bucket], expected, rtol=1e-5, atol=1e-6)
    monkeypatch.setattr(builder, "_DIMS_AT_ONCE", 3)  # the last piece is shorter
    _, pieced = start(settings, tmp_path / "pieces")
    for whole, of_pieces in zip(weights(trainer.task.model), weights(pieced), strict=True):
        np.testing.assert_allclose(of_pieces, whole, rtol=1e-6)
