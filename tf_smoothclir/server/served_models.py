"""TensorFlow Serving's JSON, and the models of a version that answer it: checked, warmed up."""

import base64
import contextlib
import json
import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from tf_smoothclir.publishing import export_directory
from tf_smoothclir.utils.errors import InputError, input_error

MAX_ROWS = 10_000  # of a request
MAX_ANSWER = 1 << 20  # numbers and strings in an answer, of up to about 20 bytes
MAX_TEXT_BYTES = 1 << 22  # of one text
_SEVERAL = "Send several requests"
# What TensorFlow's Python puts in front of the message of an operation.
_EAGER = re.compile(r"^Graph execution error:\n\n(Detected at node .*\n(<stack .*\n)?)*")
ROWS, COLUMNS = "instances", "inputs"
# In the JSON of a request, counted before it is parsed; a value takes about 60 bytes of memory, an
# object 240.
MAX_VALUES, _MAX_OBJECTS = 1_000_000, 250_000


class Signature:
    """One signature of a loaded model."""

    def __init__(self, function):
        self._function = function
        # Name -> `tf.TensorSpec`: texts or numbers, one for each row, or a vector for each row.
        self.inputs: dict[str, tf.TensorSpec] = function.structured_input_signature[1]
        self.takes_texts = all(spec.dtype == tf.string for spec in self.inputs.values())
        outputs = function.structured_outputs.values()
        self._width = sum(output.shape[1:].num_elements() or 1 for output in outputs)

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
    """Checks that no small request takes long, or has a long answer of `width` values for a row."""
    # The models bound the memory of a request (`publishing.request_bounds`), but not of its JSON.
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
        self._signatures = {key: Signature(function) for key, function in model.signatures.items()}
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
    export_dir: str | os.PathLike, version: int | None = None, *, may_be_none: bool = False
) -> dict[str, ServedModel]:
    """Name -> each SavedModel of the version that is given, or of the newest that is whole."""
    models = _newest_models(export_dir, version)
    if not models and not may_be_none:
        raise input_error(
            f"--export_dir={export_dir}",
            "the version has no model for requests: it was exported with --nosearch_model, or ranks"
            " by what TensorFlow cannot",
            "Give --ui, whose page searches an index; or --version of another version; or export"
            " again without --nosearch_model",
        )
    return models


def _newest_models(export_dir: str | os.PathLike, version: int | None) -> dict[str, ServedModel]:
    there = export_directory.versions_newest_first(export_dir) if version is None else []
    for newer in there[:-1]:
        try:
            return _models_of(export_dir, newer)
        except (InputError, tf.errors.OpError, OSError, ValueError) as error:
            logging.warning("Version %d is not served: %s", newer, error)
    return _models_of(export_dir, there[-1] if there else version)


def _models_of(export_dir: str | os.PathLike, version: int | None) -> dict[str, ServedModel]:
    served = export_directory.latest_manifest(export_dir, version).version
    return {
        name: ServedModel(name, served, export_directory.load_part(export_dir, role, served).model)
        for role, name in export_directory.MODELS.items()
        if served in export_directory.exported_versions(export_dir, role)
    }


def parse_request(body: bytes) -> dict:
    """Reads the body of a predict request: an object with either `ROWS` or `COLUMNS`."""
    objects = body.count(b"{")
    if objects + body.count(b",") + body.count(b"[") > MAX_VALUES or objects > _MAX_OBJECTS:
        reason = f"it has over {MAX_VALUES} values or {_MAX_OBJECTS} objects"
        raise input_error("body", reason, "Send several requests")
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:  # the latter if it is nested too deeply
        raise input_error("body", f"it is not JSON ({error})", "Give a JSON object") from None
    if not isinstance(document, dict) or (ROWS in document) == (COLUMNS in document):
        reason = f"it is no object with one of {ROWS!r} and {COLUMNS!r}"
        raise input_error("body", reason, "Give one of them")
    if not isinstance(document.get("signature_name", ""), str):
        raise input_error("signature_name", "it is no string", "Give the name of a signature")
    return document


def inputs_of(document: dict, specs: Mapping[str, tf.TensorSpec]) -> dict[str, np.ndarray]:
    """The inputs of a signature from a document of `parse_request`; strings as bytes."""
    columns = _columns(document[ROWS], specs) if ROWS in document else document[COLUMNS]
    if not _is_object(columns):
        columns = {_only_name(specs): columns}
    _check_names(COLUMNS, columns, specs)
    return {name: _array(name, columns[name], spec) for name, spec in specs.items()}


def _columns(rows, specs: Mapping[str, tf.TensorSpec]) -> dict[str, list]:
    """Turns rows into columns."""
    if not isinstance(rows, list) or not rows:
        raise input_error(ROWS, "it is no list with values", "Give one instance per text")
    if not any(map(_is_object, rows)):
        return {_only_name(specs): rows}
    for place, row in enumerate(rows):
        _check_names(f"{ROWS}[{place}]", row, specs)
    return {name: [row[name] for row in rows] for name in specs}


def _is_object(value) -> bool:
    return isinstance(value, dict) and value.keys() != {"b64"}


def _only_name(specs: Mapping[str, tf.TensorSpec]) -> str:
    if len(specs) > 1:
        raise _wrong_names("inputs", "they have no names", specs)
    return next(iter(specs))


def _check_names(where: str, given, specs: Mapping[str, tf.TensorSpec]) -> None:
    if not _is_object(given):
        raise _wrong_names(where, "it is no object", specs)
    if given.keys() != specs.keys():
        raise _wrong_names(where, f"it has {str(sorted(given))[:200]}", specs)


def _wrong_names(where: str, reason: str, specs: Mapping[str, tf.TensorSpec]) -> InputError:
    return input_error(where, reason, f"The signature needs an object with {sorted(specs)}")


def _array(name: str, values, spec: tf.TensorSpec) -> np.ndarray:
    dtype = spec.dtype
    if not isinstance(values, list):
        raise input_error(name, "it is no list", "Give a list with one value per row")
    if spec.shape.rank == 2:
        return _vectors(name, values, spec.shape[1])
    if dtype == tf.string:
        return np.array([_text(name, value) for value in values], object)
    if any(type(value) is not int or not dtype.min <= value <= dtype.max for value in values):
        raise input_error(name, f"a value is no {dtype.name}", "Give integers")
    return np.array(values, dtype.as_numpy_dtype)


def _vectors(name: str, rows: list, dim: int) -> np.ndarray:
    if all(
        isinstance(row, list) and len(row) == dim and {*map(type, row)} <= {int, float}
        for row in rows
    ):
        with contextlib.suppress(OverflowError):  # an integer that no float holds
            vectors = np.array(rows, np.float32)
            if np.isfinite(vectors).all():
                return vectors
    raise input_error(name, "a row is no vector", f"Give lists of {dim} finite numbers")


def _text(name: str, value) -> bytes:
    try:
        if isinstance(value, str):
            return value.encode("utf-8")
        encoded = value["b64"]
        return base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (KeyError, TypeError, ValueError) as error:
        shown = str(error) if isinstance(error, ValueError) else json.dumps(value)
        remedy = 'Give strings, or {"b64": ...} for bytes that are not UTF-8'
        raise input_error(name, f"a value is no text ({shown[:200]})", remedy) from None


def response_of(outputs: Mapping[str, np.ndarray], *, by_rows: bool) -> bytes:
    """The answer to a predict request in its format; a single output has no name."""
    # It is encoded row by row: a list of all its numbers would take several times its memory.
    names = sorted(outputs)
    if by_rows:
        rows = zip(*(outputs[name] for name in names), strict=True)
        if len(names) == 1:
            return _object({"predictions": _list(row for (row,) in rows)})
        return _object({"predictions": _list(dict(zip(names, row)) for row in rows)})
    columns = {name: _list(outputs[name]) for name in names}
    return _object({"outputs": columns[names[0]] if len(names) == 1 else _object(columns)})


def _object(members: Mapping[str, bytes]) -> bytes:
    """JSON of an object whose values are JSON already."""
    return b"{%s}" % b", ".join(b'"%s": %s' % (key.encode(), members[key]) for key in members)


def _list(rows) -> bytes:
    encoded = (json.dumps(_plain(row), ensure_ascii=False).encode("utf-8") for row in rows)
    return b"[%s]" % b", ".join(encoded)


def _plain(value):
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return [_plain(part) for part in value] if value.dtype == object else value.tolist()
