"""REST: rows and columns give the SavedModel's answers; what is wrong with a request is named."""

import numpy as np
import pytest

from tests.published import DEPTH, encode
from tests.server.local_server import local_server, rest
from tf_smoothclir.publishing.export_directory import load_part

TOWER = "/v1/models/query_tower"
PREDICT = f"{TOWER}:predict"


@pytest.fixture(scope="module")
def server(export):
    with local_server(export) as address:
        yield address


def tokens(ids, lengths):
    return {"signature_name": "tokens", "inputs": {"ids": ids, "lengths": lengths}}


@pytest.mark.parametrize(
    ("key", "rows"),
    [
        ("instances", ["red apple", "sea"]),
        ("instances", [{"text": "red apple"}, {"text": "sea"}]),
        ("instances", [{"b64": "cmVkIGFwcGxl"}, "sea"]),
        ("inputs", ["red apple", "sea"]),
        ("inputs", {"text": ["red apple", {"b64": "c2Vh"}]}),
    ],
)
def test_rows_and_columns_give_a_single_output_without_its_name(server, export, key, rows):
    status, answer = rest(server, PREDICT, {"signature_name": "serving_default", key: rows})
    name = "predictions" if key == "instances" else "outputs"
    assert (status, set(answer)) == (200, {name})
    expected = encode(load_part(export, "query").model, ["red apple", "sea"])
    np.testing.assert_allclose(answer[name], expected, atol=1e-6)
    _, answer = rest(server, PREDICT, tokens([2, 3, 4], [2, 1]))
    np.testing.assert_allclose(answer["outputs"], expected, atol=1e-6)


def test_several_outputs_are_named(server):
    texts = ["red", "sea", "unknown"]
    _, rows = rest(server, "/v1/models/search:predict", {"instances": texts})
    _, columns = rest(server, "/v1/models/search:predict", {"inputs": texts})
    assert [row["evidence"] for row in rows["predictions"]] == ["words", "words", "nothing"]
    for row, prediction in enumerate(rows["predictions"]):
        assert set(prediction) == {"ids", "scores", "grades", "evidence"}
        assert {name: values[row] for name, values in columns["outputs"].items()} == prediction
    nothing = [rows["predictions"][2][name] for name in ("ids", "scores", "grades")]
    assert nothing == [[empty] * DEPTH for empty in ("", 0, 0)]


BAD_BODIES = [
    (b"", "not JSON"),
    (b'{"instances": ["\xff"]}', "not JSON"),
    (b"[" * 900_000, "not JSON"),
    (b'{"instances": [' + b"9" * 5000 + b"]}", "not JSON"),
    (b"[]", "no object with one of 'instances' and 'inputs'"),
    ({"instances": ["a"], "inputs": ["a"]}, "no object with one of"),
    ({"instances": []}, "no list with values"),
    ({"inputs": {"text": "a"}}, "text: it is no list"),
    ({"instances": [{"text": "a"}, "b"]}, "instances[1]: it is no object"),
    ({"instances": [{"text": "a", "more": "b"}]}, "it has ['more', 'text']"),
    ({"inputs": {"texts": ["a"]}}, "needs an object with ['text']"),
    ({"inputs": [True, None]}, "no text"),
    ({"instances": [{"b64": "***"}]}, "no text"),
    ({"instances": [{"b64": 5}]}, "no text"),
    (b'{"instances": ["\\ud800"]}', "no text"),  # half a surrogate pair
    ({"signature_name": 5, "instances": ["a"]}, "it is no string"),
    ({"signature_name": "nix", "instances": ["a"]}, "'nix': there is no such signature"),
    ({"signature_name": "tokens", "inputs": [1]}, "no names"),
    (tokens([2**40], [1]), "no int32"),
    (tokens([0.5], [1]), "no int32"),
    (tokens([1], [9]), "must add up to the number of ids"),
]


@pytest.mark.parametrize(("body", "message"), BAD_BODIES, ids=map(str, range(len(BAD_BODIES))))
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
        ("POST", f"{TOWER}:classify", 405, "Method Not Allowed"),
        ("PUT", PREDICT, 405, "Method Not Allowed"),
        ("GET", PREDICT, 404, "no model query_tower:predict"),
        ("GET", f"{TOWER}/versions/9", 404, "version 9"),
        ("GET", "/etc/passwd", 404, "Not Found"),
    ],
)
def test_wrong_path_method_or_model_has_the_right_status(server, method, path, status, message):
    body = {"instances": ["a"]} if method != "GET" else None
    found, answer = rest(server, path, body, method=method)
    assert found == status
    assert message in answer["error"]
