"""The client: the answers of the models, and errors that can be read."""

import json
import time
from concurrent import futures
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from tests.cases import cases
from tests.published import DIM, encode
from tests.server.local_server import answering, free_port
from tf_smoothclir import InputError, ServingClient
from tf_smoothclir.publishing.export_directory import load_part

# Bytes of a command line that are not UTF-8 are surrogates; others have no bytes.
TEXTS = ["red apple", "", b"\xff\xfe red", "sea\x00red", "日本語", "\udcff", "\ud800"]
BYTES = [b"red apple", b"", b"\xff\xfe red", b"sea\x00red", "日本語".encode(), b"\xff", b"?"]
CODES = {400: "INVALID_ARGUMENT", 404: "NOT_FOUND", 413: "RESOURCE_EXHAUSTED", 500: "UNKNOWN"}
CODES |= {501: "UNIMPLEMENTED", 502: "UNAVAILABLE", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED"}
REASON = b'{"error": "the reason."}'


@pytest.fixture
def client(server):
    return ServingClient(server)


@cases("role", "query", "document")
def test_vectors_and_pair_id_are_those_of_the_export(client, export, role):
    vectors = client.encode(TEXTS, role)
    tower = load_part(export, role)
    expected = encode(tower.model, BYTES)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-6)
    assert np.abs(expected).max() > 0
    assert client.pair_id(role) == tower.manifest.pair_id


def test_search_gives_ids_scores_and_grades(client, export):
    queries = ["red", "sea", "unheard"]
    model = load_part(export, "search").model
    expected = model.signatures["serving_default"](text=tf.constant(queries))
    *answers, nothing = client.search(queries)
    assert nothing == []
    for row, found in enumerate(answers):
        ids, grades, scores = (expected[name].numpy()[row] for name in ("ids", "grades", "scores"))
        assert [f.id.encode() for f in found] == ids[ids != b""].tolist()
        assert [f.grade for f in found] == grades[ids != b""].tolist()
        np.testing.assert_allclose([f.score for f in found], scores[ids != b""], atol=1e-6)
        assert {f.evidence for f in found} == {"words"}
    answer = {"ids": [["a\0"]], "scores": [[0.5]], "grades": [[1]], "evidence": ["words"]}
    with answering(lambda *_: (200, json.dumps({"outputs": answer}).encode())) as address:
        assert [found.id for found in ServingClient(address).search(["red"])[0]] == ["a\0"]


def test_many_texts_are_sent_in_batches_and_come_back_in_order(server, export, monkeypatch):
    texts = ["red 1", "apple 1", "sea 1", "red 2", "apple 2", "sea 2", "red 3", "apple 3", "sea 3"]
    expected = encode(load_part(export, "query").model, texts)
    for rows in (0, 1, 8, 9):
        client = ServingClient(server, batch_size=4)
        answer = mock.Mock(wraps=client._answer)
        monkeypatch.setattr(client, "_answer", answer)
        vectors = client.encode(texts[:rows])
        bodies = [json.loads(call.args[1]) for call in answer.call_args_list]
        sizes = [len(body["inputs"]["text"]) for body in bodies]
        assert sizes == [min(4, rows - begin) for begin in range(0, rows, 4)]
        assert len(vectors) == rows
        assert not rows or np.abs(vectors - expected[:rows]).max() < 1e-6


@pytest.mark.slow
def test_one_client_serves_many_threads(client, export):
    texts = [f"{word} {n}" for word in ("red", "apple", "sea", "other") for n in range(4)]
    with futures.ThreadPoolExecutor(len(texts)) as pool:
        found = list(pool.map(lambda text: client.encode([text])[0], texts * 10))
    expected = encode(load_part(export, "query").model, texts)
    np.testing.assert_allclose(found, np.tile(expected, (10, 1)), atol=1e-6)


def test_what_a_server_does_not_have_is_named(server, client):
    """Labels are of TensorFlow Serving; the local server has none."""
    with pytest.raises(InputError, match=f"server {server}, model 'nix': NOT_FOUND: .*nix.*Serve"):
        list(client._batches("nix", "", {"text": ["a"]}))
    with pytest.raises(InputError, match=r"ignature.*nix"):
        list(client._batches("query_tower", "nix", {"text": ["a"]}))
    for asked, message in (
        ({"version": 9}, "'query_tower' version 9: NOT_FOUND: .*query_tower"),
        ({"label": "canary"}, "'canary': NOT_FOUND"),
    ):
        with pytest.raises(InputError, match=message):
            ServingClient(server, **asked).encode(["a"])


def test_server_that_is_down_is_named():
    address = f"http://127.0.0.1:{free_port()}"
    message = f"server {address}.*UNAVAILABLE: .*refused.*Start the server"
    with pytest.raises(InputError, match=message):
        ServingClient(address).encode(["a"])


def test_error_of_a_large_request_names_batch_size(client):
    with pytest.raises(InputError, match=r"RESOURCE_EXHAUSTED.*batch_size"):
        client.encode(["a" * 20_000_000])
    assert client.encode(["red"]).shape == (1, DIM)


@cases(
    "options, name, arguments, message",
    ({}, "search", ["red apple"], "text: it is a single text, 'red apple'"),
    ({}, "rerank", ["red", "apple"], "document: it is a single text, 'apple'"),
    ({}, "encode", [["red", None]], "text: None is no text"),
    ({}, "encode", [["red"], "documents"], "role='documents'.*document"),
    ({"batch_size": 0}, "", [], "batch_size=0: it is too small"),
    ({"version": 2, "label": "canary"}, "", [], "label 'canary': version 2 is given too"),
    *(
        ({"address": one}, "", [], rf"address={one}.*8501")
        for one in ("", "localhost:8500", "ftp://a:1", "http://", "http:///b", "a b:1")
    ),
)
def test_mistakes_are_named_before_anything_is_sent(options, name, arguments, message):
    with pytest.raises(InputError, match=message):
        getattr(ServingClient(**{"address": "http://localhost:1", **options}), name)(*arguments)


def asked(status, content, texts):
    """Asks a server that always answers so; returns what it was sent."""
    bodies = []

    def answer(path, headers, body):
        bodies.append(body)
        if status == "silence":
            time.sleep(1)
        return 200 if status == "silence" else status, content

    with answering(answer) as address:
        try:
            ServingClient(address, timeout=0.2 if status == "silence" else 20).encode(texts)
        finally:
            assert len(bodies) == 1  # REST asks once
    return bodies[0]


def test_rest_sends_text_as_it_is_and_bytes_that_are_not_utf8_as_base64():
    sent = asked(200, b'{"outputs": [[0.5], [0.5], [0.5]]}', ["déjà", b"\xc3\xa9", b"\xff"])
    inputs = {"text": ["déjà", "é", {"b64": "/w=="}]}
    assert sent == {"signature_name": "serving_default", "inputs": inputs}


@cases(
    "status, answer, message",
    *((status, REASON, rf"{code}: the reason\. [A-Z]") for status, code in CODES.items()),
    ("silence", b"", r"DEADLINE_EXCEEDED: no answer in 0\.2 s.*timeout"),
    (200, b"<html>", "is not one of a model server"),
    (200, b"[]", "is not one of a model server"),
    (200, b'{"outputs": [[1.0]]}', "the answer to 2 rows"),
    (200, b'{"outputs": "text"}', "the answer to 2 rows"),
    (200, b'{"outputs": [[1.0], [2.0, 3.0]]}', "not a table of numbers"),
)
def test_a_failure_of_a_server_has_a_code_and_a_reason(status, answer, message):
    with pytest.raises(InputError, match=message):
        asked(status, answer, ["a", "b"])
