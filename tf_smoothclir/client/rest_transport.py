"""Requests to a server by REST; needs neither TensorFlow nor gRPC."""

from __future__ import annotations

import base64
import http.client
import json
import threading
from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlsplit

import numpy as np

from tf_smoothclir.client.transport import (
    ModelSelection,
    RequestFailure,
    Transport,
    VersionStatus,
)

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


class RestTransport(Transport):
    """Talks to the REST API; each thread keeps its own connection open."""

    def __init__(self, address: str, timeout: float):
        parts = urlsplit(address)
        self._kind = {
            "http": http.client.HTTPConnection,
            "https": http.client.HTTPSConnection,
        }[parts.scheme]
        self._host = parts.netloc
        self._prefix = parts.path.rstrip("/")
        self._timeout = timeout
        self._local = threading.local()

    def predict(
        self, model: ModelSelection, signature: str, inputs: Mapping[str, Sequence[bytes]]
    ) -> dict[str, np.ndarray]:
        columns = {name: [_json_string(value) for value in inputs[name]] for name in inputs}
        body = json.dumps({"signature_name": signature, "inputs": columns}).encode()
        answer = self._request("POST", f"{_path(model)}:predict", body)
        outputs = answer.get("outputs")
        if not isinstance(outputs, dict):
            outputs = {"": outputs}  # a single output has no name
        return {name: _array(values) for name, values in outputs.items()}

    def status(self, model: ModelSelection) -> list[VersionStatus]:
        answer = self._request("GET", _path(model))
        try:
            return [
                VersionStatus(
                    version=int(entry["version"]),
                    state=entry["state"],
                    error_code=entry["status"]["error_code"],
                    error_message=entry["status"]["error_message"],
                )
                for entry in answer["model_version_status"]
            ]
        except (KeyError, TypeError, ValueError):
            raise RequestFailure("INTERNAL", "the answer has no status of versions") from None

    def close(self) -> None:
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()

    def _request(self, method: str, path: str, body: bytes | None = None) -> dict:
        headers = {"Content-Type": "application/json"} if body else {}
        try:
            status, content = self._exchange(method, self._prefix + path, body, headers)
        except TimeoutError:
            raise RequestFailure("DEADLINE_EXCEEDED", f"no answer in {self._timeout:g} s") from None
        except (OSError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
            raise RequestFailure("UNAVAILABLE", reason) from None
        try:
            answer = json.loads(content)
        except ValueError:
            answer = None
        if status == 200 and isinstance(answer, dict):
            return answer
        message = answer.get("error") if isinstance(answer, dict) else None
        message = (
            message or f"HTTP status {status}, and the answer does not come from a model server"
        )
        raise RequestFailure(_CODES.get(status, "UNKNOWN"), str(message))

    def _exchange(self, method, path, body, headers) -> tuple[int, bytes]:
        kept = getattr(self._local, "connection", None)
        if kept is not None:
            try:
                return self._send(kept, method, path, body, headers)
            except (ConnectionError, http.client.BadStatusLine):
                kept.close()  # the server may have closed it while it was idle
        connection = self._kind(self._host, timeout=self._timeout)
        self._local.connection = connection
        return self._send(connection, method, path, body, headers)

    def _send(self, connection, method, path, body, headers) -> tuple[int, bytes]:
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.read()
        except BaseException:
            self._local.connection = None
            connection.close()
            raise


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
        raise RequestFailure(
            "INTERNAL", "the answer is not a table of numbers or strings"
        ) from None
