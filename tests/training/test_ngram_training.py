"""N-grams of runs: their tables, and words that a run never saw."""

import dataclasses

import numpy as np
import tensorflow as tf

from tests.training.test_trainer import start
from tests.training.tiny_set import write_tiny_set
from tf_smoothclir.data.pipeline import token_batches
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.text.subwords import text_encoder
from tf_smoothclir.training.run_data import tokenized_set_of
from tf_smoothclir.training.run_directory import RunDirectory


def test_tables_begin_with_different_vectors_and_frozen_words_freeze_their_ngrams(tiny, tmp_path):
    _, model = start(tiny(ngram_buckets=50, train_query_embeddings=False), tmp_path / "run")
    assert model.query_tower.trainable_weights == []
    assert len(model.document_tower.trainable_weights) == 2
    assert len({weight.numpy()[:10].tobytes() for weight in model.weights}) == 4


def test_another_set_is_read_by_the_spelling_of_words_that_a_run_never_saw(tiny, tmp_path):
    settings = tiny(ngram_buckets=50, shared_vocabulary=True)
    _, model = start(settings, tmp_path / "run")
    run = RunDirectory.load(tmp_path / "run")
    other = write_tiny_set(tmp_path / "other")
    queries = other / "wiki_en.queries"
    queries.write_text(queries.read_text().replace("word", "words"))
    source = source_of(dataclasses.replace(settings.data, data_dir=str(other)))
    tokenized_set = tokenized_set_of(source, settings, run, ["test"])
    encoder = text_encoder(run.vocabulary / "query.txt", settings.text, "query")
    texts = [text.text for text in source.queries()]
    (batch,) = token_batches(tokenized_set, "query", 100)
    expected = model.vectors("query", encoder(tf.constant(texts)))
    np.testing.assert_array_equal(model.vectors("query", batch), expected)
    assert np.abs(expected).max(axis=1).min() > 0
    assert len({vector.tobytes() for vector in expected.numpy()}) > 1
