"""Smooth Cosine Similarity: hand arithmetic, bounds, hazards, and the Keras contract."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import cases
from tests.oracles import maths
from tf_smoothclir.two_tower.similarity import SmoothCosineSimilarity, smooth_normalize, stable_norm

SETTINGS = settings(max_examples=40)
UNFIT = ((2, 4), (2, 5)), ((2, 4), (3, 4)), ((4,), (4,)), ((2, 3, 4),) * 2, ((2, 4), (2, 3, 5))

# Norms around every hazard: zero, squares that underflow or overflow, and ordinary ones.
norms = st.sampled_from([0.0, 1e-38, 1e-30, 1e-20, 1e-6, 0.1, 1.0, 30.0, 1e4, 1e18, 1e30])
seeds = st.integers(0, 2**31)


def random_vector(seed, norm, dim=6):
    direction = np.random.default_rng(seed).normal(size=dim)
    return norm * direction / np.linalg.norm(direction)


def score_and_gradients(query, document, epsilon, dtype="float32"):
    layer = SmoothCosineSimilarity(epsilon, dtype=dtype)
    query, document = tf.constant([query], dtype), tf.constant([document], dtype)
    with tf.GradientTape() as tape:
        tape.watch([query, document])
        score = layer([query, document])
    gradients = tape.gradient(score, [query, document])
    return [tf.cast(value[0], tf.float64).numpy() for value in (score, *gradients)]


@SETTINGS
@given(seeds, norms, norms, st.sampled_from([1e-3, 0.05, 0.5, 1.0, 7.0]))
def test_value_and_gradient_match_the_oracle(seed, query_norm, document_norm, epsilon):
    query = random_vector(seed, query_norm).astype("float32")
    document = random_vector(seed + 1, document_norm).astype("float32")
    score, by_query, by_document = score_and_gradients(query, document, epsilon)
    np.testing.assert_allclose(score, maths.smooth_cosine(query, document, epsilon), atol=1e-5)
    for found, arguments in ((by_query, (query, document)), (by_document, (document, query))):
        expected = maths.smooth_cosine_gradient(*arguments, epsilon)
        tolerance = 1e-5 / (maths.norm(arguments[0]) + epsilon)
        np.testing.assert_allclose(found, expected, atol=tolerance)


@cases("dtype", "float16", "bfloat16", "float32", "float64")
@SETTINGS
@given(seed=seeds, query_norm=norms, document_norm=norms)
def test_finite_in_every_dtype(dtype, seed, query_norm, document_norm):
    if dtype == "float16":  # its largest number is 65504
        query_norm, document_norm = min(query_norm, 6e4), min(document_norm, 6e4)
    query, document = random_vector(seed, query_norm), random_vector(seed + 1, document_norm)
    score, by_query, by_document = score_and_gradients(query, document, 1.0, dtype)
    assert np.isfinite([score, *by_query, *by_document]).all()
    rounding = 1e-2 if tf.as_dtype(dtype).size == 2 else 1e-6
    assert abs(score) <= 1 + rounding
    assert score == pytest.approx(maths.smooth_cosine(query, document, 1.0), abs=2 * rounding)


def test_zero_vectors_have_finite_gradients_without_epsilon():
    score, *gradients = score_and_gradients([0.0, 0.0], [3.0, 4.0], 0.0)
    assert score == 0
    assert np.isfinite(gradients).all()


def test_norms_survive_squares_outside_their_type():
    for size in (1e-30, 1e-23, 1e18, 1e25, 1e37):
        found = stable_norm(tf.constant([[3 * size, 4 * size]]))
        np.testing.assert_allclose(found, [[5 * size]], rtol=1e-6)
    np.testing.assert_allclose(stable_norm(tf.constant([[3.0, 0, 4], [1e30, 1, 0]])), [[5], [1e30]])
    # The norm, 8 * 60,000 = 480,000, is above the largest float16, 65,504.
    normalised = smooth_normalize(tf.fill([1, 64], tf.constant(60_000.0, tf.float16)), 1.0)
    assert normalised.dtype == tf.float16
    np.testing.assert_allclose(normalised, np.full([1, 64], 60_000 / (480_000 + 1)), rtol=1e-3)


@cases("epsilon", 0.0, 0.3, 1.0)
@cases("shape", (4,), (2, 4), (2, 3, 4), (2, 1, 3, 4), (0, 4))
def test_smooth_normalize_of_any_rank(shape, epsilon):
    vectors = np.random.default_rng(0).normal(size=shape)
    expected = [maths.smooth_normalize(row, epsilon) for row in vectors.reshape(-1, 4)]
    found = smooth_normalize(vectors, epsilon)
    assert found.dtype == tf.float64
    np.testing.assert_allclose(found, np.reshape(expected, shape), rtol=1e-12)


def test_lists_score_like_pairs():
    rng, layer = np.random.default_rng(2), SmoothCosineSimilarity(0.7)
    queries = rng.normal(size=(3, 8)).astype("float32")
    documents = rng.normal(size=(3, 5, 8)).astype("float32")
    columns = [layer([queries, documents[:, column]]) for column in range(5)]
    listed = layer([queries, documents])
    np.testing.assert_allclose(listed, np.transpose(columns), rtol=1e-5, atol=1e-7)
    whole = [np.array([[3, 4]]), np.array([[[1, 0], [4, 3]]])]  # whole numbers are no other ones
    np.testing.assert_allclose(layer(whole), layer([part.astype("f4") for part in whole]))
    assert tuple(layer.compute_output_shape([(None, 4), (None, 4)])) == (None,)
    assert tuple(layer.compute_output_shape([(None, 4), (None, None, 4)])) == (None, None)


@cases("epsilon", -1e-9, float("nan"), float("inf"), "wide")
def test_invalid_epsilon_is_named(epsilon):
    for use in (SmoothCosineSimilarity, lambda epsilon: smooth_normalize(tf.ones([1, 2]), epsilon)):
        with pytest.raises(ValueError, match=r"epsilon must be .* but is .*Use 1\.0"):
            use(epsilon)
    assert SmoothCosineSimilarity().epsilon == 1.0


@cases("query_shape, document_shape", *UNFIT)
def test_shapes_that_do_not_fit_are_named(query_shape, document_shape):
    layer = SmoothCosineSimilarity()
    with pytest.raises(ValueError, match=r"query_vectors .* and document_vectors .* do not fit"):
        layer([tf.ones(query_shape), tf.ones(document_shape)])
    with pytest.raises(ValueError, match="do not fit"):
        layer.compute_output_shape([query_shape, document_shape])
    with pytest.raises(ValueError, match=r"\[query_vectors, document_vectors\]"):
        layer(tf.ones(document_shape))


@cases("documents", (2, 4), (2, 3, 4))
def test_in_a_graph_one_query_is_not_that_of_all_documents(documents):
    layer, unknown = SmoothCosineSimilarity(), [None] * (len(documents) - 1)
    signature = [tf.TensorSpec([None, 4]), tf.TensorSpec([*unknown, 4])]
    run = tf.function(lambda *vectors: layer(list(vectors)), input_signature=signature)
    assert run(tf.ones([2, 4]), tf.ones(documents)).shape == documents[:-1]
    with pytest.raises(tf.errors.InvalidArgumentError, match="give as many query_vectors as docu"):
        run(tf.ones([1, 4]), tf.ones(documents))
