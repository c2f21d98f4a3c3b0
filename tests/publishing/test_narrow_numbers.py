"""Narrow tables: how far numbers move, sizes, vectors."""

import numpy as np
import pytest
import tensorflow as tf

from tests.graphs import operations_in
from tests.published import EPSILON, undesired_operations
from tf_smoothclir.publishing.exported_tables import ExportedTables
from tf_smoothclir.publishing.exported_tower import ExportedTower
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.text.subword_encoder import SubwordTextEncoder
from tf_smoothclir.text.vocabulary import PADDING, UNKNOWN, write_vocabulary
from tf_smoothclir.text.word_encoder import TextEncoder
from tf_smoothclir.towers.average_pooling import AveragePoolingTower
from tf_smoothclir.towers.cnn import CNNTower
from tf_smoothclir.two_tower.similarity import smooth_normalize

WORDS = [f"word{number}" for number in range(3000)]
TEXTS = ["word1 word2", "word7", "", "unseen word2999 word0 word0", b"\xff"]


def build(kind=AveragePoolingTower, **options):
    tower = kind(len(WORDS) + 2, 16, **options)
    tower.build()
    generator = np.random.default_rng(13)
    for table in tower.tables().values():
        scales = generator.lognormal(size=(table.shape[0], 1))  # rows of very different lengths
        table.assign(scales * generator.normal(size=table.shape))
    return tower


@pytest.mark.parametrize("name", ["embeddings", "ngram_embeddings"])
def test_no_number_moves_by_more_than_the_type_rounds(name):
    tower = build(ngram_buckets=40)
    table = tower.tables()[name].numpy()
    table[5] = 0
    tower.tables()[name].assign(table)
    with ExportedTables(tower, "int8").read_by(tower):
        found = tower._rows(name, tf.range(len(table))).numpy()
    assert not found[5].any()
    # Half of one of the 127 steps of the largest number of a row, which is exact itself.
    largest = np.abs(table).max(axis=1, keepdims=True)
    distances = np.abs(found - table)
    assert (distances <= largest * (0.5 / 127 * 1.001)).all()
    assert distances.max() > 0
    places = np.arange(len(table)), np.abs(table).argmax(axis=1)
    np.testing.assert_allclose(found[places], table[places], rtol=1e-6)


@pytest.fixture
def encoder(tmp_path):
    path = tmp_path / "query.txt"
    write_vocabulary(path, [PADDING, UNKNOWN, *WORDS])
    return TextEncoder(path, 10)


def export(tower, encoder, table_type, directory):
    named = {"name": "query_tower", "table_type": table_type}
    exported = ExportedTower(tower, encoder, epsilon=EPSILON, **named)
    exported.save(str(directory / table_type))
    model = tf.saved_model.load(str(directory / table_type))
    (variables,) = (directory / table_type / "variables").glob("*.data*")
    vectors = model.signatures["serving_default"](text=tf.constant(TEXTS))["vector"].numpy()
    return exported, model, variables.stat().st_size, vectors


@pytest.mark.parametrize("kind", [AveragePoolingTower, CNNTower])
def test_models_are_smaller_with_core_operations_and_almost_the_same_vectors(
    kind, encoder, tmp_path
):
    tower = build(kind)
    tokens = encoder(tf.constant(TEXTS))
    before = tower(tokens).numpy()
    exact, _, whole, expected = export(tower, encoder, "float32", tmp_path)
    exported, model, size, vectors = export(tower, encoder, "int8", tmp_path)
    assert not undesired_operations(model)
    # A row of 16 bytes has a scale of 4.
    saved = 3 * tower.embeddings.numpy().size - 4 * len(WORDS)
    assert size == pytest.approx(whole - saved, abs=2000)
    np.testing.assert_allclose(vectors, expected, atol=0.02)
    assert np.abs(vectors - expected).max() > 0
    assert exported.digest() != exact.digest()
    np.testing.assert_array_equal(tower(tokens), before)  # the trained one reads its own tables


@pytest.mark.parametrize("options", [{"ngram_buckets": 40}, {"position_weights": "learned"}])
def test_no_function_reads_single_rows_of_exact_tables(options, encoder, tmp_path):
    # After one that does, TensorFlow copies the whole table for each call of the others.
    tower = build(**options)
    if tower.ngram_buckets:
        settings = TextSettings(ngram_buckets=40)
        encoder = SubwordTextEncoder(tmp_path / "query.txt", 10, settings)
    _, model, _, vectors = export(tower, encoder, "float32", tmp_path)
    functions = [*model.signatures.values(), *model.words.concrete_functions]
    assert not any("ResourceGather" in operations_in(each.graph) for each in functions)
    expected = smooth_normalize(tower(encoder(tf.constant(TEXTS))), EPSILON)
    np.testing.assert_allclose(vectors, expected, rtol=1e-6)
