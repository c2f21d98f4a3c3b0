"""A version of a model in memory: checked, loaded, warmed up, ready to answer."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from tf_smoothclir.publishing.export_directory import REMEDY_FOR_CHANGED_FILES
from tf_smoothclir.publishing.manifest import ExportManifest, check_files
from tf_smoothclir.server.request_error import HTTP_STATUS, RequestError, invalid
from tf_smoothclir.server.request_limits import check_values, pieces

DEFAULT_SIGNATURE = "serving_default"
_CODES = dict(enumerate(HTTP_STATUS, start=1))  # the numbers of gRPC, which has this order
# What TensorFlow's Python puts in front of the message of an operation.
_EAGER = re.compile(r"^Graph execution error:\n\n(Detected at node .*\n(<stack .*\n)?)*")


class Signature:
    """One signature of a loaded model.

    Attributes:
        inputs: Name -> `tf.TensorSpec`.
        outputs: Names, sorted.
    """

    def __init__(self, function):
        self._function = function
        self.inputs: dict[str, tf.TensorSpec] = function.structured_input_signature[1]
        self.outputs = tuple(sorted(function.structured_outputs))
        # Whether each row is computed by itself, so that a large request can go in pieces.
        texts = all(_has_rows(i) and i.dtype == tf.string for i in self.inputs.values())
        self._by_rows = texts and all(map(_has_rows, function.structured_outputs.values()))

    def run(
        self, inputs: Mapping[str, np.ndarray], outputs: Sequence[str] = ()
    ) -> dict[str, np.ndarray]:
        """Answers a request.

        Args:
            inputs: Name -> values; strings as objects of type bytes.
        """
        self._check(inputs, outputs)
        outputs = outputs or self.outputs
        if not self._by_rows or len({len(value) for value in inputs.values()}) > 1:
            return self._result(inputs, outputs)
        found = [
            self._result({name: value[piece] for name, value in inputs.items()}, outputs)
            for piece in pieces([*inputs.values()])
        ]
        if len(found) == 1:
            return found[0]
        return {name: np.concatenate([piece[name] for piece in found]) for name in outputs}

    def _result(
        self, inputs: Mapping[str, np.ndarray], outputs: Sequence[str]
    ) -> dict[str, np.ndarray]:
        try:
            tensors = {
                name: tf.constant(value, self.inputs[name].dtype) for name, value in inputs.items()
            }
            result = self._function(**tensors)
            return {name: result[name].numpy() for name in outputs}
        except tf.errors.OpError as error:
            code = _CODES.get(error.error_code, "UNKNOWN")
            raise RequestError(code, _EAGER.sub("", error.message)) from error

    def check_names(self, names: Iterable[str]) -> None:
        """Checks the names of inputs, before memory is taken for their values."""
        sent, wanted = set(names), set(self.inputs)
        if sent != wanted:
            raise invalid(
                f"input size does not match signature: {len(sent)}!={len(wanted)}"
                f" len({_listed(sent)}) != len({_listed(wanted)})."
                f" Sent extra: {_listed(sent - wanted)}."
                f" Missing but required: {_listed(wanted - sent)}."
            )

    def _check(self, inputs, outputs) -> None:
        self.check_names(inputs)
        for name, value in inputs.items():
            spec = self.inputs[name]
            dtype = tf.as_dtype(value.dtype)
            if dtype != spec.dtype:
                raise invalid(
                    f"Expects input {name!r} to be {spec.dtype.name} but {dtype.name} is provided"
                )
            if not spec.shape.is_compatible_with(value.shape):
                raise invalid(
                    f"Expects input {name!r} to have the shape {spec.shape} but"
                    f" {list(value.shape)} is provided"
                )
            check_values(name, value)
        for name in outputs:
            if name not in self.outputs:
                raise invalid(
                    f"output tensor alias not found in signature: {name}"
                    f" Outputs expected to be in the set {_listed(self.outputs)}."
                )
        if len(set(outputs)) < len(outputs):
            raise invalid(f"duplicate output tensor alias in {_listed(outputs)}")


class LoadedModel:
    """A version of a model.

    It lives as long as something refers to it. A request under way does, so taking a version out of
    service never disturbs a request.

    Attributes:
        name: Name of the model.
        version: Its version.
        signature_defs: Name -> `SignatureDef`, as in the file.
    """

    def __init__(self, name: str, version: int, directory: Path):
        self.name = name
        self.version = version
        manifest = ExportManifest.read(directory)
        check_files(directory, manifest, REMEDY_FOR_CHANGED_FILES)
        self._model = tf.saved_model.load(str(directory))
        self._signatures = {key: Signature(f) for key, f in self._model.signatures.items()}
        parsed = saved_model_pb2.SavedModel.FromString((directory / "saved_model.pb").read_bytes())
        self.signature_defs = dict(parsed.meta_graphs[0].signature_def)
        self._warm_up(directory / "assets.extra" / "tf_serving_warmup_requests")

    def signature(self, name: str) -> Signature:
        """A signature; for an empty name, the default one."""
        signature = self._signatures.get(name or DEFAULT_SIGNATURE)
        if signature is None:
            raise RequestError(
                "FAILED_PRECONDITION",
                f'Serving signature key "{name or DEFAULT_SIGNATURE}" not found.'
                f" The model has {_listed(self._signatures)}.",
            )
        return signature

    def _warm_up(self, path: Path) -> None:
        if not path.is_file():
            return
        from tensorflow_serving.apis import prediction_log_pb2

        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            request = prediction_log_pb2.PredictionLog.FromString(record).predict_log.request
            inputs = {key: tf.make_ndarray(value) for key, value in request.inputs.items()}
            try:
                self.signature(request.model_spec.signature_name).run(inputs)
            except RequestError as error:
                logging.warning("%s: a warm-up request failed: %s", path, error)


def _has_rows(tensor) -> bool:
    """Whether the first dimension of a tensor is the rows of a request."""
    return bool(tensor.shape.rank) and tensor.shape[0] is None


def _listed(names) -> str:
    return "{" + ",".join(sorted(names)) + "}"
