"""Models that read strings: fit, predict, files and exports; what Keras options do."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from tensorflow import keras

import tf_smoothclir as sc
from tf_smoothclir import AveragePoolingTower, SmoothOrdinalSearchLoss, TextTower, TwoTower

QUERIES = ["red apple", "the blue Sea", "", "unheard"]
DOCUMENTS = ["roter Apfel", "das blaue Meer, am Meer", "Apfel", ""]
GRADES = [2, 2, 0, 1]
INPUTS = {"query": tf.constant(QUERIES), "document": tf.constant(DOCUMENTS)}


def text_tower(texts, seed, **kwargs):
    words = TextTower.words_of(texts)
    start = keras.initializers.RandomNormal(stddev=0.5, seed=seed)
    tower = AveragePoolingTower(len(words), 4, embeddings_initializer=start, **kwargs)
    return TextTower(tower, words)


def model_of_strings(**kwargs):
    model = TwoTower(text_tower(QUERIES[:3], 1, **kwargs), text_tower(DOCUMENTS, 2, **kwargs))
    model.compile(sc.LazyAdam(0.1), SmoothOrdinalSearchLoss((0.2, 0.7)))
    return model


def batches():
    return tf.data.Dataset.from_tensors((INPUTS, tf.constant(GRADES)))


def test_strings_score_as_their_ids_do_numbered_as_in_preparation():
    # By frequency, then in byte order; lower case, punctuation apart.
    words = ["[PAD]", "[UNK]", "apfel", "meer", ",", "am", "blaue", "das", "roter"]
    assert TextTower.words_of(DOCUMENTS) == words
    assert TextTower.words_of(map(str.encode, DOCUMENTS), max_size=3) == words[:3]
    for wrong, where in (("a b", "texts: it is a str"), (["a", None], r"texts\[1\]: it is None")):
        with pytest.raises(sc.InputError, match=rf"^{where}\. Give a "):
            TextTower.words_of(wrong)
    model = model_of_strings()
    inside = TwoTower(model.query_tower.tower, model.document_tower.tower)
    found = inside.vectors("document", tf.constant([[8, 2]]))  # roter apfel
    np.testing.assert_allclose(model.vectors("document", tf.constant(DOCUMENTS[:1])), found)


def test_an_export_takes_any_number_of_strings(tmp_path):
    model = model_of_strings(ngram_buckets=20)
    model.fit(batches(), verbose=0)
    expected = model.predict(INPUTS, verbose=0)
    model.export(str(tmp_path / "export"))
    served = tf.saved_model.load(str(tmp_path / "export")).signatures["serving_default"]
    np.testing.assert_allclose(served(**INPUTS)["score"], expected, rtol=1e-5)
    three = {name: texts[:3] for name, texts in INPUTS.items()}
    np.testing.assert_allclose(served(**three)["score"], expected[:3], rtol=1e-5)


def test_an_export_takes_ids_of_any_length(tmp_path):
    layers = keras.layers.Embedding(9, 4), keras.layers.GlobalAveragePooling1D()
    model = TwoTower(AveragePoolingTower(9, 4), keras.Sequential(layers))  # the other is a user's
    model.compile("adam", SmoothOrdinalSearchLoss((0.2, 0.7)))
    short = {"query": tf.constant([[2, 3]]), "document": tf.constant([[4, 5, 6]])}
    model.fit(tf.data.Dataset.from_tensors((short, tf.constant([2]))), verbose=0)
    model.export(str(tmp_path / "export"))
    loaded = tf.saved_model.load(str(tmp_path / "export"))
    long = {"query": tf.constant([[2, 3, 4, 0, 5], [2] * 5]), "document": tf.constant([[4], [5]])}
    np.testing.assert_allclose(loaded.serve(**long)["score"], model(long), rtol=1e-5)


def test_a_grade_above_the_highest_is_an_error_and_moves_no_weight():
    model = model_of_strings()
    wrong = tf.data.Dataset.from_tensors((INPUTS, tf.constant([0, 3, 1, 2])))
    model(INPUTS)
    before = model.get_weights()
    for method in (model.fit, model.evaluate):
        with pytest.raises(tf.errors.InvalidArgumentError, match="a grade is above 2"):
            method(wrong, verbose=0)
    np.testing.assert_equal(model.get_weights(), before)


def test_texts_may_have_any_form():
    model = model_of_strings(ngram_buckets=20)
    scores = model.predict(INPUTS, verbose=0)
    loss = model.evaluate(INPUTS, tf.constant(GRADES), verbose=0)
    for form in (list, np.array, lambda texts: np.array(texts, object), pd.Series):
        given = {"query": form(QUERIES), "document": form(DOCUMENTS)}
        np.testing.assert_array_equal(model.predict(given, verbose=0), scores)
        assert model.evaluate(given, GRADES, verbose=0) == loss
        one = {name: texts[:1] for name, texts in given.items()}
        np.testing.assert_allclose(model.predict(one, verbose=0), scores[:1], rtol=1e-6)
    shown = model.fit(given, GRADES, validation_data=(given, GRADES), verbose=0).history
    assert {"loss", "val_loss"} <= set(shown)


def test_what_keras_calls_with_a_batch_returns_the_same_before_and_after_fit():
    model, loss = model_of_strings(), SmoothOrdinalSearchLoss((0.2, 0.7))
    model.compile(keras.optimizers.SGD(0.0), loss)
    inputs = {"query": QUERIES, "document": DOCUMENTS}
    first = model.train_on_batch(inputs, GRADES)
    for _ in range(2):
        model.fit(inputs, GRADES, verbose=0)
        model.reset_metrics()
        assert isinstance(model.train_on_batch(inputs, GRADES), (float, np.floating))
        assert model.train_on_batch(inputs, GRADES) == pytest.approx(first)
        assert model.test_on_batch(inputs, GRADES) == pytest.approx(first)
    assert model.predict_on_batch(inputs).shape == (4,)
    for one in (["a"], np.array(["a"]), np.array(["a"], object)):
        assert model.predict_on_batch({"query": one, "document": one}).shape == (1,)
    weights = [3.0, 0.5, 1.0, 2.0]
    expected = float(loss(GRADES, model.predict_on_batch(inputs), weights))
    for call in (model.evaluate, model.test_on_batch):
        model.reset_metrics()
        assert call(inputs, GRADES, sample_weight=weights) == pytest.approx(expected)
    with pytest.raises(tf.errors.InvalidArgumentError, match="a grade is above 2"):
        model_of_strings().train_on_batch(inputs, [3, 0, 0, 0])


def test_metrics_of_lists_rank_candidate_lists(tmp_path):
    model, grades = model_of_strings(), [0, 2, 1, 2]
    inputs = {"query": INPUTS["query"][:2], "document": INPUTS["document"]}
    inputs["list_lengths"] = tf.constant([3, 1])
    lists = tf.data.Dataset.from_tensors((inputs, tf.constant(grades)))
    model.compile(sc.LazyAdam(0.0), SmoothOrdinalSearchLoss(), metrics=[sc.metrics.NDCG(5)])
    ranked = np.array(grades)[np.argsort(-model(inputs).numpy()[:3])]
    gain = (ranked / np.log2([2, 3, 4])).sum() / (2 + 1 / np.log2(3))
    expected = pytest.approx((gain + 1) / 2, abs=1e-6)  # the second list is one document
    shown = model.fit(lists, validation_data=lists, verbose=0).history
    assert shown["ndcg_at_5"] == shown["val_ndcg_at_5"] == [expected]
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.document_tower.vocabulary == model.document_tower.vocabulary
    assert loaded.evaluate(lists, return_dict=True, verbose=0)["ndcg_at_5"] == expected
    with pytest.raises(ValueError, match="batches of candidate lists, with list_lengths"):
        model.fit(INPUTS, tf.constant(grades), verbose=0)


def test_half_precision_is_refused():
    model, before = model_of_strings(), keras.mixed_precision.global_policy()
    towers = model.query_tower, model.document_tower
    try:
        for policy in ("mixed_float16", "mixed_bfloat16"):
            keras.mixed_precision.set_global_policy(policy)
            for build in (model_of_strings, lambda: TwoTower(*towers)):
                with pytest.raises(ValueError, match="set_global_policy"):
                    build()
    finally:
        keras.mixed_precision.set_global_policy(before)


def test_what_cannot_be_is_an_error_with_a_remedy(tmp_path):
    model, tower = model_of_strings(), AveragePoolingTower(4, 4)
    ids_with_ngrams = TwoTower(AveragePoolingTower(9, 4, ngram_buckets=5), tower)
    for call, message in (
        (lambda: model.compile("adam", "mse", jit_compile=True), "=True: XLA needs fixed shapes"),
        (lambda: model.vectors("queries", INPUTS["query"]), "role must be 'query' or 'document'"),
        (lambda: model.query_tower(tf.constant([[2, 3]])), "it reads strings, but got int32"),
        (lambda: model.query_tower.tower(tf.constant(QUERIES)), "reads ids, but got strings"),
        (lambda: TextTower(tower, ["a", "b", "c", "d"]), "must begin with"),
        (lambda: TextTower(tower, ["[PAD]", "[UNK]", "a"]), "with vocabulary_size=len"),
        (lambda: ids_with_ngrams.export(str(tmp_path)), "Wrap it in a TextTower"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
