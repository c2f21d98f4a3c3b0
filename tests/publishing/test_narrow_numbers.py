"""Narrow vectors and tables: scores, how far numbers move, sizes, what they are said to cost."""

import dataclasses
import types

import numpy as np
import pytest
import tensorflow as tf

from tests.graphs import operations_in
from tests.published import DEPTH, EPSILON, undesired_operations
from tests.training.tiny_set import DOCUMENTS
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.publishing import exported_vectors as module
from tf_smoothclir.publishing.export import export_run
from tf_smoothclir.publishing.export_directory import load_part
from tf_smoothclir.publishing.export_quality import measured_recall
from tf_smoothclir.publishing.exported_tables import ExportedTables
from tf_smoothclir.publishing.exported_tower import ExportedTower
from tf_smoothclir.publishing.exported_vectors import (
    VECTOR_TYPES,
    ExactVectors,
    RoundedVectors,
    collection_vectors,
)
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.text.subword_encoder import SubwordTextEncoder
from tf_smoothclir.text.vocabulary import PADDING, UNKNOWN, write_vocabulary
from tf_smoothclir.text.word_encoder import TextEncoder
from tf_smoothclir.towers.average_pooling import AveragePoolingTower
from tf_smoothclir.towers.cnn import CNNTower
from tf_smoothclir.two_tower.int8_vectors import Int8Vectors
from tf_smoothclir.two_tower.similarity import smooth_normalize


def random_vectors(rows, dim, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, dim)).astype(np.float32)


@pytest.mark.parametrize(("dim", "per_step"), [(1, 1), (5, 40), (65, 1), (65, 1 << 20)])
def test_int8_scores_are_those_of_the_rounded_vectors(dim, per_step, monkeypatch):
    # 50 documents of 5 numbers are read 8 at a time: six steps, and one that is padded.
    monkeypatch.setattr(module, "_NUMBERS_PER_STEP", per_step)
    vectors, queries = random_vectors(50, dim), random_vectors(3, dim, seed=1)
    expected = queries.astype(np.float64) @ Int8Vectors.of(vectors)[:].T
    scores = tf.function(RoundedVectors(vectors).scores)
    np.testing.assert_allclose(scores(tf.constant(queries)), expected, 1e-5, 1e-5)


@pytest.mark.parametrize("vector_type", VECTOR_TYPES)
def test_few_rows_and_no_variable_that_is_read_by_single_rows(vector_type):
    one = collection_vectors(random_vectors(1, 8), vector_type)
    for rows in (0, 3):
        assert one.scores(tf.constant(random_vectors(rows, 8))).shape == (rows, 1)
    # After one that is, TensorFlow copies the whole variable each time it is read.
    vectors = collection_vectors(random_vectors(9, 8), vector_type)
    function = tf.function(vectors.scores).get_concrete_function(tf.TensorSpec([None, 8]))
    assert "ReadVariableOp" in operations_in(function.graph)
    assert "ResourceGather" not in operations_in(function.graph)


def test_recall_counts_what_is_as_good_as_the_exact_best(towers):
    (vector,) = towers["query"].serve(tf.constant(["red"]))["vector"].numpy()
    # Scores of 4, 3, 3, 2 and 1 times the same number: the best two are the first and a 3.
    exact = np.array([4, 3, 3, 2, 1], np.float32)[:, None] * vector
    for fixed, expected in (
        ([5, 4, 0, 0, 0], 1.0),
        ([5, 0, 4, 0, 0], 1.0),  # the other 3 is as good
        ([5, 0, 0, 4, 0], 0.5),
        ([0, 0, 0, 5, 4], 0.0),
    ):
        rows = tf.constant([fixed] * 3, tf.float32)
        narrow = types.SimpleNamespace(type="int8", scores=lambda queries, rows=rows: rows)
        found = measured_recall(narrow, exact, towers["query"], [b"red"] * 3, depth=2)
        assert dataclasses.astuple(found) == ("int8", expected, 2, 3)


def test_recall_asks_a_thousand_queries_of_all_parts_of_the_set(towers, monkeypatch):
    tower, asked, exact = towers["query"], [], random_vectors(4, 3)
    serve = tower.serve
    monkeypatch.setattr(tower, "serve", lambda texts: asked.extend(texts.numpy()) or serve(texts))
    texts = [b"red"] * 1200 + [b"sea"] * 1300
    found = measured_recall(ExactVectors(exact), exact, tower, texts, 10)
    assert found.queries == len(asked) == 1000
    assert asked.count(b"red") == 600
    assert (found.recall, found.depth) == (1.0, 4)


@pytest.mark.usefixtures("no_child_process")
def test_exports_say_what_their_vectors_cost_and_rank_nearly_as_with_exact_ones(
    tiny_run, export_dir, tmp_path
):
    export_run(tiny_run, tmp_path, vector_type="int8", search_depth=DEPTH)
    assert "numbers of fewer bits" in (tmp_path / "model_card-1.md").read_text()
    texts = tf.constant([query.text for query in source_of(tiny_run.settings().data).queries()])
    found = []
    for kind, path in ((tf.int8, tmp_path), (tf.float32, export_dir)):
        model, manifest = load_part(path, "search")
        assert not undesired_operations(model)
        found.append(model.signatures["serving_default"](text=texts)["scores"].numpy())
        stored = tf.train.load_checkpoint(str(path / "search" / "1" / "variables" / "variables"))
        kinds, shapes = stored.get_variable_to_dtype_map(), stored.get_variable_to_shape_map()
        places = [name for name, shape in shapes.items() if shape[-2:] == [DOCUMENTS, manifest.dim]]
        assert {kinds[name] for name in places} == {kind}
    quality = load_part(tmp_path, "search").manifest.vectors
    assert (quality.type, quality.depth) == ("int8", DEPTH)
    assert 0.5 < quality.recall <= 1
    assert found[1].any()
    np.testing.assert_allclose(*found, atol=0.02)


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
