"""Warm-up requests, which TensorFlow Serving answers before it says that a model is ready.

Without them, the first users would wait while memory is allocated and graphs are optimised.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import tensorflow as tf

# Rows per request: one, as from a single user, and the largest batch that the server forms
# (max_execution_batch_size in export/serving/batching.config).
BATCH_SIZES = (1, 32)
# Shortest, median, long, longest: their costs differ a lot.
_QUANTILES = (0.0, 0.5, 0.95, 1.0)


def warm_up_batches(texts: Sequence[bytes]) -> list[list[bytes]]:
    """Chooses texts of typical and extreme lengths, in batches of all `BATCH_SIZES`.

    Returns:
        For size 1, one batch for each of the quantiles 0, 0.5, 0.95 and 1 of the length in bytes.
        For another size, one batch whose texts are spread evenly over the lengths.
    """
    ordered = sorted(texts, key=len)

    def at(quantile):
        return ordered[round(quantile * (len(ordered) - 1))]

    batches = []
    for size in BATCH_SIZES:
        if size == 1:
            batches += [[at(quantile)] for quantile in _QUANTILES]
        else:
            batches.append([at((row + 0.5) / size) for row in range(size)])
    return batches


def warm_up_requests(
    role: str, texts: dict[str, Sequence[bytes]]
) -> list[tuple[str, dict[str, list[bytes]]]]:
    """(signature, input name -> rows) for each request that warms a part up."""
    batches = {name: warm_up_batches(rows) for name, rows in texts.items()}
    if role != "reranker":
        batch_of = batches["query" if role == "search" else role]
        return [("serving_default", {"text": batch}) for batch in batch_of]
    pairs = [
        {"query": query, "document": document}
        for query, document in zip(batches["query"], batches["document"])
    ]
    return [("serving_default", pair) for pair in pairs]


def write_warm_up(
    directory: Path, model_name: str, requests: Sequence[tuple[str, dict[str, list[bytes]]]]
) -> None:
    """Writes requests where TensorFlow Serving looks for them."""
    # Imported here because it takes a second.
    from tensorflow_serving.apis import model_pb2, predict_pb2, prediction_log_pb2

    (directory / "assets.extra").mkdir(exist_ok=True)
    path = directory / "assets.extra" / "tf_serving_warmup_requests"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for signature, inputs in requests:
            spec = model_pb2.ModelSpec(name=model_name, signature_name=signature)
            request = predict_pb2.PredictRequest(model_spec=spec)
            for name, rows in inputs.items():
                request.inputs[name].CopyFrom(tf.make_tensor_proto(rows))
            log = prediction_log_pb2.PredictLog(request=request)
            writer.write(prediction_log_pb2.PredictionLog(predict_log=log).SerializeToString())
