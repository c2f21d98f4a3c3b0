"""The models of a version of an export in memory: checked, loaded, warmed up, ready to answer."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf_smoothclir.publishing import export_directory
from tf_smoothclir.server.json_tensors import ROWS, inputs_of, parse_request, response_of
from tf_smoothclir.utils.errors import input_error

MAX_ROWS = 10_000  # of a request
MAX_ANSWER = 1 << 20  # numbers and strings in an answer, of up to about 20 bytes
MAX_TEXT_BYTES = 1 << 22  # of one text
MAX_TOKENS = 1 << 18  # of a request that gives ids of tokens, padding included
PIECE_ROWS, PIECE_BYTES = 256, 1 << 20  # of the texts that are computed at once, padding included
_SEVERAL = "Send several requests"
# What TensorFlow's Python puts in front of the message of an operation.
_EAGER = re.compile(r"^Graph execution error:\n\n(Detected at node .*\n(<stack .*\n)?)*")


class Signature:
    """One signature of a loaded model.

    Attributes:
        inputs: Name -> `tf.TensorSpec`, each of one dimension.
    """

    def __init__(self, function):
        self._function = function
        self.inputs: dict[str, tf.TensorSpec] = function.structured_input_signature[1]
        self.takes_texts = all(spec.dtype == tf.string for spec in self.inputs.values())
        outputs = function.structured_outputs.values()
        self._width = sum(one.shape[1:].num_elements() or 1 for one in outputs)

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Output name -> values, strings as bytes; texts are computed in pieces of some rows."""
        check_size(inputs, self._width)
        rows = {len(values) for values in inputs.values()}
        if not self.takes_texts or len(rows) > 1:  # a re-ranker takes one query for all documents
            return self._outputs(inputs)
        found = [
            self._outputs({name: values[piece] for name, values in inputs.items()})
            for piece in pieces(list(inputs.values()))
        ]
        return {name: np.concatenate([part[name] for part in found]) for name in found[0]}

    def _outputs(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        tensors = {name: tf.constant(inputs[name], self.inputs[name].dtype) for name in inputs}
        try:
            return {name: value.numpy() for name, value in self._function(**tensors).items()}
        except tf.errors.InvalidArgumentError as error:
            message = _EAGER.sub("", error.message)[:500]
            raise input_error("inputs", message, "See the signature's description") from None


def check_size(inputs: Mapping[str, np.ndarray], width: int = 1) -> None:
    """Checks that no small request takes much memory; `width` is what a row of the answer has."""
    for name, values in inputs.items():
        if name != "ids" and len(values) * width > MAX_ANSWER:
            reason = f"the answer to {len(values)} rows would have over {MAX_ANSWER} values"
            raise input_error(name, reason, _SEVERAL)
        if len(values) > (MAX_TOKENS if name == "ids" else MAX_ROWS):
            raise input_error(name, f"it has {len(values)} values", _SEVERAL)
        if values.dtype == object and any(len(text) > MAX_TEXT_BYTES for text in values):
            raise input_error(name, f"a text has over {MAX_TEXT_BYTES} bytes", "Cut it")
    lengths = inputs.get("lengths", np.zeros(0, np.int32))
    padded = len(lengths) * int(lengths.max(initial=0))
    if padded > MAX_TOKENS:
        raise input_error("lengths", f"padded, these are {padded} tokens", _SEVERAL)


def pieces(texts: Sequence[np.ndarray]) -> Iterator[slice]:
    """Slices of rows within `PIECE_ROWS` and, padded to the longest text, `PIECE_BYTES`."""
    begin, longest = 0, 0
    for row, parts in enumerate(zip(*texts)):
        size = sum(map(len, parts))
        longest = max(longest, size)
        rows = row - begin
        if rows == PIECE_ROWS or (rows and (rows + 1) * longest > PIECE_BYTES):
            yield slice(begin, row)
            begin, longest = row, size
    yield slice(begin, None)


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
    """Name -> each SavedModel of the newest complete version, or of the one that is given."""
    newest = export_directory.latest_manifest(export_dir, version).version
    return {
        name: ServedModel(name, newest, export_directory.load_part(export_dir, role, newest).model)
        for role, name in export_directory.MODELS.items()
        if newest in export_directory.exported_versions(export_dir, role)
    }
