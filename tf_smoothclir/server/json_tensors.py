"""TensorFlow Serving's JSON for tensors: row format (`instances`) and column format (`inputs`)."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping

import numpy as np
import tensorflow as tf

from tf_smoothclir.server.request_error import RequestError, invalid
from tf_smoothclir.server.request_limits import MAX_INSTANCES, check_json

ROWS, COLUMNS = "instances", "inputs"


def parse_request(body: bytes) -> tuple[dict, str, str]:
    """Reads the body of a predict request.

    Returns:
        `(document, format, signature name)`; the format is `ROWS` or `COLUMNS`.
    """
    check_json(body)
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise invalid(f"JSON Parse error: {error}") from None
    if not isinstance(document, dict):
        raise invalid("JSON Value: Is not object")
    name = document.get("signature_name", "")
    if not isinstance(name, str):
        raise invalid("'signature_name' key must be a string value.")
    if ROWS in document and COLUMNS in document:
        raise invalid(f"Expecting only one of '{COLUMNS}' or '{ROWS}' keys to exist")
    if ROWS not in document and COLUMNS not in document:
        raise invalid(f"Missing '{COLUMNS}' or '{ROWS}' key")
    if ROWS in document and not (isinstance(document[ROWS], list) and document[ROWS]):
        raise invalid(f"Expecting '{ROWS}' to be a list with values")
    if len(document.get(ROWS, ())) > MAX_INSTANCES:
        raise invalid(f"The request has over {MAX_INSTANCES} instances; send several requests")
    return document, ROWS if ROWS in document else COLUMNS, name


def inputs_of(
    document: dict, form: str, specs: Mapping[str, tf.TensorSpec]
) -> dict[str, np.ndarray]:
    """The inputs of a signature, from a document of `parse_request`."""
    columns = document[COLUMNS] if form == COLUMNS else _columns(document[ROWS], specs)
    if not _is_object(columns):
        columns = {_only_name(specs, form): columns}
    for name in specs:
        if name not in columns:
            raise invalid(f"Missing named input: {name} in '{form}' object.")
    try:
        return {name: _tensor(columns[name], name, spec.dtype) for name, spec in specs.items()}
    except RecursionError:
        raise invalid(f"'{form}' is nested too deeply") from None


def _columns(rows: list, specs) -> dict[str, list]:
    """Turns rows into columns."""
    if not _is_object(rows[0]):
        name = _only_name(specs, ROWS)
        for number, row in enumerate(rows):
            if _is_object(row):
                raise invalid(f"Expecting value/list but got object at item {number} of input list")
        return {name: rows}
    for number, row in enumerate(rows):
        if not _is_object(row) or row.keys() != specs.keys():
            raise invalid(
                f"Failed to process element: {number} of '{ROWS}' list. It must be an object with"
                f" the keys: {','.join(sorted(specs))}"
            )
    return {name: [row[name] for row in rows] for name in specs}


def _only_name(specs, form: str) -> str:
    if len(specs) > 1:
        raise invalid(
            f"'{form}' holds plain values, but objects are expected, as the signature has several"
            f" inputs: {','.join(sorted(specs))}"
        )
    return next(iter(specs))


def _is_object(value) -> bool:
    return isinstance(value, dict) and value.keys() != {"b64"}


def _tensor(value, name: str, dtype: tf.DType) -> np.ndarray:
    leaf = _LEAVES.get(dtype)
    if leaf is None:
        raise RequestError("UNIMPLEMENTED", f"Input {name!r}: JSON cannot give {dtype.name}")
    shape, first = [], value
    while isinstance(first, list):
        shape.append(len(first))
        first = first[0] if first else None
    if dtype == tf.string and shape and shape[0] > MAX_INSTANCES:
        raise invalid(f"The request has over {MAX_INSTANCES} instances; send several requests")
    values = []
    _collect(value, shape, name, leaf, values)
    try:
        return _array(values, dtype).reshape(shape)
    except (OverflowError, ValueError) as error:
        raise invalid(f"Input {name!r}: {error}") from None


def _array(values: list, dtype: tf.DType) -> np.ndarray:
    if dtype == tf.string:
        return np.array(values, object)
    if dtype.is_integer and values and not dtype.min <= min(values) <= max(values) <= dtype.max:
        raise OverflowError(f"a number is out of the range of {dtype.name}")
    return np.array(values, dtype.as_numpy_dtype)


def _collect(value, shape: list[int], name: str, leaf: Callable, values: list) -> None:
    if not shape:
        try:
            values.append(leaf(value))
        except (TypeError, ValueError) as error:
            raise invalid(f"Input {name!r}: {error}") from None
    elif isinstance(value, list) and len(value) == shape[0]:
        for part in value:
            _collect(part, shape[1:], name, leaf, values)
    else:
        raise invalid(f"Input {name!r}: expecting lists of the same size, {shape[0]}, as the first")


def _string(value) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8")
    if isinstance(value, dict) and isinstance(value.get("b64"), str):
        try:
            return base64.b64decode(value["b64"] + "=" * (-len(value["b64"]) % 4), validate=True)
        except binascii.Error as error:
            raise ValueError(f"not valid base64: {error}") from None
    raise TypeError(f"JSON {_type_name(value)} is not a string")


def _integer(value) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise TypeError(f"JSON {_type_name(value)} is not an integer")


def _number(value) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    raise TypeError(f"JSON {_type_name(value)} is not a number")


_LEAVES = {
    tf.string: _string,
    tf.int32: _integer,
    tf.int64: _integer,
    tf.float32: _number,
    tf.float64: _number,
}


def _type_name(value) -> str:
    return {dict: "object", list: "array", str: "string", type(None): "null"}.get(
        type(value), type(value).__name__
    )


def response_of(outputs: Mapping[str, np.ndarray], form: str) -> dict:
    """The answer to a predict request in the format of the request.

    A single output has no name. Strings of an output whose name ends in `_bytes` become
    `{"b64": ...}`.
    """
    values = {name: _plain(name, array) for name, array in sorted(outputs.items())}
    if form == COLUMNS:
        return {"outputs": next(iter(values.values())) if len(values) == 1 else values}
    sizes = {name: array.shape[:1] for name, array in outputs.items()}
    if len(set(sizes.values())) > 1 or () in sizes.values():
        raise invalid(f"The outputs have no common batch size: {sizes}; ask with '{COLUMNS}'")
    if len(values) == 1:
        return {"predictions": next(iter(values.values()))}
    return {"predictions": [dict(zip(values, row)) for row in zip(*values.values())]}


def _plain(name: str, array: np.ndarray):
    if array.dtype != object:
        return array.tolist()
    texts = np.empty(array.shape, object)
    for position, value in np.ndenumerate(array):
        if name.endswith("_bytes"):
            texts[position] = {"b64": base64.b64encode(value).decode()}
        else:
            texts[position] = value.decode("utf-8", "replace")
    return texts.tolist()
