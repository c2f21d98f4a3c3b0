"""REST: answers of the SavedModel, mistakes in a request, pages, versions, the process."""

import contextlib
import io
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.cases import cases
from tests.published import DEPTH, RERANKED_DEPTH, NoVerifier, encode, publish_small
from tests.server.local_server import ROOT, connected, local_server, process, rest
from tf_smoothclir import InputError, ServingClient
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.publishing.export_directory import load_part
from tf_smoothclir.search.opening import open_search
from tf_smoothclir.server.http_server import bound_socket
from tf_smoothclir.server.served_models import load_models

TOWER = "/v1/models/query_tower"
PREDICT = f"{TOWER}:predict"
TEXT = "".join((ROOT / "docs" / name).read_text("utf-8") for name in ("serving.md", "requests.md"))
# The sections before this one are tried with towers, this one with a re-ranker.
SECTIONS = TEXT.partition("## With a re-ranker")[::2]
ADDRESS = "localhost:8501"
QUERY, ANYTHING = "Which city is known for sugar?", "..."
HEAD = f"POST {PREDICT} HTTP/1.1\r\nHost: here\r\nContent-Length: 22\r\n\r\n".encode()


def tokens(ids, lengths):
    return {"signature_name": "tokens", "inputs": {"ids": ids, "lengths": lengths}}


@cases(
    "key, rows",
    ("instances", ["red apple", "sea"]),
    ("instances", [{"text": "red apple"}, {"text": "sea"}]),
    ("instances", [{"b64": "cmVkIGFwcGxl"}, "sea"]),
    ("inputs", ["red apple", "sea"]),
    ("inputs", {"text": ["red apple", {"b64": "c2Vh"}]}),
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
    ({"inputs": [True, None]}, "no text (true)"),
    ({"instances": [{"b64": "***"}]}, "no text"),
    ({"instances": [{"b64": 5}]}, 'no text ({"b64": 5})'),
    (b'{"instances": ["\\ud800"]}', "no text"),  # half a surrogate pair
    ({"signature_name": 5, "instances": ["a"]}, "it is no string"),
    ({"signature_name": "nix", "instances": ["a"]}, "'nix': there is no such signature"),
    ({"signature_name": "tokens", "inputs": [1]}, "no names"),
    (tokens([2**40], [1]), "no int32"),
    (tokens([0.5], [1]), "no int32"),
    (tokens([1], [9]), "must add up to the number of ids"),
]


@cases("body, message", *BAD_BODIES, ids=map(str, range(len(BAD_BODIES))))
def test_malformed_body_is_a_bad_request_and_the_next_one_is_answered(server, body, message):
    status, answer = rest(server, PREDICT, body, method="POST")
    assert status == 400
    assert message in answer["error"]
    assert rest(server, PREDICT, {"instances": ["red"]})[0] == 200


@cases(
    "method, path, status, message",
    ("POST", "/v1/models/nothing:predict", 404, "no model nothing; served are: "),
    ("POST", f"{TOWER}/versions/9:predict", 404, "no model query_tower, version 9"),
    ("POST", f"{TOWER}/versions/{'9' * 9999}:predict", 404, "version 999"),
    ("POST", f"{TOWER}:classify", 405, "Method Not Allowed"),
    ("PUT", PREDICT, 405, "Method Not Allowed"),
    ("GET", PREDICT, 405, "Method Not Allowed"),
    ("GET", f"{TOWER}/versions/9", 404, "version 9"),
    ("GET", "/etc/passwd", 404, "Not Found"),
)
def test_wrong_path_method_or_model_has_the_right_status(server, method, path, status, message):
    body = {"instances": ["a"]} if method != "GET" else None
    found, answer = rest(server, path, body, method=method)
    assert found == status
    assert message in answer["error"]


def console_lines(section):
    """`(command, answer on the page)` of each `$` line."""
    for block in re.findall(r"^```console\n(.*?)^```", section, re.DOTALL | re.MULTILINE):
        for part in block.split("$ ")[1:]:
            command, _, answer = part.rstrip("\n").rpartition("\n")
            yield command, answer


def python_block(section, changes):
    """Runs the only block of Python in a section; returns its names and what it printed."""
    (block,) = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    names = changes.pop("names", {})
    for shown, used in changes.items():
        assert shown in block
        block = block.replace(shown, used)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(block, "page", "exec"), names)
    return names, printed.getvalue()


@pytest.fixture(scope="module")
def servers(export, reranked):
    with local_server(export) as first, local_server(reranked[1]) as second:
        yield first, second


def has_shape(found, shown):
    """Whether an answer has the names, types and nesting of what the page shows."""
    if shown == ANYTHING:
        return bool(found)
    if type(found) is not type(shown):
        return False
    if isinstance(shown, dict):
        return found.keys() == shown.keys() and all(has_shape(found[k], shown[k]) for k in shown)
    is_list = isinstance(shown, list)
    return not is_list or (bool(found) and all(has_shape(value, shown[0]) for value in found))


@cases(
    "section, command, answer", *((n, *own) for n in (0, 1) for own in console_lines(SECTIONS[n]))
)
def test_answer_to_a_curl_line_has_the_shape_on_the_page(servers, section, command, answer):
    if shutil.which("curl") is None:
        pytest.skip("no curl on the PATH: the lines of the pages are not run")
    assert command.startswith(f"curl -s {ADDRESS}/")
    command = command.replace(ADDRESS, servers[section])
    if section:
        command = command.replace(QUERY, "wordb worde")
    options = {"capture_output": True, "text": True, "timeout": 30, "check": True}
    # "..." stands for more of the same.
    shown = json.loads(answer.replace(", ...]", "]").replace("{...}", f'"{ANYTHING}"'))
    found = json.loads(subprocess.run(["/bin/sh", "-c", command], **options).stdout)
    assert has_shape(found, shown), found
    if "predictions" in shown:
        assert len(found["predictions"]) == len(shown["predictions"])
    assert ("error" in found) == ("error" in shown)


def test_the_python_block_asks_the_server(servers):
    changes = {f"http://{ADDRESS}": servers[0], "timeout=1.0": "timeout=30.0", QUERY: "red apple"}
    names, _ = python_block(SECTIONS[0], changes)
    assert names["vectors"].shape[0] == 1
    assert names["documents"][0].id


def test_two_requests_rank_as_a_search_does(servers, reranked):
    run, directory = reranked
    source = source_of(run.settings().data)
    kinds = ("auto", "lexical")
    search, first = (open_search(directory, "", lambda data: data, retriever=one) for one in kinds)
    for query in (one.text for one in source.queries()):
        (hits,), (before,) = (one.search([query], RERANKED_DEPTH) for one in (search, first))
        if [hit.id for hit in hits] != [hit.id for hit in before]:
            break
    texts = {one.id: one.text for one in source.documents()}
    changes = {f"http://{ADDRESS}": servers[1], QUERY: query, "names": {"texts": texts}}
    names, printed = python_block(SECTIONS[1], changes)
    assert names["weight"] == 30.0
    lines = [line.split() for line in printed.splitlines()]
    assert [id for _, id in lines] == [hit.id for hit in hits]
    scores = [hit.score for hit in hits]
    assert [float(total) for total, _ in lines] == pytest.approx(scores, abs=2e-3)
    assert [hit.id for hit in hits] != [document.id for document in names["found"]]


@pytest.fixture(scope="module")
def two_versions(tmp_path_factory):
    """Two versions with different vectors; read-only."""
    path = tmp_path_factory.mktemp("export")
    vocabulary = tmp_path_factory.mktemp("vocabulary")
    assert [publish_small(vocabulary, path, n, NoVerifier()) for n in (1, 2)] == [1, 2]
    return path


def served(export, version=None):
    return {name: model.version for name, model in load_models(export, version).items()}


def test_the_newest_version_is_served_or_the_one_that_is_asked_for(
    two_versions, ranking_exports, tmp_path
):
    names = ("document_tower", "search", "query_tower")
    assert served(two_versions) == dict.fromkeys(names, 2)
    assert served(two_versions, 1) == dict.fromkeys(names, 1)
    assert served(ranking_exports["lexical"]) == {"search": 1}
    with pytest.raises(InputError, match="there is no complete version 3"):
        served(two_versions, 3)
    # Without a search model, a lexical model serves a page alone.
    copied = shutil.copytree(ranking_exports["lexical"], tmp_path / "lexical")
    shutil.rmtree(copied / "search")
    with pytest.raises(InputError, match=r"no model for requests: .* Give --ui"):
        served(copied)
    assert load_models(copied, may_be_none=True) == {}


def test_a_damaged_version_is_not_served_nor_a_part_of_it(two_versions, tmp_path, caplog):
    copied = shutil.copytree(two_versions, tmp_path / "export")
    (copied / "query_tower" / ("9" * 21)).mkdir()  # no number of a version
    file = copied / "search" / "2" / "saved_model.pb"
    file.write_bytes(b"four" + file.read_bytes()[4:])
    assert set(served(copied).values()) == {1}
    assert re.search("Version 2 is not served: .*saved_model.pb is not the file", caplog.text)
    with pytest.raises(InputError, match="is not the file that was written"):
        served(copied, 2)


@cases("number", signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow))
def test_a_signal_ends_the_process_once_it_has_answered(two_versions, number):
    with process(two_versions, "--version=1") as (child, address):
        vector = ServingClient(address).encode(["red"])
        expected = encode(load_part(two_versions, "query", 1).model, ["red"])
        np.testing.assert_allclose(vector, expected, atol=1e-6)
        with connected(address) as one:
            one.sendall(HEAD)
            time.sleep(0.5)
            child.send_signal(number)
            time.sleep(0.5)
            one.sendall(b'{"instances": ["red"]}')
            assert one.recv(1 << 16).startswith(b"HTTP/1.1 200")
        assert child.wait(5) == 0
        assert child.communicate() == ("", "")


@pytest.mark.slow
def test_a_request_that_does_not_end_delays_the_end_by_seconds_only(two_versions):
    with process(two_versions) as (child, address), connected(address) as one, connected(address):
        one.sendall(HEAD)
        time.sleep(0.5)
        child.terminate()
        assert child.wait(15) == 0


def test_a_busy_port_is_named_before_anything_is_loaded(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        busy = listening.getsockname()[1]
        # The export is empty: whoever looked for models first would say that.
        command = [sys.executable, "-m", "export.serve", f"--port={busy}"]
        command.append(f"--export_dir={tmp_path}")
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert f"error: --port={busy}: the port cannot be used" in done.stderr


def test_sockets_answer_without_delay_and_refuse_until_the_models_are_loaded():
    with bound_socket("127.0.0.1", 0) as bound:
        assert bound.proto == socket.IPPROTO_TCP  # by which asyncio decides about Nagle's algorithm
        with pytest.raises(ConnectionRefusedError):
            connected(f"http://127.0.0.1:{bound.getsockname()[1]}")
    for host in ("192.0.2.1", "nonsense.invalid", "x" * 99):  # not of this machine, and no names
        with pytest.raises(InputError, match=f"host={host}: the address cannot be used"):
            bound_socket(host, 0)
