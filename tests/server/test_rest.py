"""REST: rows and columns give the SavedModel's answers; what is wrong with a request is named."""

import base64
import json

import numpy as np
import pytest

from tests.published import DEPTH, DIM, encode
from tests.server.local_server import connected, local_server, rest
from tf_smoothclir.publishing.export_directory import load_tower

TOWER = "/v1/models/query_tower"
PREDICT = f"{TOWER}:predict"


@pytest.fixture(scope="module")
def server(export):
    with local_server(export) as address:
        yield address


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


def test_tokens_by_columns(server, export):
    document = {"signature_name": "tokens", "inputs": {"ids": [2, 3], "lengths": [2, 0]}}
    _, answer = rest(server, PREDICT, document)
    np.testing.assert_allclose(answer["outputs"], vectors_of(export, ["red apple", ""]), atol=1e-6)
    assert np.shape(answer["outputs"]) == (2, DIM)


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


@pytest.mark.parametrize("path", [TOWER, f"{TOWER}/versions/1"])
def test_status(server, path):
    status, answer = rest(server, path)
    (version,) = answer["model_version_status"]
    assert (status, version["version"], version["state"]) == (200, "1", "AVAILABLE")
    assert version["status"] == {"error_code": "OK", "error_message": ""}


BAD_BODIES = {
    "empty": (b"", "not JSON"),
    "no JSON": (b"{'text'}", "not JSON"),
    "half": (b'{"instances": ["a"', "not JSON"),
    "not UTF-8": (b'{"instances": ["\xff"]}', "not JSON"),
    "a list": (b"[]", "no object with one of 'instances' and 'inputs'"),
    "deep": (b"[" * 1_900_000, "not JSON"),
    "deep rows": (b'{"instances": ' + b"[" * 500 + b"]" * 500 + b"}", "no text"),
    "huge number": (b'{"instances": [' + b"9" * 5000 + b"]}", "not JSON"),
    "neither": ({}, "no object with one of"),
    "both": ({"instances": ["a"], "inputs": ["a"]}, "no object with one of"),
    "no rows": ({"instances": []}, "no list with values"),
    "rows are no list": ({"instances": "a"}, "no list with values"),
    "numbers": ({"instances": [1, 2]}, "no text"),
    "null": ({"instances": [None]}, "no text"),
    "true": ({"inputs": [True]}, "no text"),
    "rank 2": ({"instances": [["a"], ["b"]]}, "no text"),
    "rank 0": ({"inputs": {"text": "a"}}, "text: it is no list"),
    "mixed rows": ({"instances": [{"text": "a"}, "b"]}, r"instances[1]: it is no object"),
    "mixed rows, plain first": ({"instances": ["a", {"text": "b"}]}, "instances[0]"),
    "other name": ({"instances": [{"texts": "a"}]}, "it has ['texts']"),
    "other column": ({"inputs": {"texts": ["a"]}}, "needs an object with ['text']"),
    "one name too many": ({"instances": [{"text": "a", "more": "b"}]}, "['more', 'text']"),
    "no base64": ({"instances": [{"b64": "***"}]}, "no text"),
    "base64 of a number": ({"instances": [{"b64": 5}]}, "no text"),
    "half a surrogate pair": (b'{"instances": ["\\ud800"]}', "no text"),
    "signature is not a string": ({"signature_name": 5, "instances": ["a"]}, "it is no string"),
    "unknown signature": (
        {"signature_name": "nix", "instances": ["a"]},
        "signature_name 'nix': there is no such signature",
    ),
    "several inputs, no names": ({"signature_name": "tokens", "inputs": [1]}, "no names"),
    "int32 overflow": (
        {"signature_name": "tokens", "inputs": {"ids": [2**40], "lengths": [1]}},
        "no int32",
    ),
    "float for int": (
        {"signature_name": "tokens", "inputs": {"ids": [0.5], "lengths": [1]}},
        "no int32",
    ),
    "lengths that do not fit": (
        {"signature_name": "tokens", "inputs": {"ids": [1], "lengths": [9]}},
        "must add up to the number of ids",
    ),
}


@pytest.mark.parametrize(("body", "message"), BAD_BODIES.values(), ids=BAD_BODIES.keys())
def test_malformed_body_is_a_bad_request_and_the_next_one_is_answered(server, body, message):
    status, answer = rest(server, PREDICT, body, method="POST")
    assert status == 400
    assert message in answer["error"]
    assert rest(server, PREDICT, {"instances": ["red"]})[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        ("POST", "/v1/models/nothing:predict", 404, "no model nothing; served are: "),
        ("POST", f"{TOWER}/versions/9:predict", 404, "no model query_tower, version 9"),
        ("POST", f"{TOWER}/versions/{'9' * 9999}:predict", 404, "version 999"),
        ("POST", f"{TOWER}/labels/x:predict", 404, "Not Found"),
        ("POST", f"{TOWER}:classify", 405, "Method Not Allowed"),
        ("GET", PREDICT, 404, "no model query_tower:predict"),
        ("PUT", PREDICT, 405, "Method Not Allowed"),
        ("GET", "/v1/models/nothing", 404, "no model nothing"),
        ("GET", f"{TOWER}/versions/9", 404, "version 9"),
        ("GET", "/v1/other", 404, "Not Found"),
        ("GET", "/etc/passwd", 404, "Not Found"),
        ("GET", "/", 404, "Not Found"),
    ],
)
def test_wrong_path_method_or_model_has_the_right_status(server, method, path, status, message):
    body = {"instances": ["a"]} if method != "GET" else None
    found, answer = rest(server, path, body, method=method)
    assert found == status
    assert message in answer["error"]


def test_connection_is_reused_for_the_next_request(server):
    body = json.dumps({"instances": ["red"]}).encode()
    head = f"POST {PREDICT} HTTP/1.1\r\nHost: here\r\nContent-Length: {len(body)}\r\n\r\n"
    with connected(server) as one:
        for _ in range(3):
            one.sendall(head.encode() + body)
            answer = b""
            while b"]]}" not in answer:
                answer += one.recv(1 << 16)
            assert answer.startswith(b"HTTP/1.1 200")
