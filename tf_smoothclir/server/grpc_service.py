"""TensorFlow Serving's gRPC API over loaded models: Predict, GetModelMetadata, GetModelStatus."""

from __future__ import annotations

import functools
import logging
import math

import grpc
import numpy as np
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from tf_smoothclir.server.loaded_model import DEFAULT_SIGNATURE
from tf_smoothclir.server.model_registry import ModelRegistry, VersionChoice
from tf_smoothclir.server.request_error import RequestError, invalid
from tf_smoothclir.server.request_limits import MAX_INSTANCES, too_many_instances

_LARGEST = 1 << 20  # values, or bytes of texts, of an input whose proto repeats its last value
_STATES = get_model_status_pb2.ModelVersionStatus.State
_CODES = {code.name: code for code in grpc.StatusCode}


def add_services(server: grpc.Server, models: ModelRegistry) -> None:
    """Adds PredictionService and ModelService to a server."""
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
        _PredictionService(models), server
    )
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(_ModelService(models), server)


def _answering(method):
    """Turns the errors of a method into gRPC statuses."""

    @functools.wraps(method)
    def answer(self, request, context):
        try:
            return method(self, request)
        except RequestError as error:
            code, message = error.code, error.message
        except Exception as error:  # a defect here or in the model: the server keeps running
            logging.exception("%s failed", method.__name__)
            code, message = "INTERNAL", f"{type(error).__name__} in the server; see its log"
        return context.abort(_CODES[code], message)

    return answer


class _PredictionService(prediction_service_pb2_grpc.PredictionServiceServicer):
    def __init__(self, models: ModelRegistry):
        self._models = models

    @_answering
    def Predict(self, request):
        model = self._models.get(*_choice(request.model_spec))
        signature_name = request.model_spec.signature_name or DEFAULT_SIGNATURE
        signature = model.signature(signature_name)
        signature.check_names(request.inputs)
        inputs = {name: _from_proto(name, proto) for name, proto in request.inputs.items()}
        outputs = signature.run(inputs, request.output_filter)
        response = predict_pb2.PredictResponse()
        _fill_spec(response.model_spec, model)
        response.model_spec.signature_name = signature_name
        for name, values in outputs.items():
            _fill_proto(response.outputs[name], values)
        return response

    @_answering
    def GetModelMetadata(self, request):
        for field in request.metadata_field or [""]:
            if field != "signature_def":
                raise invalid(f"Metadata field {field!r} is not supported; ask for signature_def")
        model = self._models.get(*_choice(request.model_spec))
        response = get_model_metadata_pb2.GetModelMetadataResponse()
        _fill_spec(response.model_spec, model)
        signatures = get_model_metadata_pb2.SignatureDefMap(signature_def=model.signature_defs)
        response.metadata["signature_def"].Pack(signatures)
        return response

    @_answering
    def Classify(self, request):
        raise _only_predict("Classify")

    @_answering
    def Regress(self, request):
        raise _only_predict("Regress")

    @_answering
    def MultiInference(self, request):
        raise _only_predict("MultiInference")


class _ModelService(model_service_pb2_grpc.ModelServiceServicer):
    def __init__(self, models: ModelRegistry):
        self._models = models

    @_answering
    def GetModelStatus(self, request):
        return model_status(self._models, request.model_spec)

    @_answering
    def HandleReloadConfigRequest(self, request):
        raise RequestError(
            "UNIMPLEMENTED", "Edit the model config file instead; the server reads it again"
        )


def _choice(spec) -> VersionChoice:
    """What a `ModelSpec` names."""
    version = spec.version.value if spec.HasField("version") else None
    return VersionChoice(spec.name, version, spec.version_label)


def model_status(models: ModelRegistry, spec) -> get_model_status_pb2.GetModelStatusResponse:
    """The states of the versions that a `ModelSpec` selects."""
    if not spec.name:
        raise invalid("Missing ModelSpec name")
    response = get_model_status_pb2.GetModelStatusResponse()
    for version, state in models.states(*_choice(spec)).items():
        entry = response.model_version_status.add(version=version, state=_STATES.Value(state.state))
        entry.status.error_code = _CODES[state.code].value[0]
        entry.status.error_message = state.message
    return response


def _fill_spec(spec, model) -> None:
    spec.name = model.name
    spec.version.value = model.version


def _only_predict(method: str) -> RequestError:
    return invalid(f"{method} needs tf.Example inputs, which these models do not have; use Predict")


def _from_proto(name: str, proto: tensor_pb2.TensorProto) -> np.ndarray:
    sizes = [dim.size for dim in proto.tensor_shape.dim]
    if proto.tensor_shape.unknown_rank or any(size < 0 for size in sizes):
        raise invalid(f"Input {name!r} has no fully defined shape")
    texts = proto.string_val
    if len(texts) > MAX_INSTANCES:
        raise too_many_instances()
    repeated = (math.prod(sizes) - len(texts)) * len(texts[-1]) if texts else 0  # bytes
    if math.prod(sizes) > max(_LARGEST, proto.ByteSize()) or repeated > _LARGEST:
        raise invalid(f"Input {name!r} has the shape {sizes}, which is too large")
    try:
        return tf.make_ndarray(proto)
    except (TypeError, ValueError, KeyError) as error:
        raise invalid(f"Input {name!r} is not a tensor: {error}") from None


def _fill_proto(proto: tensor_pb2.TensorProto, values: np.ndarray) -> None:
    proto.dtype = tf.as_dtype(values.dtype).as_datatype_enum
    for size in values.shape:
        proto.tensor_shape.dim.add().size = size
    if values.dtype == object:
        proto.string_val.extend(values.ravel())
    else:
        proto.tensor_content = values.tobytes()
