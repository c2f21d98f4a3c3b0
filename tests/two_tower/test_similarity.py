"""Smooth Cosine Similarity: hand arithmetic, bounds, hazards, and the Keras contract."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow import keras

from tests.oracles import maths
from tf_smoothclir.two_tower.similarity import SmoothCosineSimilarity, smooth_normalize, stable_norm

SETTINGS = settings(deadline=None, max_examples=40, derandomize=True)
DTYPES = ("float16", "bfloat16", "float32", "float64")

# Norms around every hazard: zero, squares that underflow or overflow, and ordinary ones.
norms = st.sampled_from([0.0, 1e-38, 1e-30, 1e-20, 1e-6, 0.1, 1.0, 30.0, 1e4, 1e18, 1e30])
epsilons = st.sampled_from([1e-3, 0.05, 0.5, 1.0, 7.0])
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


def test_arithmetic_by_hand():
    # ‖(3, 4)‖ = 5 and ‖(0, 2)‖ = 2; the inner product is 3*0 + 4*2 = 8.
    pair = [tf.constant([[3.0, 4.0]]), tf.constant([[0.0, 2.0]])]
    for epsilon in (0.0, 0.5, 1.0):
        expected = 8 / ((5 + epsilon) * (2 + epsilon))
        np.testing.assert_allclose(SmoothCosineSimilarity(epsilon)(pair), [expected], rtol=1e-6)


def test_order_may_differ_from_cosine():
    # Section 3.3: norms count. The second document has the better angle and the smaller norm.
    query = tf.constant([[1.0, 0.0]])
    documents = tf.constant([[[9.0, 1.0], [0.1, 0.0]]])
    assert np.argmax(SmoothCosineSimilarity(0.0)([query, documents])) == 1
    assert np.argmax(SmoothCosineSimilarity(1.0)([query, documents])) == 0


@SETTINGS
@given(seeds, norms, norms, epsilons)
def test_value_and_gradient_match_the_oracle(seed, query_norm, document_norm, epsilon):
    query = random_vector(seed, query_norm).astype("float32")
    document = random_vector(seed + 1, document_norm).astype("float32")
    score, by_query, by_document = score_and_gradients(query, document, epsilon)
    np.testing.assert_allclose(score, maths.smooth_cosine(query, document, epsilon), atol=1e-5)
    for found, arguments in ((by_query, (query, document)), (by_document, (document, query))):
        expected = maths.smooth_cosine_gradient(*arguments, epsilon)
        tolerance = 1e-5 / (maths.norm(arguments[0]) + epsilon)
        np.testing.assert_allclose(found, expected, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@SETTINGS
@given(seed=seeds, query_norm=norms, document_norm=norms)
def test_finite_in_every_dtype_over_zero_tiny_and_huge_norms(
    dtype, seed, query_norm, document_norm
):
    if dtype == "float16":  # its largest number is 65504
        query_norm, document_norm = min(query_norm, 6e4), min(document_norm, 6e4)
    query, document = random_vector(seed, query_norm), random_vector(seed + 1, document_norm)
    score, by_query, by_document = score_and_gradients(query, document, 1.0, dtype)
    assert np.isfinite(score)
    assert np.isfinite(by_query).all()
    assert np.isfinite(by_document).all()
    rounding = 1e-2 if tf.as_dtype(dtype).size == 2 else 1e-6
    assert abs(score) <= 1 + rounding
    assert score == pytest.approx(maths.smooth_cosine(query, document, 1.0), abs=2 * rounding)


def lemma_2_violations(epsilon, stated_epsilon):
    """Counts gradients above ‖v_d‖ / (‖f_q‖ + ε) or 1/ε, both for the stated ε."""
    violations = 0
    for seed, norm in enumerate([0.0, 1e-30, 1e-6, 1e-3, 0.02, 0.1, 1.0, 10.0, 1e18]):
        query, document = random_vector(seed, norm), random_vector(seed + 100, 3.0)
        _, gradient, _ = score_and_gradients(query, document, epsilon)
        size = maths.norm(gradient)
        tight = maths.norm(maths.smooth_normalize(document, stated_epsilon))
        tight /= norm + stated_epsilon
        assert tight < 1 / stated_epsilon < 2 / stated_epsilon  # ours, ours, the paper's
        violations += size > tight * (1 + 1e-5)
    return violations


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0])
def test_gradient_keeps_the_bound_of_lemma_2(epsilon):
    assert lemma_2_violations(epsilon, stated_epsilon=epsilon) == 0


@pytest.mark.parametrize("stated_epsilon", [0.05, 0.5, 1.0])
def test_plain_cosine_breaks_the_bound_of_lemma_2(stated_epsilon):
    assert lemma_2_violations(0.0, stated_epsilon) > 0
    # And not by little: near zero the gradient grows like 1/‖f_q‖, past the paper's 2/ε too.
    _, gradient, _ = score_and_gradients([1e-6, 0.0], [1.0, 1.0], 0.0)
    assert maths.norm(gradient) > 1e5 > 2 / stated_epsilon


def test_gradient_at_the_zero_vector_is_the_limit():
    # r = f_q · v_d / (‖f_q‖ + ε), so that ∂r/∂f_q = v_d / ε at f_q = 0; v_d = (3, 4) / (5 + ε).
    score, gradient, _ = score_and_gradients([0.0, 0.0], [3.0, 4.0], 0.5)
    assert score == 0
    np.testing.assert_allclose(gradient, np.array([3, 4]) / 5.5 / 0.5, rtol=1e-6)


def test_zero_vector_without_epsilon_scores_zero():
    score, by_query, by_document = score_and_gradients([0.0, 0.0], [3.0, 4.0], 0.0)
    assert score == 0
    assert np.isfinite([*by_query, *by_document]).all()


@pytest.mark.parametrize("size", [1e-30, 1e-23, 1e18, 1e25, 1e37])
def test_norm_survives_squares_outside_float32(size):
    np.testing.assert_allclose(
        stable_norm(tf.constant([[3 * size, 4 * size]])), [[5 * size]], rtol=1e-6
    )


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("shape", [(4,), (2, 4), (2, 3, 4), (2, 1, 3, 4), (0, 4)])
def test_smooth_normalize_of_any_rank(shape, epsilon):
    vectors = np.random.default_rng(0).normal(size=shape)
    expected = [maths.smooth_normalize(row, epsilon) for row in vectors.reshape(-1, 4)]
    found = smooth_normalize(vectors, epsilon)
    assert found.dtype == tf.float64
    np.testing.assert_allclose(found, np.reshape(expected, shape), rtol=1e-12)


def test_inner_product_of_normalised_vectors_is_the_similarity():
    rng = np.random.default_rng(1)
    queries, documents = rng.normal(size=(2, 5, 8)).astype("float32")
    products = tf.reduce_sum(smooth_normalize(queries, 1.0) * smooth_normalize(documents, 1.0), -1)
    scores = SmoothCosineSimilarity(1.0)([queries, documents])
    np.testing.assert_allclose(scores, products, rtol=1e-5, atol=1e-7)


def test_half_precision_norm_is_taken_in_float32():
    # The norm, 8 * 60,000 = 480,000, is above the largest float16, 65,504.
    vector = tf.fill([1, 64], tf.constant(60_000.0, tf.float16))
    normalised = smooth_normalize(vector, 1.0)
    assert normalised.dtype == tf.float16
    np.testing.assert_allclose(normalised, np.full([1, 64], 60_000 / (480_000 + 1)), rtol=1e-3)


def test_lists_score_like_pairs():
    rng = np.random.default_rng(2)
    queries = rng.normal(size=(3, 8)).astype("float32")
    documents = rng.normal(size=(3, 5, 8)).astype("float32")
    layer = SmoothCosineSimilarity(0.7)
    listed = layer([queries, documents])
    assert listed.shape == (3, 5)
    for column in range(5):
        np.testing.assert_allclose(
            listed[:, column], layer([queries, documents[:, column]]), rtol=1e-5, atol=1e-7
        )


@pytest.mark.parametrize("epsilon", [-1e-9, float("nan"), float("inf"), "wide", None])
def test_invalid_epsilon_is_named(epsilon):
    with pytest.raises(ValueError, match=r"epsilon must be .* but is .*Use 1\.0"):
        SmoothCosineSimilarity(epsilon)
    with pytest.raises(ValueError, match=r"epsilon must be"):
        smooth_normalize(tf.ones([1, 2]), epsilon)


@pytest.mark.parametrize(
    ("query_shape", "document_shape"),
    [((2, 4), (2, 5)), ((2, 4), (3, 4)), ((4,), (4,)), ((2, 3, 4), (2, 3, 4)), ((2, 4), (2, 3, 5))],
)
def test_shapes_that_do_not_fit_are_named(query_shape, document_shape):
    layer = SmoothCosineSimilarity()
    with pytest.raises(ValueError, match=r"query_vectors .* and document_vectors .* do not fit"):
        layer([tf.ones(query_shape), tf.ones(document_shape)])
    with pytest.raises(ValueError, match="do not fit"):
        layer.compute_output_shape([query_shape, document_shape])


def test_a_single_tensor_is_refused():
    with pytest.raises(ValueError, match=r"\[query_vectors, document_vectors\]"):
        SmoothCosineSimilarity()(tf.ones([2, 4]))


def test_output_shape_with_unknown_batch():
    layer = SmoothCosineSimilarity()
    assert tuple(layer.compute_output_shape([(None, 4), (None, 4)])) == (None,)
    assert tuple(layer.compute_output_shape([(None, 4), (None, None, 4)])) == (None, None)


def test_functional_model_survives_save_and_reload(tmp_path):
    queries, documents = keras.Input([4]), keras.Input([None, 4])
    model = keras.Model([queries, documents], SmoothCosineSimilarity(0.25)([queries, documents]))
    path = tmp_path / "model.keras"
    model.save(path)
    reloaded = keras.models.load_model(path)
    rng = np.random.default_rng(3)
    inputs = [rng.normal(size=(2, 4)).astype("f4"), rng.normal(size=(2, 3, 4)).astype("f4")]
    assert reloaded.layers[-1].epsilon == 0.25
    np.testing.assert_array_equal(reloaded(inputs), model(inputs))
