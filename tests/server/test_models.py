"""Which version is served, and the process: its port, its end, files that were changed."""

import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.published import NoVerifier, encode, publish_small
from tests.server.local_server import connected, process
from tf_smoothclir.client.serving_client import ServingClient
from tf_smoothclir.publishing.export_directory import load_part
from tf_smoothclir.server.http_server import bound_socket
from tf_smoothclir.server.served_models import load_models
from tf_smoothclir.utils.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
PREDICT = "/v1/models/query_tower:predict"
HEAD = f"POST {PREDICT} HTTP/1.1\r\nHost: here\r\nContent-Length: 22\r\n\r\n".encode()


@pytest.fixture(scope="module")
def two_versions(tmp_path_factory):
    """Two versions with different vectors; read-only."""
    path = tmp_path_factory.mktemp("export")
    vocabulary = tmp_path_factory.mktemp("vocabulary")
    assert [publish_small(vocabulary, path, n, NoVerifier()) for n in (1, 2)] == [1, 2]
    return path


def served(export, version=None):
    return {name: model.version for name, model in load_models(export, version).items()}


def test_the_newest_version_is_served_or_the_one_that_is_asked_for(two_versions, ranking_exports):
    names = ("document_tower", "search", "query_tower")
    assert served(two_versions) == dict.fromkeys(names, 2)
    assert served(two_versions, 1) == dict.fromkeys(names, 1)
    assert served(ranking_exports["lexical"]) == {"search": 1}
    with pytest.raises(InputError, match="there is no complete version 3"):
        served(two_versions, 3)


def test_a_damaged_version_is_not_served_nor_a_part_of_it(two_versions, tmp_path, caplog):
    copied = shutil.copytree(two_versions, tmp_path / "export")
    (copied / "query_tower" / ("9" * 21)).mkdir()  # no number of a version
    file = copied / "search" / "2" / "saved_model.pb"
    file.write_bytes(b"four" + file.read_bytes()[4:])
    with caplog.at_level("WARNING"):
        assert set(served(copied).values()) == {1}
    assert re.search("Version 2 is not served: .*saved_model.pb is not the file", caplog.text)
    with pytest.raises(InputError, match="is not the file that was written"):
        served(copied, 2)


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
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
    with pytest.raises(InputError, match="cannot be used"):
        bound_socket("192.0.2.1", 0)  # not of this machine
