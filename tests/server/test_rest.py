"""TensorFlow Serving's REST API over real SavedModels; on TensorFlow Serving too if installed."""

import base64
import json
import socket

import numpy as np
import pytest

from tests.published import DEPTH, DIM, encode
from tests.server.local_server import SERVERS, any_server, local_server, raw, rest
from tf_smoothclir.publishing.export_directory import load_tower

TOWER = "/v1/models/query_tower"
PREDICT = f"{TOWER}:predict"
MAX_BYTES = 100_000


@pytest.fixture(scope="module", params=SERVERS)
def server(request, export, tmp_path_factory):
    with any_server(request.param, export, tmp_path_factory.mktemp("server")) as addresses:
        yield addresses


@pytest.fixture(scope="module")
def local(export):
    with local_server(export, max_bytes=MAX_BYTES) as addresses:
        yield addresses


def vectors_of(export, texts):
    return encode(load_tower(export, "query")[0], texts)


@pytest.mark.parametrize(
    "document",
    [
        {"instances": ["red apple", "sea"]},
        {"instances": [{"text": "red apple"}, {"text": "sea"}]},
        {"instances": [{"b64": "cmVkIGFwcGxl"}, "sea"]},
        {"instances": [{"text": {"b64": "cmVkIGFwcGxl"}}, {"text": "sea"}]},
        {"signature_name": "serving_default", "instances": ["red apple", "sea"]},
    ],
)
def test_rows_give_predictions_without_the_name_of_a_single_output(server, export, document):
    status, answer = rest(server, PREDICT, document)
    assert (status, set(answer)) == (200, {"predictions"})
    expected = vectors_of(export, ["red apple", "sea"])
    np.testing.assert_allclose(answer["predictions"], expected, atol=1e-6)


@pytest.mark.parametrize("inputs", [["red apple", "sea"], {"text": ["red apple", {"b64": "c2Vh"}]}])
def test_columns_give_outputs_without_the_name_of_a_single_output(server, export, inputs):
    status, answer = rest(server, PREDICT, {"inputs": inputs})
    assert (status, set(answer)) == (200, {"outputs"})
    np.testing.assert_allclose(
        answer["outputs"], vectors_of(export, ["red apple", "sea"]), atol=1e-6
    )


def test_bytes_that_are_not_utf8_are_sent_as_base64(server, export):
    texts = [b"\xff red", b"sea\x00red", b""]
    rows = [{"b64": base64.b64encode(text).decode()} for text in texts]
    _, answer = rest(server, PREDICT, {"instances": rows})
    np.testing.assert_allclose(answer["predictions"], vectors_of(export, texts), atol=1e-6)


def test_tokens_by_columns(server):
    document = {"signature_name": "tokens", "inputs": {"ids": [2, 3], "lengths": [2, 0]}}
    _, answer = rest(server, PREDICT, document)
    assert np.shape(answer["outputs"]) == (2, DIM)
    assert answer["outputs"][1] == [0, 0, 0]


def test_several_outputs_are_named(server):
    texts = ["red", "sea", "unknown"]
    _, rows = rest(server, "/v1/models/search:predict", {"instances": texts})
    _, columns = rest(server, "/v1/models/search:predict", {"inputs": texts})
    assert [row["evidence"] for row in rows["predictions"]] == ["words", "words", "nothing"]
    for row, prediction in enumerate(rows["predictions"]):
        assert set(prediction) == {"ids", "scores", "grades", "evidence"}
        assert {len(prediction[name]) for name in ("ids", "scores", "grades")} == {DEPTH}
        assert all(isinstance(value, str) for value in prediction["ids"])
        assert all(isinstance(value, int) for value in prediction["grades"])
        assert {name: values[row] for name, values in columns["outputs"].items()} == prediction
    nothing = rows["predictions"][2]
    assert [nothing[name] for name in ("ids", "scores", "grades")] == [
        [empty] * DEPTH for empty in ("", 0, 0)
    ]


def test_score_by_rows(server):
    rows = [{"query": "red", "document": "roter"}, {"query": "sea", "document": ""}]
    document = {"signature_name": "score", "instances": rows}
    _, answer = rest(server, "/v1/models/search:predict", document)
    assert [set(row) for row in answer["predictions"]] == [{"score", "grade"}] * 2
    assert answer["predictions"][1]["score"] == 0.0


@pytest.mark.parametrize("path", ["/v1/models/query_tower", "/v1/models/query_tower/versions/1"])
def test_status(server, path):
    status, answer = rest(server, path)
    (version,) = answer["model_version_status"]
    assert (status, version["version"], version["state"]) == (200, "1", "AVAILABLE")
    assert version["status"] == {"error_code": "OK", "error_message": ""}


def test_metadata(server):
    status, answer = rest(server, f"{TOWER}/metadata")
    assert status == 200
    assert answer["model_spec"]["name"] == "query_tower"
    assert answer["model_spec"]["version"] == "1"
    signatures = answer["metadata"]["signature_def"]["signature_def"]
    assert {"serving_default", "tokens"} <= set(signatures)
    (text,) = signatures["serving_default"]["inputs"].values()
    assert text["dtype"] == "DT_STRING"
    assert [dim["size"] for dim in text["tensor_shape"]["dim"]] == ["-1"]


BAD_BODIES = {
    "empty": b"",
    "no JSON": b"{'text'}",
    "half": b'{"instances": ["a"',
    "not UTF-8": b'{"instances": ["\xff"]}',
    "a list": b"[]",
    "a number": b"7",
    "deep": b"[" * 50_000,
    "deep rows": b'{"instances": ' + b"[" * 500 + b"]" * 500 + b"}",
    "huge number": b'{"instances": [' + b"9" * 5000 + b"]}",
    "neither": {},
    "both": {"instances": ["a"], "inputs": ["a"]},
    "no rows": {"instances": []},
    "rows are no list": {"instances": "a"},
    "numbers": {"instances": [1, 2]},
    "null": {"instances": [None]},
    "true": {"inputs": [True]},
    "ragged": {"inputs": [["a"], ["b", "c"]]},
    "rank 2": {"instances": [["a"], ["b"]]},
    "rank 0": {"inputs": {"text": "a"}},
    "mixed rows": {"instances": [{"text": "a"}, "b"]},
    "mixed rows, plain first": {"instances": ["a", {"text": "b"}]},
    "other name": {"instances": [{"texts": "a"}]},
    "other column": {"inputs": {"texts": ["a"]}},
    "one name too many": {"instances": [{"text": "a", "more": "b"}]},
    "no base64": {"instances": [{"b64": "***"}]},
    "base64 of a number": {"instances": [{"b64": 5}]},
    "half a surrogate pair": b'{"instances": ["\\ud800"]}',
    "signature is not a string": {"signature_name": 5, "instances": ["a"]},
    "unknown signature": {"signature_name": "nix", "instances": ["a"]},
    "several inputs, no names": {"signature_name": "tokens", "inputs": [1]},
    "int32 overflow": {"signature_name": "tokens", "inputs": {"ids": [2**40], "lengths": [1]}},
    "float for int": {"signature_name": "tokens", "inputs": {"ids": [0.5], "lengths": [1]}},
    "lengths that do not fit": {"signature_name": "tokens", "inputs": {"ids": [1], "lengths": [9]}},
}


@pytest.mark.parametrize("body", BAD_BODIES.values(), ids=BAD_BODIES.keys())
def test_malformed_body_is_a_bad_request_and_the_next_one_is_answered(server, body):
    status, answer = rest(server, PREDICT, body, method="POST")
    assert status == 400
    assert answer["error"]
    assert rest(server, PREDICT, {"instances": ["red"]})[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        ("POST", "/v1/models/nothing:predict", 404, "nothing"),
        ("POST", f"{TOWER}/versions/9:predict", 404, "9"),
        ("POST", f"{TOWER}/labels/x:predict", 400, "label: x"),
        ("POST", f"{TOWER}/versions/{10**30}:predict", 400, "numeric"),
        ("POST", f"{TOWER}:guess", 400, "Malformed request"),
        ("POST", TOWER, 400, "Malformed request"),
        ("POST", f"{TOWER}:classify", 400, ""),
        ("GET", PREDICT, 400, "Malformed request"),
        ("PUT", PREDICT, 400, "Malformed request"),
        ("GET", "/v1/models/nothing", 404, "Could not find any versions of model nothing"),
        ("GET", f"{TOWER}/versions/9", 404, "version 9"),
        ("GET", "/v1/models/nothing/metadata", 404, "nothing"),
        ("GET", "/v1/other", 400, "Malformed request"),
    ],
)
def test_wrong_path_method_or_model_has_the_right_status(server, method, path, status, message):
    body = {"instances": ["a"]} if method != "GET" else None
    found, answer = rest(server, path, body, method=method)
    assert found == status
    assert message in answer["error"]


def test_path_outside_the_api_is_not_found(local):
    assert rest(local, "/etc/passwd")[0] == 404
    assert rest(local, "/")[0] == 404


def test_too_large_body_is_refused_once_it_is_read(local):
    status, answer = rest(local, PREDICT, {"instances": ["a" * 2 * MAX_BYTES]})
    assert status == 413
    assert str(MAX_BYTES) in answer["error"]


HEAD = f"POST {PREDICT} HTTP/1.1\r\nHost: here\r\n".encode()


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (HEAD + b"Content-Length: 99999999999\r\nExpect: 100-continue\r\n\r\n", 413),
        (HEAD + b"Content-Length: -5\r\n\r\n", 400),
        (HEAD + b"Content-Length: many\r\n\r\n", 400),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
        (HEAD + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400),  # a proxy may see chunks
        (HEAD + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", 400),
        (HEAD + b"Content-Length: 0\r\nContent-Length: 5\r\n\r\nabcde", 400),
        (b"nonsense\r\n\r\n", 400),
        (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", 414),
        (b"BREW /v1/models HTTP/1.1\r\n\r\n", 501),
        (b"GET /x HTTP/1.1\r\n" + b"A: b\r\n" * 1000 + b"\r\n", 431),
    ],
)
def test_malformed_http_is_refused(local, request_bytes, status):
    found, answer = raw(local, request_bytes)
    assert found == status
    assert answer["error"]
    assert rest(local, TOWER)[0] == 200


def test_connection_is_reused_for_the_next_request(local):
    body = json.dumps({"instances": ["red"]}).encode()
    message = HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body
    with socket.create_connection(("127.0.0.1", local.rest_api_port), timeout=20) as one:
        for _ in range(3):
            one.sendall(message)
            answer = b""
            while b"]]}" not in answer:
                answer += one.recv(1 << 16)
            assert answer.startswith(b"HTTP/1.1 200")


def test_server_survives_a_client_that_disconnects(local, caplog):
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", local.rest_api_port), timeout=20) as one:
            one.sendall(HEAD + b"Content-Length: 500\r\n\r\n{")
    assert rest(local, TOWER)[0] == 200
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
