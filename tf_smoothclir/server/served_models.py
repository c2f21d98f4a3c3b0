"""The models of a version of an export in memory: checked, loaded, warmed up, ready to answer."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from tf_smoothclir.publishing import export_directory
from tf_smoothclir.server.json_tensors import ROWS, inputs_of, parse_request, response_of
from tf_smoothclir.utils.errors import InputError, input_error

MAX_ROWS = 10_000  # of a request
MAX_ANSWER = 1 << 20  # numbers and strings in an answer, of up to about 20 bytes
MAX_TEXT_BYTES = 1 << 22  # of one text
_SEVERAL = "Send several requests"
# What TensorFlow's Python puts in front of the message of an operation.
_EAGER = re.compile(r"^Graph execution error:\n\n(Detected at node .*\n(<stack .*\n)?)*")


class Signature:
    """One signature of a loaded model."""

    def __init__(self, function):
        self._function = function
        # Name -> `tf.TensorSpec`, each of one dimension.
        self.inputs: dict[str, tf.TensorSpec] = function.structured_input_signature[1]
        self.takes_texts = all(spec.dtype == tf.string for spec in self.inputs.values())
        outputs = function.structured_outputs.values()
        self._width = sum(one.shape[1:].num_elements() or 1 for one in outputs)

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Output name -> values, strings as bytes."""
        check_size(inputs, self._width)
        tensors = {name: tf.constant(inputs[name], self.inputs[name].dtype) for name in inputs}
        try:
            return {name: value.numpy() for name, value in self._function(**tensors).items()}
        except tf.errors.InvalidArgumentError as error:
            message = _EAGER.sub("", error.message)[:500]
            raise input_error("inputs", message, "See the signature's description") from None


def check_size(inputs: Mapping[str, np.ndarray], width: int = 1) -> None:
    """Checks that no small request takes long, or has a long answer of `width` values for a row.

    The models bound the memory of a request (`publishing.request_bounds`), but not of its JSON.
    """
    for name, values in inputs.items():
        if name == "ids":
            continue
        if len(values) * width > MAX_ANSWER:
            reason = f"the answer to {len(values)} rows would have over {MAX_ANSWER} values"
            raise input_error(name, reason, _SEVERAL)
        if len(values) > MAX_ROWS:
            raise input_error(name, f"it has {len(values)} values", _SEVERAL)
        if values.dtype == object and any(len(text) > MAX_TEXT_BYTES for text in values):
            raise input_error(name, f"a text has over {MAX_TEXT_BYTES} bytes", "Cut it")


class ServedModel:
    """A model, and the version of its export."""

    def __init__(self, name: str, version: int, model: Any):
        self.name, self.version, self._model = name, version, model
        self._signatures = {key: Signature(one) for key, one in model.signatures.items()}
        for signature in self._signatures.values():
            if signature.takes_texts:  # the first run takes longer
                signature.run({key: np.array([b"a"], object) for key in signature.inputs})

    def answer(self, body: bytes) -> bytes:
        """Answers the body of a predict request."""
        document = parse_request(body)
        name = document.get("signature_name") or "serving_default"
        if name not in self._signatures:
            there = f"Give one of {sorted(self._signatures)}"
            raise input_error(f"signature_name {name[:80]!r}", "there is no such signature", there)
        signature = self._signatures[name]
        outputs = signature.run(inputs_of(document, signature.inputs))
        return response_of(outputs, by_rows=ROWS in document)

    def status(self) -> dict:
        """What a server says of it."""
        status = {"error_code": "OK", "error_message": ""}
        version = {"version": str(self.version), "state": "AVAILABLE", "status": status}
        return {"model_version_status": [version]}


def load_models(
    export_dir: str | os.PathLike, version: int | None = None
) -> dict[str, ServedModel]:
    """Name -> each SavedModel of the version that is given, or of the newest that is whole."""
    there = export_directory.versions_newest_first(export_dir) if version is None else []
    for number in there[:-1]:
        try:
            return _models_of(export_dir, number)
        except (InputError, tf.errors.OpError, OSError, ValueError) as error:
            logging.warning("Version %d is not served: %s", number, error)
    return _models_of(export_dir, there[-1] if there else version)


def _models_of(export_dir: str | os.PathLike, version: int | None) -> dict[str, ServedModel]:
    number = export_directory.latest_manifest(export_dir, version).version
    return {
        name: ServedModel(name, number, export_directory.load_part(export_dir, role, number).model)
        for role, name in export_directory.MODELS.items()
        if number in export_directory.exported_versions(export_dir, role)
    }
