"""TensorFlow Serving's REST API over loaded models, on the HTTP server of the standard library."""

from __future__ import annotations

import dataclasses
import io
import json
import logging
import re
import select
import sys
import threading
from collections.abc import Callable, Collection, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

from tensorflow_serving.apis import model_pb2

from tf_smoothclir._compat.messages import message_to_dict
from tf_smoothclir.server.grpc_service import model_status
from tf_smoothclir.server.json_tensors import inputs_of, parse_request, response_of
from tf_smoothclir.server.model_registry import ModelRegistry, VersionChoice
from tf_smoothclir.server.request_error import HTTP_STATUS, RequestError, invalid
from tf_smoothclir.server.request_limits import DeadlineReader, header_mistake, host_is_served

_MODEL = r"/v1/models/([^/:]+)(?:/versions/(\d+)|/labels/([^/:]+))?"
_PREDICT = re.compile(rf"{_MODEL}:(predict|classify|regress)", re.IGNORECASE)
_STATUS = re.compile(rf"{_MODEL}(/metadata)?", re.IGNORECASE)
_PIECE = 1 << 16
_REQUEST_SECONDS = 120  # from the first byte of a request to its last


@dataclasses.dataclass(frozen=True)
class Response:
    """An HTTP response.

    Attributes:
        body: The bytes of the body.
        status: HTTP status.
        content_type: Content type of the body.
        headers: Further headers.
    """

    body: bytes
    status: int = 200
    content_type: str = "application/json; charset=utf-8"
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)


def json_response(value, status: int = 200) -> Response:
    """A response with a value as JSON."""
    return Response(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"), status)


Route = Callable[[Mapping[str, str]], Response]  # takes the fields of the query string


class RestServer(ThreadingHTTPServer):
    """Answers HTTP requests, each connection in its own thread."""

    daemon_threads = True
    block_on_close = False  # open connections would block it
    request_queue_size = 1024
    allow_reuse_address = True

    def __init__(
        self,
        address: tuple[str, int],
        models: ModelRegistry,
        *,
        max_bytes: int,
        routes: Mapping[str, Route] | None = None,
        names: Collection[str] = (),
    ):
        """Binds the port.

        Args:
            max_bytes: Largest body of a request.
        """
        super().__init__(address, _Handler)
        self.models = models
        self.max_bytes = max_bytes
        self.routes = routes or {}
        self.names = names
        self.stopping = False
        self._active = 0
        self._changed = threading.Condition()

    def handle_error(self, request, client_address) -> None:
        """Logs errors, except that the client has gone away."""
        error = sys.exc_info()[1]
        if not isinstance(error, (ConnectionError, TimeoutError)):
            logging.error("A connection of %s failed", client_address, exc_info=error)

    def count(self, change: int) -> None:
        """Counts a request in or out."""
        with self._changed:
            self._active += change
            self._changed.notify_all()

    def process_request(self, request, client_address) -> None:
        """Answers a connection in its own thread; its first request is under way from now on."""
        self.count(1)
        super().process_request(request, client_address)

    def stop(self, grace: float) -> None:
        """Accepts no more connections; answers for up to `grace` seconds what has been sent."""
        self.stopping = True
        self.shutdown()
        while select.select([self], [], [], 0)[0]:  # connections that the system has accepted
            self._handle_request_noblock()
        with self._changed:
            self._changed.wait_for(lambda: not self._active, grace)
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "smoothclir-serve"
    sys_version = ""
    timeout = 60  # seconds of silence after which a connection is closed
    disable_nagle_algorithm = True
    wbufsize = -1  # headers and body are sent together
    server: RestServer

    def setup(self) -> None:
        """Reads with a deadline."""
        super().setup()
        self.rfile.close()
        self._reader = DeadlineReader(self.connection, self.timeout, _REQUEST_SECONDS)
        self.rfile = io.BufferedReader(self._reader)
        self._counted = True  # by `process_request`

    def handle_one_request(self) -> None:
        """Answers a request; it counts from its first line on."""
        self._reader.begin()
        try:
            super().handle_one_request()
        finally:
            if self._counted:
                self.server.count(-1)
            self._counted = False

    def parse_request(self) -> bool:
        """Reads the first line and the headers."""
        if not self._counted:
            self.server.count(1)
        self._counted = True
        return super().parse_request()

    def _answer(self) -> None:
        body = self._body()
        if body is not None:
            self._send(self._response(body))
        self.wfile.flush()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _answer

    def _response(self, body: bytes) -> Response:
        path = urlsplit(self.path)
        try:
            if not path.path.lower().startswith("/v1/"):
                return self._route(path)
            return json_response(self._api(unquote(path.path), body))
        except RequestError as error:
            return json_response({"error": error.message}, HTTP_STATUS[error.code])
        except Exception as error:  # a defect here or in the model: the server keeps running
            logging.exception("%s %s failed", self.command, self.path)
            message = f"{type(error).__name__} in the server; see its log"
            return json_response({"error": message}, 500)

    def _route(self, path) -> Response:
        route = self.server.routes.get(path.path)
        if route is None:
            return json_response({"error": f"Not Found: {path.path[:200]}"}, 404)
        if self.command not in ("GET", "HEAD"):
            return json_response({"error": f"Use GET, not {self.command}"}, 405)
        fields = parse_qs(path.query, keep_blank_values=True, errors="replace")
        return route({name: values[-1] for name, values in fields.items()})

    def _api(self, path: str, body: bytes) -> dict:
        models = self.server.models
        if self.command == "POST" and (match := _PREDICT.fullmatch(path)):
            name, version, label, method = match.groups()
            if method.lower() != "predict":
                raise invalid(f"{method} needs tf.Example inputs; use predict")
            return _predict(models, _choice(name, version, label), body)
        if self.command == "GET" and (match := _STATUS.fullmatch(path)):
            name, version, label, metadata = match.groups()
            choice = _choice(name, version, label)
            return _metadata(models, choice) if metadata else _status(models, choice)
        raise invalid(f"Malformed request: {self.command} {path}")

    def _body(self) -> bytes | None:
        """Reads the body. Returns None after answering with an error if that fails."""
        mistake = header_mistake(self.headers)
        if mistake:
            return self._refuse(400, mistake)
        if not host_is_served(self.headers.get("Host"), self.server.names):
            host = self.headers["Host"][:80]
            return self._refuse(403, f"{host!r} is no name of this server; see --allowed_hosts")
        if self.headers.get("Transfer-Encoding"):
            return self._refuse(411, "Send a Content-Length; chunked bodies are not supported")
        length = self.headers.get("Content-Length", "0")
        if int(length) > self.server.max_bytes:
            self._discard(min(int(length), 4 * self.server.max_bytes))
            return self._refuse(
                413, f"The body has {length} bytes; at most {self.server.max_bytes} are read"
            )
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            return self._refuse(400, f"The body has {len(body)} bytes instead of {length}")
        return body

    def _discard(self, length: int) -> None:
        # A client that is still sending would not read the answer.
        while length > 0 and (piece := self.rfile.read(min(length, _PIECE))):
            length -= len(piece)

    def _refuse(self, status: int, message: str) -> None:
        self.close_connection = True
        self._send(json_response({"error": message}, status))

    def handle_expect_100(self) -> bool:
        """Lets a client send its body only if it will be read."""
        length = self.headers.get("Content-Length", "0")
        if not header_mistake(self.headers) and int(length) > self.server.max_bytes:
            self._refuse(413, f"The body has {length} bytes; at most {self.server.max_bytes}")
            return False
        return super().handle_expect_100()

    def send_error(self, code, message=None, explain=None) -> None:
        """Sends the errors that http.server finds as JSON too."""
        # Otherwise no headers are sent for malformed requests.
        self.request_version = self.protocol_version
        self.close_connection = True
        self._send(json_response({"error": message or "Malformed request"}, code))

    def _send(self, response: Response) -> None:
        self.close_connection = self.close_connection or self.server.stopping
        self.send_response(response.status)
        self.send_header("Content-Type", response.content_type)
        self.send_header("Content-Length", str(len(response.body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        if self.close_connection:
            self.send_header("Connection", "close")
        for name, value in response.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)

    def log_message(self, format, *arguments) -> None:
        """Logs nothing; requests that fail in the server are logged where they fail."""


def _choice(name: str, version: str | None, label: str | None) -> VersionChoice:
    if version and len(version) > 18:
        raise invalid(f"Failed to convert version: {version[:40]} to numeric.")
    return VersionChoice(name, int(version) if version else None, label or "")


def _predict(models: ModelRegistry, choice: VersionChoice, body: bytes) -> dict:
    model = models.get(*choice)
    document, form, name = parse_request(body)
    signature = model.signature(name)
    return response_of(signature.run(inputs_of(document, form, signature.inputs)), form)


def _status(models: ModelRegistry, choice: VersionChoice) -> dict:
    spec = model_pb2.ModelSpec(name=choice.name, version_label=choice.label)
    if choice.version is not None:
        spec.version.value = choice.version
    return message_to_dict(model_status(models, spec))


def _metadata(models: ModelRegistry, choice: VersionChoice) -> dict:
    model = models.get(*choice)
    signatures = {name: message_to_dict(value) for name, value in model.signature_defs.items()}
    return {
        "model_spec": {"name": model.name, "signature_name": "", "version": str(model.version)},
        "metadata": {"signature_def": {"signature_def": signatures}},
    }
