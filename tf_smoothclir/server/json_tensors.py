"""TensorFlow Serving's JSON for tensors: row format (`instances`) and column format (`inputs`)."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from tf_smoothclir.utils.errors import InputError, input_error

ROWS, COLUMNS = "instances", "inputs"
# In the JSON of a request, counted before it is parsed; a value takes about 60 bytes of memory, an
# object 240.
MAX_VALUES, _MAX_OBJECTS = 1_000_000, 250_000


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
    return {name: _array(name, columns[name], spec.dtype) for name, spec in specs.items()}


def _columns(rows, specs: Mapping[str, tf.TensorSpec]) -> dict[str, list]:
    """Turns rows into columns."""
    if not isinstance(rows, list) or not rows:
        raise input_error(ROWS, "it is no list with values", "Give one instance per text")
    if not any(map(_is_object, rows)):
        return {_only_name(specs): rows}
    for number, row in enumerate(rows):
        _check_names(f"{ROWS}[{number}]", row, specs)
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


def _array(name: str, values, dtype: tf.DType) -> np.ndarray:
    if not isinstance(values, list):
        raise input_error(name, "it is no list", "Give a list with one value per row")
    if dtype == tf.string:
        return np.array([_text(name, value) for value in values], object)
    if any(type(value) is not int or not dtype.min <= value <= dtype.max for value in values):
        raise input_error(name, f"a value is no {dtype.name}", "Give integers")
    return np.array(values, dtype.as_numpy_dtype)


def _text(name: str, value) -> bytes:
    try:
        if isinstance(value, str):
            return value.encode("utf-8")
        encoded = value["b64"]
        return base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (KeyError, TypeError, ValueError) as error:
        remedy = 'Give strings, or {"b64": ...} for bytes that are not UTF-8'
        raise input_error(name, f"a value is no text ({str(error)[:200]})", remedy) from None


def response_of(outputs: Mapping[str, np.ndarray], *, by_rows: bool) -> bytes:
    """The answer to a predict request in the format of the request; a single output has no name.

    It is encoded row by row: a list of all its numbers would take several times its memory.
    """
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
