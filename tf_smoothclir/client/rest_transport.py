"""Requests to a server by REST; needs neither TensorFlow nor gRPC."""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from urllib.parse import quote, urlsplit

import numpy as np

from tf_smoothclir.client.transport import ModelSelection, RequestFailure, VersionStatus

_CODES = {
    400: "INVALID_ARGUMENT",
    404: "NOT_FOUND",
    413: "RESOURCE_EXHAUSTED",
    429: "RESOURCE_EXHAUSTED",
    501: "UNIMPLEMENTED",
    502: "UNAVAILABLE",  # from a proxy that cannot reach its server
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class RestTransport:
    """Talks to the REST API, each request on a connection of its own."""

    def __init__(self, address: str, timeout: float):
        parts = urlsplit(address)
        secure = parts.scheme == "https"
        self._kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        self._host, self._prefix = parts.netloc, parts.path.rstrip("/")
        self._timeout = timeout

    def predict(
        self, model: ModelSelection, signature: str, inputs: Mapping[str, Sequence[bytes]]
    ) -> dict[str, np.ndarray]:
        """Runs a signature; a single output has no name."""
        columns = {name: [_json_string(value) for value in inputs[name]] for name in inputs}
        body = json.dumps({"signature_name": signature, "inputs": columns}).encode()
        outputs = self._answer("POST", f"{_path(model)}:predict", body).get("outputs")
        if not isinstance(outputs, dict):
            outputs = {"": outputs}
        return {name: _array(values) for name, values in outputs.items()}

    def status(self, model: ModelSelection) -> list[VersionStatus]:
        """Returns the status of each version."""
        answer = self._answer("GET", _path(model))
        try:
            return [
                VersionStatus(int(entry["version"]), entry["state"], **entry["status"])
                for entry in answer["model_version_status"]
            ]
        except (KeyError, TypeError, ValueError):
            raise RequestFailure("INTERNAL", "the answer has no status of versions") from None

    def close(self) -> None:
        """Does nothing: no connection stays open."""

    def _answer(self, method: str, path: str, body: bytes | None = None) -> dict:
        headers = {"Content-Type": "application/json"} if body else {}
        try:
            with closing(self._kind(self._host, timeout=self._timeout)) as connection:
                connection.request(method, self._prefix + path, body, headers)
                response = connection.getresponse()
                content = response.read()
        except TimeoutError:
            raise RequestFailure("DEADLINE_EXCEEDED", f"no answer in {self._timeout:g} s") from None
        except (OSError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
            raise RequestFailure("UNAVAILABLE", reason) from None
        try:
            answer = json.loads(content)
        except ValueError:
            answer = None
        if response.status == 200 and isinstance(answer, dict):
            return answer
        said = answer.get("error") if isinstance(answer, dict) else None
        missing = f"HTTP status {response.status}, and the answer is not one of a model server"
        raise RequestFailure(_CODES.get(response.status, "UNKNOWN"), str(said or missing))


def _path(model: ModelSelection) -> str:
    path = f"/v1/models/{quote(model.name, safe='')}"
    if model.version:
        return f"{path}/versions/{model.version}"
    return f"{path}/labels/{quote(model.label, safe='')}" if model.label else path


def _json_string(value: bytes) -> str | dict[str, str]:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(value).decode("ascii")}


def _array(values) -> np.ndarray:
    try:
        array = np.array(values)
        if array.dtype.kind == "U":
            return np.array(np.frompyfunc(str.encode, 1, 1)(array.astype(object)), object)
        return array.astype(np.int32 if array.dtype.kind == "i" else np.float32)
    except (TypeError, ValueError):
        reason = "the answer is not a table of numbers or strings"
        raise RequestFailure("INTERNAL", reason) from None
