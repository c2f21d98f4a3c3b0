"""A trained tiny run, its published towers, and small towers that need no training."""

from __future__ import annotations

import pytest
import tensorflow as tf
from tensorflow import keras

from tests.training.tiny_set import tiny_settings, write_tiny_set
from tf_smoothclir.data.prepared import ROLES
from tf_smoothclir.serving import publish as publish_module
from tf_smoothclir.serving.export import export_run
from tf_smoothclir.serving.publish import PairInfo
from tf_smoothclir.serving.towers import ServingTower
from tf_smoothclir.text.vocabulary import TextEncoder, write_vocabulary
from tf_smoothclir.towers import AveragePoolingTower
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.train import train

WORDS = {"query": ["red", "apple", "sea"], "document": ["roter", "apfel", "meer", "日"]}
DIM, EPSILON = 3, 0.5


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory):
    """A finished run on the tiny set; not to be changed."""
    directory = tmp_path_factory.mktemp("tiny_run")
    data = write_tiny_set(directory / "data")
    settings = tiny_settings(
        data, directory / "cache", epochs=1, epsilon=EPSILON, checkpoint_minutes=60.0
    )
    train(settings, directory / "run")
    return RunDirectory.load(directory / "run")


@pytest.fixture(scope="session")
def export_dir(tiny_run, tmp_path_factory):
    """The towers of `tiny_run`, version 1; not to be changed."""
    path = tmp_path_factory.mktemp("export")
    assert export_run(tiny_run, path) == 1
    return path


@pytest.fixture(scope="session")
def make_tower(tmp_path_factory):
    """`make_tower(role, seed)` gives a serving tower with random vectors for the words above."""
    directory = tmp_path_factory.mktemp("vocabulary")
    for role, words in WORDS.items():
        write_vocabulary(directory / f"{role}.txt", ["[PAD]", "[UNK]", *words])

    def make(role, seed=0):
        tower = AveragePoolingTower(
            2 + len(WORDS[role]),
            DIM,
            embeddings_initializer=keras.initializers.RandomNormal(stddev=1.0, seed=seed),
        )
        tower.build()
        encoder = TextEncoder(directory / f"{role}.txt", max_tokens=5)
        return ServingTower(tower, encoder, epsilon=EPSILON, name=f"{role}_tower")

    return make


@pytest.fixture
def publish_pair(make_tower):
    """`publish_pair(path, seed)` publishes two towers there and returns the version."""
    info = PairInfo(DIM, EPSILON, (0.2, 0.7), {})
    probes = {role: [b"", b"\xff", *map(str.encode, WORDS[role])] for role in ROLES}

    def publish(path, seed=0):
        towers = {role: make_tower(role, seed) for role in ROLES}
        return publish_module.publish(towers, path, info, probes)

    return publish


@pytest.fixture
def no_child_process(monkeypatch):
    """Leaves out the comparison in a fresh process, which takes seconds."""
    monkeypatch.setattr(publish_module, "_compare", lambda *arguments: None)


def encode(signature, texts):
    """Vectors of texts by a loaded signature."""
    return signature(text=tf.constant(texts, tf.string))["vector"].numpy()
