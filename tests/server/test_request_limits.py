"""Requests over HTTP: names of the server, time, numbers and depth are limited."""

from __future__ import annotations

import contextlib
import json
import re
import select
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import grpc
import numpy as np
import pytest
from tensorflow_serving.apis import prediction_service_pb2_grpc

from tests.server.local_server import local_server, predict_request, raw, rest
from tf_smoothclir.server import request_limits
from tf_smoothclir.server import rest as rest_module
from tf_smoothclir.server.development_server import DevelopmentServer
from tf_smoothclir.server.model_config import configs_of_export
from tf_smoothclir.server.model_registry import ModelRegistry
from tf_smoothclir.server.request_error import RequestError

TOWER = "/v1/models/query_tower"
PREDICT = f"{TOWER}:predict"
HEAD = f"POST {PREDICT} HTTP/1.1\r\nHost: here\r\n".encode()


@pytest.fixture(scope="module")
def local(export):
    with local_server(export, names=["search.example"]) as addresses:
        yield addresses


def get(host):
    return f"GET {TOWER} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost:8501",
        "127.0.0.1:1",
        "[::1]:8501",
        "10.1.2.3",
        "serving",
        "a.localhost",
        "Search.Example:80",  # given
    ],
)
def test_names_that_no_other_domain_can_take_are_served(local, host):
    assert raw(local, get(host))[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8501", "127.0.0.1.evil.example", "a.b."]
)
def test_a_page_of_another_domain_cannot_ask(local, host):
    """DNS rebinding: a browser sends the name of a domain that has this server's address."""
    status, answer = raw(local, get(host))
    assert status == 403
    assert "is no name of this server; see --allowed_hosts" in answer["error"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"instances": ' + b"[" * 101 + b"]" * 101 + b"}", "nested more than 100 deep"),
        (b'{"instances": ' + b"[" * 30_000 + b"]" * 30_000 + b"}", "nested more than 100 deep"),
        (b'{"instances": ["a"' + b',"a"' * 10_000 + b"]}", "over 10000 instances"),
        (b'{"inputs": ["a"' + b',"a"' * 10_000 + b"]}", "over 10000 instances"),
        (b'{"instances": [' + b"1" * 5000 + b"]}", "JSON"),
    ],
)
def test_requests_beyond_the_limits_are_refused(local, body, message):
    head = HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode()
    status, answer = raw(local, head + body)
    assert status == 400
    assert message in answer["error"]


def test_brackets_in_texts_are_not_nested(local):
    texts = ["[" * 200, '\\"[{' * 100, "\\"]
    assert rest(local, PREDICT, {"instances": texts})[0] == 200


def test_the_number_of_values_is_limited(monkeypatch):
    monkeypatch.setattr(request_limits, "MAX_VALUES", 3)
    request_limits.check_json(b"[1, 2, 3]")
    with pytest.raises(RequestError, match="over 3 values"):
        request_limits.check_json(b"[1, 2, 3, 4]")


def test_large_requests_are_computed_in_pieces_of_rows_and_bytes(monkeypatch):
    monkeypatch.setattr(request_limits, "PIECE_ROWS", 3)
    monkeypatch.setattr(request_limits, "PIECE_BYTES", 10)
    texts = np.array([b"", b"", b"", b"", b"1234567", b"12345", b"x" * 20, b"1"], object)
    assert request_limits.pieces([texts]) == [
        slice(0, 3),  # three rows
        slice(3, 5),  # the next has 5 bytes more than the 3 that are left
        slice(5, 6),
        slice(6, 7),  # a row by itself, however large
        slice(7, None),
    ]
    assert request_limits.pieces([texts[:0]]) == [slice(0, None)]


def test_pieces_give_the_same_vectors(local, monkeypatch):
    texts = ["red", "apple sea", "", "sea", "red red"]
    _, whole = rest(local, PREDICT, {"instances": texts})
    monkeypatch.setattr(request_limits, "PIECE_ROWS", 2)
    assert rest(local, PREDICT, {"instances": texts}) == (200, whole)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([b""] * 10_001, object), "over 10000 instances"),
        (np.array([b"a" * ((4 << 20) + 1)], object), "a text of over 4194304 bytes"),
        (np.zeros((1 << 18) + 1, np.int32), "over 262144 numbers"),
    ],
    ids=["instances", "text", "numbers"],
)
def test_inputs_over_grpc_and_rest_have_the_same_limits(values, message):
    request_limits.check_values("text", values[:-1])
    with pytest.raises(RequestError, match=message):
        request_limits.check_values("text", values)


@contextlib.contextmanager
def server_process(export):
    """A server; yields a function that sends with its ports and returns the MB that this took."""
    command = [sys.executable, "-m", "export.serve", f"--export_dir={export}"]
    flags = ["--port=0", "--rest_api_port=0"]

    def megabytes(send):
        before = memory(server, "VmRSS")
        Path(f"/proc/{server.pid}/clear_refs").write_text("5")  # the peak counts from now on
        send(*ports)
        return (memory(server, "VmHWM") - before) >> 20

    with subprocess.Popen([*command, *flags], stdout=subprocess.PIPE, text=True) as server:
        try:
            ports = [int(port) for port in re.findall(r":(\d+)\b", server.stdout.readline())]
            yield megabytes
        finally:
            server.terminate()
        assert server.wait(30) == 0


def memory(process, kind):
    """Bytes of memory: "VmRSS" now, "VmHWM" at most."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(kind + r":\s+(\d+) kB", status)[1]) << 10


def over_rest(model, body):
    """Sends the body of a request."""

    def send(_, port):
        head = f"POST /v1/models/{model}:predict HTTP/1.1\r\nHost: here\r\n"
        head += f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", port), timeout=120) as one:
            one.sendall(head.encode() + body)
            assert int(one.recv(12).split()[1]) in (200, 400)
            while one.recv(1 << 20):
                pass

    return send


def over_grpc(model, inputs, signature=""):
    """Sends a request."""
    options = [(f"grpc.max_{way}_message_length", -1) for way in ("receive", "send")]

    def send(port, _):
        with grpc.insecure_channel(f"127.0.0.1:{port}", options) as channel:
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            call = stub.Predict.future(predict_request(model, inputs, signature), timeout=120)
            assert call.code().name in ("OK", "INVALID_ARGUMENT"), call.details()

    return send


@pytest.mark.slow
def test_no_request_takes_more_memory_than_stated(export):
    """The largest requests of each kind, to a real server; SECURITY.md states 1.5 GB."""
    text, tower = "a b c d " * 800, "query_tower"
    most = request_limits.MAX_NUMBERS
    ids = np.ones(16_000_000, np.int32)
    requests = {
        "REST, 64 MB of texts": over_rest(tower, json.dumps({"inputs": [text] * 9999}).encode()),
        "REST, one text": over_rest(tower, b'{"instances": ["' + b"a " * (31 << 20) + b'"]}'),
        "REST, lists": over_rest(tower, b'{"instances": [' + b"[1]," * 1_999_990 + b"[1]]}"),
        "REST, objects": over_rest(tower, b'{"instances": [' + b'{"b64":""},' * 1_999_990 + b"1]}"),
        "REST, search": over_rest("search", json.dumps({"inputs": ["a b"] * 9999}).encode()),
        "gRPC, 64 MB of texts": over_grpc(tower, {"text": [text] * 9999}),
        "gRPC, one text": over_grpc(tower, {"text": ["a " * (31 << 20)]}),
        "gRPC, empty texts": over_grpc(tower, {"text": [""] * 10_000_000}),
        "gRPC, numbers": over_grpc(tower, {"ids": ids, "lengths": [len(ids)]}, "tokens"),
        "gRPC, tokens": over_grpc(tower, {"ids": ids[:most], "lengths": [most]}, "tokens"),
        "gRPC, search": over_grpc("search", {"text": ["a b"] * 9999}),
    }
    with server_process(export) as megabytes:
        taken = {name: megabytes(send) for name, send in requests.items()}
    print(taken)
    assert max(taken.values()) < 1500


def test_a_request_that_trickles_in_is_cut_off(export, monkeypatch):
    monkeypatch.setattr(rest_module, "_REQUEST_SECONDS", 0.5)
    with (
        local_server(export) as addresses,
        socket.create_connection(("127.0.0.1", addresses.rest_api_port), timeout=20) as one,
    ):
        begin = time.monotonic()
        for byte in b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 99:
            one.sendall(bytes([byte]))
            if select.select([one], [], [], 0.05)[0]:
                break
        assert one.recv(100) == b""
        assert 0.5 < time.monotonic() - begin < 5


def test_a_server_that_stops_answers_what_it_has_taken_on(export):
    body = json.dumps({"instances": ["red"]}).encode()
    head = HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode()
    server = DevelopmentServer(ModelRegistry(lambda: configs_of_export(export)))
    with contextlib.ExitStack() as stack:
        address = ("127.0.0.1", server.rest_api_port)
        clients = [
            stack.enter_context(socket.create_connection(address, timeout=20)) for _ in range(20)
        ]
        for client in clients:
            client.sendall(head)
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        for client in clients:
            client.sendall(body)
        answers = [client.recv(1 << 16) for client in clients]
        stopping.join(10)
        assert not stopping.is_alive()
    assert all(answer.startswith(b"HTTP/1.1 200") for answer in answers)
