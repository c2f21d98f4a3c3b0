"""The client: the same answers by gRPC and REST, and errors that can be read."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.published import CUT_POINTS, DEPTH, DIM, encode
from tests.server.local_server import FakeServing, free_port, grpc_server, local_server, serving
from tf_smoothclir.client.serving_client import ServingClient
from tf_smoothclir.client.transport import VersionStatus
from tf_smoothclir.publishing.export_directory import load_part, load_tower
from tf_smoothclir.utils.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
TEXTS = ["red apple", "", b"\xff\xfe red", "sea\x00red", "日本語", "\udcff", "\ud800"]
BYTES = [
    b"red apple",
    b"",
    b"\xff\xfe red",
    b"sea\x00red",
    "日本語".encode(),
    b"\xff",  # bytes of a command line that are not UTF-8
    b"?",
]


@pytest.fixture(scope="module", params=[grpc_server, local_server], ids=["grpc", "rest"])
def address(request, export):
    with request.param(export) as address:
        yield address


@pytest.mark.parametrize("role", ["query", "document"])
def test_vectors_are_those_of_the_saved_model(address, export, role):
    with ServingClient(address) as client:
        vectors = client.encode(TEXTS, role)
    expected = encode(load_tower(export, role)[0], BYTES)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-6)
    assert np.abs(expected).max() > 0


def test_search_gives_ids_scores_and_grades(address, export):
    with ServingClient(address) as client:
        red, sea = client.search(["red", "sea"])
    signature = load_part(export, "search")[0].signatures["serving_default"]
    expected = {key: v.numpy() for key, v in signature(text=tf.constant(["red", "sea"])).items()}
    for row, found in enumerate((red, sea)):
        assert len(found) == DEPTH
        assert [f.id.encode() for f in found] == expected["ids"][row].tolist()
        assert [f.grade for f in found] == expected["grades"][row].tolist()
        np.testing.assert_allclose([f.score for f in found], expected["scores"][row], atol=1e-6)


def test_score_of_pairs_is_that_of_the_search(address):
    with ServingClient(address) as client:
        (found,) = client.search(["red"])
        document = found[0].id.split()[-1]
        ((score, grade),) = client.score([("red", document)])
    assert score == pytest.approx(found[0].score, abs=1e-6)
    assert grade == sum(score > cut for cut in CUT_POINTS.alone)


def test_status(address):
    with ServingClient(address) as client:
        (version,) = client.status("search")
    assert version == VersionStatus(1, "AVAILABLE", "OK", "")


@pytest.mark.parametrize("rows", [0, 1, 4, 5, 8, 9])
def test_many_texts_are_sent_in_batches_and_come_back_in_order(address, export, rows, monkeypatch):
    texts = [f"{word} {n}" for n in range(9) for word in ("red", "apple", "sea")][:rows]
    with ServingClient(address, batch_size=4) as client:
        sizes, predict = [], client._transport.predict

        def counted(model, signature, inputs):
            sizes.append(len(inputs["text"]))
            return predict(model, signature, inputs)

        monkeypatch.setattr(client._transport, "predict", counted)
        vectors = client.encode(texts)
    assert sizes == [min(4, rows - begin) for begin in range(0, rows, 4)]
    assert len(vectors) == rows
    if rows:
        expected = encode(load_tower(export, "query")[0], texts)
        np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_one_client_serves_many_threads(address, export):
    results = {}

    def ask(word):
        results[word] = [client.encode([word]) for _ in range(10)]

    with ServingClient(address) as client:
        words = ["red", "apple", "sea", "other"] * 4
        threads = [threading.Thread(target=ask, args=(f"{w} {n}",)) for n, w in enumerate(words)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(results) == len(words)
    for text, vectors in results.items():
        expected = encode(load_tower(export, "query")[0], [text])
        np.testing.assert_allclose(np.concatenate(vectors), np.repeat(expected, 10, 0), atol=1e-6)


def test_missing_version_is_named(address):
    message = "'query_tower' version 9: NOT_FOUND: .*query_tower"
    with ServingClient(address, version=9) as client, pytest.raises(InputError, match=message):
        client.encode(["a"])


def test_a_label_is_sent_and_its_lack_named(address):
    """TensorFlow Serving has labels; the local server has none."""
    message = "'query_tower' label 'canary': (INVALID_ARGUMENT.*label: canary|NOT_FOUND)"
    with ServingClient(address, label="canary") as client, pytest.raises(InputError, match=message):
        client.encode(["a"])


def test_existing_version_answers(address):
    with ServingClient(address, version=1) as client:
        assert client.encode(["red"]).shape == (1, DIM)


def test_missing_model_is_named_with_the_server(address):
    message = f"server {address}, model 'nix': NOT_FOUND: .*nix.*status"
    with ServingClient(address) as client, pytest.raises(InputError, match=message):
        client.status("nix")


@pytest.mark.parametrize("role", ["query", "document"])
def test_pair_id_is_that_of_the_manifest(address, export, role):
    with ServingClient(address) as client:
        assert client.pair_id(role) == load_tower(export, role).manifest.pair_id


def test_queries_come_with_what_the_tower_knows_of_them(address, export):
    with ServingClient(address, batch_size=2) as client:
        vectors, evidence = client.encode_queries(["red apple", "green", "red pear"])
        assert [part.shape for part in client.encode_queries([])[:1]] == [(0, 0)]
    expected = encode(load_tower(export, "query")[0], ["red apple", "green", "red pear"])
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    assert evidence == [("words", ""), ("nothing", "green"), ("words", "pear")]


def test_unknown_signature_is_named(export, address):
    with ServingClient(address) as client, pytest.raises(InputError, match=r"ignature.*nix"):
        list(client._batches("query_tower", "nix", {"text": ["a"]}))


@pytest.mark.parametrize(("kind", "least"), [("{}", 0.15), ("http://{}", 0)])
def test_server_that_is_down_is_named_after_the_retries_of_grpc(kind, least):
    address = kind.format(f"127.0.0.1:{free_port()}")
    message = f"server {address}.*UNAVAILABLE: .*refused.*Start the server"
    begin = time.monotonic()
    with ServingClient(address, retries=2) as client, pytest.raises(InputError, match=message):
        client.encode(["a"])
    assert least <= time.monotonic() - begin < 5


def test_server_that_starts_between_the_retries_of_grpc_is_found(export):
    port, ended, fake = free_port(), threading.Event(), FakeServing(export)

    def start_late():
        time.sleep(0.1)
        with serving(fake, port):
            ended.wait(20)

    thread = threading.Thread(target=start_late)
    thread.start()
    try:
        with ServingClient(f"127.0.0.1:{port}", retries=4, timeout=20) as client:
            assert client.encode(["red"]).shape == (1, DIM)
    finally:
        ended.set()
        thread.join()


def test_error_of_a_large_request_names_batch_size(export):
    with grpc_server(export, max_bytes=10_000) as address, ServingClient(address) as client:
        with pytest.raises(InputError, match=r"RESOURCE_EXHAUSTED.*--batch_size"):
            client.encode(["a" * 20_000])
        assert client.encode(["red"]).shape == (1, DIM)
    with local_server(export) as address, ServingClient(address) as client:
        with pytest.raises(InputError, match=r"RESOURCE_EXHAUSTED.*--batch_size"):
            client.encode(["a" * 200_000] * 100)
        assert client.encode(["red"]).shape == (1, DIM)


@pytest.mark.parametrize(
    "address", ["", "localhost", "ftp://here:1", "http://", "http:///path", "host:port", "a b:1"]
)
def test_invalid_address_is_named(address):
    with pytest.raises(InputError, match=rf"--server={address}.*8500.*8501"):
        ServingClient(address)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda client: client.search("red apple"), "text: it is a single text, 'red apple'"),
        (lambda client: client.encode(b"red"), "text: it is a single text"),
        (lambda client: client.rerank("red", "apple"), "document: it is a single text, 'apple'"),
        (lambda client: client.encode(["red", None]), "text: None is no text"),
        (lambda client: client.encode(["red"], "documents"), "role='documents'.*document"),
        (lambda client: client.pair_id("queries"), "role='queries'"),
    ],
)
def test_mistakes_are_named_before_anything_is_sent(ask, message):
    with (
        pytest.raises(InputError, match=message),
        ServingClient("localhost:1", retries=0) as client,
    ):
        ask(client)


@pytest.mark.parametrize(("name", "number"), [("retries", -1), ("batch_size", 0)])
def test_numbers_out_of_range_are_refused(name, number):
    with pytest.raises(InputError, match=f"{name}={number}: it is too small"):
        ServingClient("localhost:8500", **{name: number})


def test_version_and_label_together_are_refused():
    with pytest.raises(InputError, match="label 'canary': version 2 is given too"):
        ServingClient("here:1", version=2, label="canary")


def command(*arguments, stdin=b""):
    done = subprocess.run(
        [sys.executable, "-m", "export.client", *arguments],
        cwd=ROOT,
        input=stdin,
        capture_output=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_command_by_rest_reads_lines_and_prints_json(export):
    with local_server(export) as address:
        server = f"--server={address}"
        code, out, _ = command(server, "--json", "encode", stdin=b"red\n\xff\n\n")
        assert code == 0
        records = [json.loads(line) for line in out.splitlines()]
        assert [record["text"] for record in records] == ["red", "�", ""]
        expected = encode(load_tower(export, "query")[0], [b"red", b"\xff", b""])
        np.testing.assert_allclose([r["vector"] for r in records], expected, atol=1e-6)

        code, out, _ = command(server, "search", "red")
        assert (code, len(out.splitlines())) == (0, 3 + DEPTH)
        code, out, _ = command(server, "score", "--json", stdin=b"red\troter\n")
        assert set(json.loads(out)) == {"query", "document", "score", "grade"}
        code, out, _ = command(server, "status")
        assert out.splitlines() == [
            f"{name} 1 AVAILABLE" for name in ("query_tower", "document_tower", "search")
        ]
        for arguments, message in [
            (("score", "one"), "1 texts cannot be paired"),
            (("guess",), "there is no such command"),
            (("status", "nix"), "model 'nix': NOT_FOUND"),
        ]:
            code, out, error = command(server, *arguments)
            assert (code, out) == (1, "")
            assert error.startswith("error: ")
            assert message in error


def test_rest_needs_no_tensorflow():
    script = (
        "import sys; from tf_smoothclir.client.serving_client import ServingClient;"
        " ServingClient('http://here:1');"
        " sys.exit(sorted({'tensorflow', 'grpc'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False)
    assert done.returncode == 0
