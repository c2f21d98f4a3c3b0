"""Warm-up requests: real lengths, the batch sizes of the server, and answers from the model."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

from tests.training.tiny_set import QUERIES, words_of
from tf_smoothclir.publishing.export_directory import MODELS, part_dir
from tf_smoothclir.publishing.warm_up import BATCH_SIZES, warm_up_batches

# Size of a request -> how many; four of one row, for the quantiles.
SIZES = {1: 4, **dict.fromkeys(BATCH_SIZES[1:], 1)}
REAL_QUERIES = {
    " ".join(f"word{word}" for word in words_of(number)[:2]).encode() for number in range(QUERIES)
}


def requests_of(export_dir, role):
    """The requests of a published part, as a server reads them."""
    path = part_dir(export_dir, role) / "1" / "assets.extra" / "tf_serving_warmup_requests"
    return [
        prediction_log_pb2.PredictionLog.FromString(record.numpy()).predict_log.request
        for record in tf.data.TFRecordDataset(str(path))
    ]


@pytest.mark.parametrize(
    ("name", "role"),
    [("dense", "query"), ("dense", "document"), ("dense", "search"), ("hybrid", "search")],
)
def test_requests_replay_through_the_loaded_signatures(ranking_exports, name, role):
    export_dir = ranking_exports[name]
    signatures = tf.saved_model.load(str(part_dir(export_dir, role) / "1")).signatures
    sizes = {}
    for request in requests_of(export_dir, role):
        assert request.model_spec.name == MODELS[role]
        inputs = {key: tf.make_ndarray(value) for key, value in request.inputs.items()}
        (size,) = {len(rows) for rows in inputs.values()}
        tensors = {key: tf.constant(rows.tolist(), tf.string) for key, rows in inputs.items()}
        outputs = signatures[request.model_spec.signature_name](**tensors)
        if role == "query":
            assert set(inputs["text"].tolist()) <= REAL_QUERIES
        for output in outputs.values():
            assert len(output) == size
            assert output.dtype == tf.string or np.isfinite(output).all()
        counted = sizes.setdefault(request.model_spec.signature_name, {})
        counted[size] = counted.get(size, 0) + 1
    expected = ["serving_default", "score"] if role == "search" else ["serving_default"]
    assert sizes == dict.fromkeys(expected, SIZES)


def test_texts_are_chosen_by_length_whatever_their_order():
    lengths = np.random.default_rng(5).permutation(101)
    batches = warm_up_batches([b"zyx"[length % 3 :][:1] * length for length in lengths])
    assert [len(batch[0]) for batch in batches[:4]] == [0, 50, 95, 100]
    (spread,) = batches[4:]
    assert [len(text) for text in spread] == [round((row + 0.5) / 32 * 100) for row in range(32)]
    for texts in ([b""], [b"one"], [b"one", b"two words"]):  # few are enough
        batches = warm_up_batches(texts)
        assert [len(batch) for batch in batches] == [1, 1, 1, 1, *BATCH_SIZES[1:]]
        assert {text for batch in batches for text in batch} == set(texts)
