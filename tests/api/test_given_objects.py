"""Objects in place of names: a user's loss, towers and callbacks, from training to search."""

import json

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

import tf_smoothclir as sc
from tests.api.own_objects import PowerLoss, Recorder, SumTower
from tf_smoothclir import AveragePoolingTower, InputError
from tf_smoothclir.settings import given
from tf_smoothclir.text.tokens import Tokens
from tf_smoothclir.towers.given import GivenTower

QUERY = ["word1 word4"]
UNEQUAL = {"query_tower": SumTower(dim=4), "document_tower": SumTower(dim=8)}


@pytest.fixture(scope="module")
def places(tiny_dir, tmp_path_factory):
    directory = tmp_path_factory.mktemp("given")
    return {"data": tiny_dir, "output_dir": directory / "run", "cache_dir": directory / "cache"}


def own_objects(power=1.5):
    towers = {"query_tower": SumTower(name="mine"), "document_tower": SumTower(dim=8)}
    return {"loss": PowerLoss(power), **towers, "epochs": 4, "negatives": 3, "preset": "fast"}


@pytest.fixture(scope="module")
def trained(places):
    """A model of own objects, and the callback that stopped it after two epochs of four."""
    recorder = Recorder(last=2)
    return sc.train(**own_objects(), callbacks=[recorder], **places), recorder


def test_callbacks_can_stop_a_run_that_keeps_objects_and_refuses_others(trained, places):
    model, recorder = trained
    assert recorder.calls == ["begin", (0, True, True), (1, True, True), "end"]
    assert model.details["training"]["epochs"] == 2
    run = places["output_dir"]
    settings = json.loads((run / "config.json").read_text())["settings"]["model"]
    assert (settings["loss"], settings["tower"], settings["dim"]) == ("given", "given", 8)
    loss = given.given_object(settings["objects"], "loss")
    assert (type(loss), loss.power) == (PowerLoss, 1.5)
    again = sc.load(run)
    np.testing.assert_array_equal(again.encode_queries(QUERY), model.encode_queries(QUERY))
    begun = (run / "metrics.json").stat().st_mtime_ns
    sc.train(**own_objects(), **places)
    assert (run / "metrics.json").stat().st_mtime_ns == begun
    with pytest.raises(InputError, match="--objects: "):
        sc.train(**own_objects(power=3.0), **places)


def test_export_index_and_search_take_them(trained, tmp_path, no_child_process):
    model, _ = trained
    model.export(tmp_path / "export")
    published = sc.load(tmp_path / "export")
    ids = [[hit.id for hit in one.search(QUERY, k=5)[0]] for one in (model, published)]
    assert ids[0] == ids[1]
    vectors = published.encode_queries(QUERY)
    np.testing.assert_allclose(vectors, model.encode_queries(QUERY), rtol=1e-5, atol=1e-6)


def test_a_class_that_is_not_known_is_not_imported(monkeypatch):
    written = given.objects_text(loss=PowerLoss(1.5)).replace("PowerLoss", "Stranger")
    stranger = written.replace("tests.api.own_objects", "antigravity")
    monkeypatch.setattr(given, "_classes", {})
    with pytest.raises(InputError, match=r"an object of antigravity\.Stranger, .*--plugin names"):
        given.given_object(stranger, "loss")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"query_tower": "cnn"}, r"^train: query_tower: it is a str\. Give a Keras layer"),
        ({"query_tower": SumTower(dim=4), "tower": "cnn"}, "towers are given as objects too"),
        (UNEQUAL, r"different lengths \(query_tower: 4, document_tower: 8\)"),
        ({"query_tower": SumTower(dim=4), "tune": ["dim"]}, "--tune=dim --objects.* has its own"),
        ({"query_tower": keras.layers.GRU(4)}, r"^train: query_tower: it cannot read padded ids"),
        ({"query_tower": keras.layers.Embedding(9, 4)}, r"it returns 3 axes, \(1, 1, 4\)"),
        ({"loss": sc.SoftmaxLoss(), "preset": "fast"}, r"--loss.*: give --batching=lists"),
    ],
)
def test_what_cannot_be_used_is_an_error_in_words(arguments, message, tmp_path):
    call = sc.tune if "tune" in arguments else sc.train
    with pytest.raises(InputError, match=message):
        call(output_dir=tmp_path / "run", epochs=1, **arguments)


def test_a_layer_reads_padded_ids_and_an_empty_text_is_the_zero_vector():
    tower = GivenTower(SumTower(words=5, dim=2), vocabulary_size=5)
    vectors = tower(Tokens.of(tf.constant([2, 3, 99, 4]), tf.constant([2, 0, 2])))
    rows = tower.layer.vectors(tf.constant([1, 2, 3, 4])).numpy()  # unknown, then three words
    expected = [np.tanh(rows[1] + rows[2]), [0, 0], np.tanh(rows[0] + rows[3])]
    np.testing.assert_allclose(vectors, expected, rtol=1e-5, atol=1e-7)
    assert tower(Tokens.of(tf.zeros([0], tf.int32), tf.constant([0]))).numpy().tolist() == [[0, 0]]


def test_a_tower_of_this_package_gets_the_vocabulary_of_the_set():
    text = given.objects_text(query_tower=AveragePoolingTower(vocabulary_size=7, dim=3))
    settings = {"objects": text, "dim": 3, "token_weights": "none", "position_weights": "none"}
    tower = GivenTower.from_settings(settings, 20, seed=1, name="query_tower")
    assert (type(tower), tower.vocabulary_size, tower.dim) == (AveragePoolingTower, 20, 3)
    other = GivenTower.from_settings(settings, 30, seed=1, name="document_tower")
    assert (type(other), other.vocabulary_size) == (AveragePoolingTower, 30)
