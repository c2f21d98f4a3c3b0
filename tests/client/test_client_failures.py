"""The client and servers that fail: what a person reads."""

import http.server
import json
import threading
import time

import pytest

from tf_smoothclir.client.serving_client import ServingClient
from tf_smoothclir.utils.errors import InputError


class Answering(http.server.BaseHTTPRequestHandler):
    """Gives the answers of the test, `(status, body)`, in turn."""

    protocol_version = "HTTP/1.1"
    answers = ()

    def do_POST(self):
        self.server.body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests += 1
        status, body = self.server.answers[min(self.server.requests, len(self.server.answers)) - 1]
        if status == "silence":
            time.sleep(body)
            self.close_connection = True
            return
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        """Logs nothing."""


@pytest.fixture
def fake():
    """`fake(*answers)` starts an HTTP server that gives them."""
    servers = []

    def start(*answers):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        server.daemon_threads = True
        server.answers, server.requests = answers, 0
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return server, f"http://127.0.0.1:{server.server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_rest_sends_text_as_it_is_and_bytes_that_are_not_utf8_as_base64(fake):
    server, address = fake((200, b'{"outputs": [[0.5], [0.5], [0.5]]}'))
    with ServingClient(address) as client:
        client.encode(["déjà", b"\xc3\xa9", b"\xff"])
    texts = ["déjà", "é", {"b64": "/w=="}]
    assert server.body == {"signature_name": "serving_default", "inputs": {"text": texts}}


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "INVALID_ARGUMENT"),
        (404, "NOT_FOUND"),
        (413, "RESOURCE_EXHAUSTED"),
        (500, "UNKNOWN"),
        (501, "UNIMPLEMENTED"),
        (502, "UNAVAILABLE"),
        (503, "UNAVAILABLE"),
        (504, "DEADLINE_EXCEEDED"),
    ],
)
def test_errors_have_a_code_and_a_reason(fake, status, code):
    server, address = fake((status, b'{"error": "the reason."}'))
    message = rf"{code}: the reason\. [A-Z]"
    with ServingClient(address) as client, pytest.raises(InputError, match=message):
        client.encode(["a"])
    assert server.requests == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>", "is not one of a model server"),
        (b"[]", "is not one of a model server"),
        (b"{}", "the answer to 2 rows"),
        (b'{"outputs": [[1.0]]}', "the answer to 2 rows"),
        (b'{"outputs": "text"}', "the answer to 2 rows"),
        (b'{"outputs": [[1.0], [2.0, 3.0]]}', "not a table of numbers"),
    ],
)
def test_malformed_answer_is_an_error(fake, body, message):
    _, address = fake((200, body))
    with ServingClient(address) as client, pytest.raises(InputError, match=message):
        client.encode(["a", "b"])


def test_exceeded_deadline_is_named(fake):
    server, address = fake(("silence", 1.0))
    message = r"DEADLINE_EXCEEDED: no answer in 0\.2 s.*--timeout"
    with ServingClient(address, timeout=0.2) as client, pytest.raises(InputError, match=message):
        client.encode(["a"])
    assert server.requests == 1
