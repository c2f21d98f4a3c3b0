"""Requests to a server by gRPC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import grpc
import numpy as np
import tensorflow as tf
from tensorflow.core.framework import types_pb2
from tensorflow_serving.apis import (
    get_model_status_pb2,
    model_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from tf_smoothclir.client.transport import (
    ModelSelection,
    RequestFailure,
    Transport,
    VersionStatus,
)

_CODES = {code.value[0]: code.name for code in grpc.StatusCode}
_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # By default, a channel that has lost its server does not reconnect for a second or more; all
    # attempts of the client would fail in that time.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
]


class GrpcTransport(Transport):
    """Talks to PredictionService and ModelService."""

    def __init__(self, address: str, timeout: float):
        self._channel = grpc.insecure_channel(address, options=_OPTIONS)
        self._timeout = timeout
        self._predict = prediction_service_pb2_grpc.PredictionServiceStub(self._channel).Predict
        self._status = model_service_pb2_grpc.ModelServiceStub(self._channel).GetModelStatus

    def predict(
        self, model: ModelSelection, signature: str, inputs: Mapping[str, Sequence[bytes]]
    ) -> dict[str, np.ndarray]:
        request = predict_pb2.PredictRequest(model_spec=_spec(model, signature))
        for name, values in inputs.items():
            tensor = request.inputs[name]
            tensor.dtype = types_pb2.DT_STRING
            tensor.tensor_shape.dim.add().size = len(values)
            tensor.string_val.extend(values)
        response = self._call(self._predict, request)
        return {name: tf.make_ndarray(tensor) for name, tensor in response.outputs.items()}

    def status(self, model: ModelSelection) -> list[VersionStatus]:
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
        self._channel.close()

    def _call(self, method, request):
        try:
            return method(request, timeout=self._timeout)
        except grpc.RpcError as error:
            raise RequestFailure(error.code().name, error.details() or "no details") from None


def _spec(model: ModelSelection, signature: str = "") -> model_pb2.ModelSpec:
    spec = model_pb2.ModelSpec(name=model.name, signature_name=signature)
    if model.version:
        spec.version.value = model.version
    elif model.label:
        spec.version_label = model.label
    return spec
