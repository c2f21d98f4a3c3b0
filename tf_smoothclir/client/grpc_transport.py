"""Requests to a server by gRPC, with TensorFlow Serving's own stubs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import (
    get_model_status_pb2,
    model_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from tf_smoothclir.client.transport import ModelSelection, RequestFailure, VersionStatus

_CODES = {code.value[0]: code.name for code in grpc.StatusCode}


class GrpcTransport:
    """Talks to PredictionService and ModelService."""

    def __init__(self, address: str, timeout: float, retries: int):
        self._channel = grpc.insecure_channel(address, options=_options(retries))
        self._timeout = timeout
        self._predict = prediction_service_pb2_grpc.PredictionServiceStub(self._channel).Predict
        self._status = model_service_pb2_grpc.ModelServiceStub(self._channel).GetModelStatus

    def predict(
        self, model: ModelSelection, signature: str, inputs: Mapping[str, Sequence[bytes]]
    ) -> dict[str, np.ndarray]:
        """Runs a signature."""
        request = predict_pb2.PredictRequest(model_spec=_spec(model, signature))
        for name, values in inputs.items():
            request.inputs[name].CopyFrom(tf.make_tensor_proto(values, tf.string, [len(values)]))
        response = self._call(self._predict, request)
        return {name: tf.make_ndarray(tensor) for name, tensor in response.outputs.items()}

    def status(self, model: ModelSelection) -> list[VersionStatus]:
        """Returns the status of each version."""
        request = get_model_status_pb2.GetModelStatusRequest(model_spec=_spec(model))
        kind = get_model_status_pb2.ModelVersionStatus.State
        return [
            VersionStatus(
                version=entry.version,
                state=kind.Name(entry.state),
                error_code=_CODES.get(entry.status.error_code, "UNKNOWN"),
                error_message=entry.status.error_message,
            )
            for entry in self._call(self._status, request).model_version_status
        ]

    def close(self) -> None:
        """Closes the connection."""
        self._channel.close()

    def _call(self, method, request):
        try:
            return method(request, timeout=self._timeout)
        except grpc.RpcError as error:
            raise RequestFailure(error.code().name, error.details() or "no details") from None


def _options(retries: int) -> list[tuple[str, int | str]]:
    options: list[tuple[str, int | str]] = [
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
        # By default, a channel that has lost its server does not reconnect for a second or more:
        # all attempts would fail in that time.
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 1000),
    ]
    if retries:
        policy = {
            "maxAttempts": 1 + min(retries, 4),  # the most that gRPC makes
            "initialBackoff": "0.2s",
            "maxBackoff": "5s",
            "backoffMultiplier": 2,
            "retryableStatusCodes": ["UNAVAILABLE"],
        }
        config = {"methodConfig": [{"name": [{}], "retryPolicy": policy}]}
        options.append(("grpc.service_config", json.dumps(config)))
    return options


def _spec(model: ModelSelection, signature: str = "") -> model_pb2.ModelSpec:
    spec = model_pb2.ModelSpec(name=model.name, signature_name=signature)
    if model.version:
        spec.version.value = model.version
    elif model.label:
        spec.version_label = model.label
    return spec
