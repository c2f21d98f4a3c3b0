"""What SECURITY.md promises of the server: names, sizes, memory, malformed and slow requests."""

import contextlib
import json
import re
import threading
import time
from concurrent import futures
from pathlib import Path

import numpy as np
import pytest

from tests.cases import cases
from tests.server.local_server import connected, local_server, process, raw, rest, wait_for
from tf_smoothclir.publishing import request_bounds
from tf_smoothclir.server import application, http_server, served_models
from tf_smoothclir.server.served_models import MAX_VALUES, ServedModel, check_size, parse_request
from tf_smoothclir.utils.errors import InputError

TOWER = "/v1/models/query_tower"
PREDICT = f"{TOWER}:predict"
HEAD = f"POST {PREDICT} HTTP/1.1\r\nHost: here\r\n".encode()


@pytest.fixture(scope="module")
def server(export):
    with local_server(export, names=["search.example"]) as address:
        yield address


def get(host):
    return f"GET {TOWER} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()


def test_a_page_of_another_domain_cannot_ask(server):
    """DNS rebinding: a browser sends the name of a domain that has this server's address."""
    names = ["localhost", "localhost:8501", "127.0.0.1:1", "[::1]:8501", "10.1.2.3", "serving"]
    for host in (*names, "a.localhost", "Search.Example:80"):  # the last one is given
        assert raw(server, get(host))[0] == 200, host
    for host in ("evil.example", "evil.example:8501", "127.0.0.1.evil.example", "a.b."):
        status, answer = raw(server, get(host))
        assert status == 403
        assert "is no name of this server; see --allowed_hosts" in json.loads(answer)["error"]


@cases(
    "request_bytes, status",
    (HEAD + b"Content-Length: 99999999999\r\nExpect: 100-continue\r\n\r\n", 413),
    (HEAD + b"Content-Length: -5\r\n\r\n", 400),
    (HEAD + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", 400),
    (HEAD + b"Content-Length: 0\r\nContent-Length: 5\r\n\r\nabcde", 400),
    (HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    (HEAD + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400),  # a proxy may see chunks
    (HEAD + b"Transfer-Encoding:\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    (HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400),
    (HEAD + b"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8b\x08", 415),
    (HEAD + b"Transfer-Encoding: chunked\r\n\r\nnothing\r\n\r\n", 400),
    (HEAD + b"Host: there\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\n\r\n", 400),  # no Host
    (b"nonsense\r\n\r\n", 400),
    (b"GET /x HTTP/1.1\r\n" + b"A: b\r\n" * 20_000 + b"\r\n", 400),
    (b"BREW /v1/models HTTP/1.1\r\nHost: here\r\n\r\n", 404),
)
def test_malformed_http_is_refused(server, request_bytes, status):
    assert raw(server, request_bytes)[0] == status
    assert rest(server, TOWER)[0] == 200


def test_after_a_refused_request_its_bytes_are_no_request(server):
    """Smuggling: a proxy before the server may take these bytes for the body."""
    hidden = get("here")
    for head in (b"Transfer-Encoding : chunked", b"Content-Length: 0\r\nContent-Length: 99"):
        with connected(server) as one:
            one.sendall(HEAD + head + b"\r\n\r\n" + hidden)
            answers = b""
            while piece := one.recv(1 << 16):
                answers += piece
        assert answers.count(b"HTTP/1.1 ") == 1
        assert b"HTTP/1.1 400" in answers


def test_bodies_above_the_limit_are_refused_chunked_or_not(server):
    whole = application.MAX_BODY_BYTES
    chunked = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    chunk = b"100000\r\n" + b" " * (1 << 20) + b"\r\n"
    declared = HEAD + b"Content-Length: %d\r\n\r\n" % (whole + 1)
    for request in (declared, chunked + chunk * 17 + b"0\r\n\r\n"):
        status, body = raw(server, request)
        assert status == 413
        assert json.loads(body)["error"].startswith("The body has over 16 MiB")
    assert raw(server, chunked + b'16\r\n{"instances": ["red"]}\r\n0\r\n\r\n')[0] == 200


def test_a_body_that_trickles_in_is_cut_off(server, monkeypatch):
    monkeypatch.setattr(application, "BODY_SECONDS", 0.5)
    with connected(server) as one:
        one.sendall(HEAD + b"Content-Length: 500\r\n\r\n{")
        begin = time.monotonic()
        assert one.recv(1 << 16).startswith(b"HTTP/1.1 408")
        assert 0.4 < time.monotonic() - begin < 5
        while one.recv(1 << 16):
            pass  # and the connection is closed


def test_connections_beyond_the_limit_are_refused_and_the_next_are_answered(server):
    assert http_server.http_server(None).config.timeout_keep_alive == 5  # seconds, if idle
    with contextlib.ExitStack() as stack:
        for _ in range(http_server.MAX_CONNECTIONS):
            stack.enter_context(connected(server))
        assert raw(server, get("here"))[0] == 503
    end = time.monotonic() + 10
    while raw(server, get("here"))[0] == 503 and time.monotonic() < end:
        time.sleep(0.05)
    assert rest(server, TOWER)[0] == 200


def test_the_server_survives_clients_that_disconnect(server, caplog):
    for _ in range(5):
        with connected(server) as one:
            one.sendall(HEAD + b"Content-Length: 500\r\n\r\n{")
    assert rest(server, TOWER)[0] == 200
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_a_slow_request_does_not_hold_up_others(server, monkeypatch):
    started, go_on, answer = threading.Event(), threading.Event(), ServedModel.answer

    def slow(self, body):
        started.set()
        assert go_on.wait(20)
        return answer(self, body)

    monkeypatch.setattr(ServedModel, "answer", slow)
    with futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(rest, server, PREDICT, {"instances": ["red"]})
        assert started.wait(20)
        assert rest(server, TOWER)[0] == 200
        go_on.set()
        assert waiting.result(20)[0] == 200


@cases(
    "inputs, message",
    ({"text": np.array([b""] * 10_001, object)}, "text: it has 10001 values"),
    ({"text": np.array([b"a" * ((4 << 20) + 1)], object)}, "a text has over 4194304 bytes"),
    ({"lengths": np.zeros(10_001, np.int32)}, "lengths: it has 10001 values"),
)
def test_what_would_take_much_memory_is_refused(inputs, message):
    check_size({name: values[1:] for name, values in inputs.items()})
    with pytest.raises(InputError, match=message):
        check_size(inputs)


def test_an_answer_that_would_be_large_is_not_computed_nor_many_values_parsed(server, monkeypatch):
    monkeypatch.setattr(served_models, "MAX_ANSWER", 6)
    texts = {"inputs": ["red"] * 3}  # of three numbers each
    tokens = {"signature_name": "tokens", "inputs": {"ids": [], "lengths": [0] * 3}}
    for body, name in ((texts, "text"), (tokens, "lengths")):
        message = f"{name}: the answer to 3 rows would have over 6 values"
        assert message in rest(server, PREDICT, body)[1]["error"]
    assert rest(server, PREDICT, {"inputs": ["red"] * 2})[0] == 200
    parse_request(b'{"inputs": [%s 1]}' % (b"1," * (MAX_VALUES - 3)))
    with pytest.raises(InputError, match="or 250000 objects"):
        parse_request(b'{"inputs": [%s 1]}' % (b"{}," * 250_000))
    with pytest.raises(InputError, match="over 1000000 values"):
        parse_request(b'{"inputs": [%s 1]}' % (b"1," * MAX_VALUES))


def test_bodies_together_take_limited_memory_and_small_ones_are_read(server, monkeypatch):
    monkeypatch.setattr(application, "MAX_BODIES_BYTES", 300_000)
    large = HEAD + b"Content-Length: 200000\r\n\r\n" + b" " * 199_999
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(connected(server)) for _ in range(2)]
        for one in held:
            one.sendall(large)
            assert rest(server, TOWER)[0] == 200  # the first body is read by then
        assert held[1].recv(1 << 16).startswith(b"HTTP/1.1 503")
        assert rest(server, PREDICT, {"instances": ["red"]})[0] == 200
        held[0].sendall(b"]")
        assert held[0].recv(1 << 16).startswith(b"HTTP/1.1 400")
    assert raw(server, large + b"]")[0] == 400


def test_slow_headers_and_unread_answers_end_a_connection(server, monkeypatch):
    """Otherwise a few clients that wait hold all connections, and the memory of their answers."""
    monkeypatch.setattr(http_server, "HEADER_SECONDS", 0.5)
    monkeypatch.setattr(http_server, "ANSWER_SECONDS", 0.5)
    for begin in (b"", b"GET / HT", get("here") + b"GET"):
        with connected(server) as one:
            one.sendall(begin)
            began, answers = time.monotonic(), b""
            with contextlib.suppress(ConnectionResetError):
                while piece := one.recv(1 << 16):
                    answers += piece
                    one.send(b"E")
            assert answers.count(b"HTTP/1.1 200") == begin.startswith(b"GET /v1")
            assert 0.4 < time.monotonic() - began < 4
    # The answer has the unknown words; the kernel takes megabytes of it.
    body = json.dumps({"inputs": ["x" * 900_000] * 12, "signature_name": "evidence"})
    request = HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(body), body.encode())
    monkeypatch.setattr(http_server, "MAX_UNREAD_BYTES", 300_000)
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(connected(server)) for _ in range(3)]
        for one in held:
            one.sendall(request)
        wait_for(lambda: raw(server, get("here"))[0] == 503)
        wait_for(lambda: raw(server, get("here"))[0] == 200)
        with contextlib.suppress(ConnectionResetError):
            assert len(b"".join(iter(lambda: held[0].recv(1 << 20), b""))) < 10_000_000


def test_a_body_that_turns_out_malformed_after_the_answer_ends_the_connection(server, caplog):
    head = f"GET {TOWER} HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    with connected(server) as one:
        one.sendall(head)
        assert one.recv(1 << 16).startswith(b"HTTP/1.1 200")
        one.sendall(b"zz\r\n")
        while one.recv(1 << 16):
            pass
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def memory(child, kind):
    """Bytes of memory: "VmRSS" now, "VmHWM" at most."""
    status = Path(f"/proc/{child.pid}/status").read_text()
    return int(re.search(kind + r":\s+(\d+) kB", status)[1]) << 10


def largest_requests():
    """Name -> body of the largest request of each kind."""
    most, rows = request_bounds.MAX_TOKENS, served_models.MAX_ROWS
    tokens = {"signature_name": "tokens", "inputs": {"ids": [1] * most, "lengths": [most]}}
    empty = {"signature_name": "tokens", "inputs": {"ids": [], "lengths": [0] * rows}}
    return {
        "16 MB of texts": {"inputs": ["a b c d " * ((2 << 20) // rows - 2)] * rows},
        "one text": {"instances": ["a " * ((2 << 20) - 1)]},
        "unequal texts": {"inputs": ["a " * (2 << 19)] + ["a"] * (rows - 1)},
        "search": {"inputs": ["a b"] * 9999},
        "one row of tokens": tokens,
        "rows without tokens": empty,
        "lists": b'{"instances": [' + b"[]," * 499_990 + b"1]}",
        "objects": b'{"instances": [' + b'{"b64":""},' * 249_990 + b"1]}",
        "deep": b"[" * 999_999,
    }


@pytest.mark.slow
def test_no_request_takes_more_memory_than_stated(export):
    """The largest requests of each kind, to a real server; SECURITY.md states 300 MB."""
    taken = {}
    with process(export) as (child, address):
        for name, body in largest_requests().items():
            before = memory(child, "VmRSS")
            Path(f"/proc/{child.pid}/clear_refs").write_text("5")  # the peak counts from now on
            model = "search" if name == "search" else "query_tower"
            rest(address, f"/v1/models/{model}:predict", body, timeout=120)
            taken[name] = (memory(child, "VmHWM") - before) >> 20
    assert max(taken.values()) < 300, taken
