"""Versions come and go while the server answers; tampered files are never loaded."""

import functools
import gc
import shutil
import socket
import subprocess
import sys
import threading
import weakref
from concurrent import futures
from pathlib import Path

import numpy as np
import pytest

from tests.published import encode, publish_small
from tests.server.local_server import local_server, rest, wait_for
from tf_smoothclir.client.serving_client import ServingClient
from tf_smoothclir.publishing.export_directory import load_tower
from tf_smoothclir.server.development_server import DevelopmentServer
from tf_smoothclir.server.loaded_model import LoadedModel, Signature
from tf_smoothclir.server.model_config import configs_of_export, configs_of_file
from tf_smoothclir.server.model_registry import ModelRegistry
from tf_smoothclir.server.request_error import RequestError
from tf_smoothclir.utils.errors import InputError

CONFIG = """
model_config_list {{
  config {{
    name: "tower" base_path: "{base}" model_platform: "tensorflow" {more}
  }}
}}
"""


PLATFORM = ' model_platform: "tensorflow"'


@pytest.fixture(scope="module")
def three_versions(tmp_path_factory):
    """Three versions with different vectors; read-only."""
    path = tmp_path_factory.mktemp("export")
    vocabulary = tmp_path_factory.mktemp("vocabulary")
    assert [publish_small(vocabulary, path, seed) for seed in (1, 2, 3)] == [1, 2, 3]
    return path


@pytest.fixture
def export(three_versions, tmp_path):
    """An export with version 1 alone, that may be changed."""
    for name in ("query_tower", "document_tower", "search"):
        shutil.copytree(three_versions / name / "1", tmp_path / "export" / name / "1")
    return tmp_path / "export"


def add_version(three_versions, export, version):
    """Publishes as the exporter does: each part whole, by a rename, the query tower last."""
    for name in ("document_tower", "query_tower"):
        add_part(three_versions, export, version, name)


def add_part(three_versions, export, version, name):
    temporary = export / name / f".{version}.new"
    shutil.copytree(three_versions / name / str(version), temporary)
    temporary.rename(export / name / str(version))


def registry(export, more="", name="query_tower"):
    """A started registry of a config file that is `more` than the least."""
    path = export / "models.config"
    path.write_text(CONFIG.format(base=export / name, more=more))
    models = ModelRegistry(lambda: configs_of_file(path))
    models.start()
    return models


def available(models, name="tower"):
    states = models.states(name)
    return sorted(version for version, state in states.items() if state.state == "AVAILABLE")


def has_states(addresses, wanted):
    _, answer = rest(addresses, "/v1/models/query_tower")
    states = {int(v["version"]): v["state"] for v in answer["model_version_status"]}
    return wanted.items() <= states.items()


@pytest.mark.parametrize(
    ("policy", "versions"),
    [
        ("", [3]),
        ("model_version_policy { latest { num_versions: 2 } }", [2, 3]),
        ("model_version_policy { all {} }", [1, 2, 3]),
        ("model_version_policy { specific { versions: 1 versions: 3 versions: 8 } }", [1, 3]),
    ],
)
def test_version_policy(three_versions, tmp_path, policy, versions):
    path = tmp_path / "models.config"
    path.write_text(CONFIG.format(base=three_versions / "query_tower", more=policy))
    models = ModelRegistry(lambda: configs_of_file(path))
    models.start()
    assert available(models) == versions
    assert models.get("tower").version == versions[-1]


def test_label_moves_to_another_version_and_back(three_versions, export):
    more = 'model_version_policy {{ all {{}} }} version_labels {{ key: "stable" value: {} }}'
    add_version(three_versions, export, 2)
    models = registry(export, more.format(1))
    assert models.get("tower", label="stable").version == 1
    for version in (2, 1, 7):
        (export / "models.config").write_text(
            CONFIG.format(base=export / "query_tower", more=more.format(version))
        )
        models.poll()
        if version == 7:
            with pytest.raises(RequestError, match=r"Specific\(tower, 7\)"):
                models.get("tower", label="stable")
        else:
            assert models.get("tower", label="stable").version == version
    with pytest.raises(RequestError, match="Unrecognized servable version label: canary"):
        models.get("tower", label="canary")


def test_broken_config_changes_nothing(export, caplog):
    models = registry(export)
    (export / "models.config").write_text("model_config_list {")
    models.poll()
    assert available(models) == [1]
    assert "Keeping the last valid configuration" in caplog.text


def test_a_version_is_served_once_all_its_parts_are_there(three_versions, export):
    """A kill between the renames of an export leaves a document tower alone, for ever."""
    models = ModelRegistry(lambda: configs_of_export(export))
    models.start()
    add_part(three_versions, export, 2, "document_tower")
    models.poll()
    served = {name: available(models, name) for name in ("document_tower", "query_tower")}
    assert served == {"document_tower": [1], "query_tower": [1]}
    add_part(three_versions, export, 2, "query_tower")
    models.poll()
    served = {name: available(models, name) for name in ("document_tower", "query_tower")}
    assert served == {"document_tower": [2], "query_tower": [2]}


def test_parts_of_two_exports_under_one_number_are_not_served(three_versions, export):
    shutil.copytree(three_versions / "document_tower" / "3", export / "document_tower" / "2")
    shutil.copytree(three_versions / "query_tower" / "2", export / "query_tower" / "2")
    models = ModelRegistry(lambda: configs_of_export(export))
    models.start()
    assert available(models, "document_tower") == available(models, "query_tower") == [1]


def test_a_tower_without_the_other_on_this_machine_is_served(three_versions, tmp_path):
    shutil.copytree(three_versions / "query_tower", tmp_path / "query_tower")
    assert available(registry(tmp_path)) == [3]


def test_model_removed_from_the_config_is_not_found(export):
    models = registry(export)
    (export / "models.config").write_text(
        CONFIG.format(base=export / "query_tower", more="").replace('"tower"', '"other"')
    )
    models.poll()
    assert models.get("other").version == 1
    with pytest.raises(RequestError, match="Servable not found"):
        models.get("tower")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "it is not a model config file"),
        ("", "names no model"),
        (CONFIG.format(base="models/x", more=""), "'models/x'.*absolute"),
        (CONFIG.format(base="/x", more="").replace('"tensorflow"', '"other"'), "'other'"),
        (CONFIG.format(base="/x", more="").replace('"tower"', '""'), "name"),
        (
            CONFIG.format(base="/x", more='} config { name: "tower" base_path: "/y"' + PLATFORM),
            "it names model 'tower' twice",
        ),
    ],
)
def test_unusable_config_file_is_named(tmp_path, text, message):
    path = tmp_path / "models.config"
    path.write_text(text)
    with pytest.raises(InputError, match=rf"models\.config.*{message}"):
        configs_of_file(path)


def test_config_file_for_a_container_works_on_an_export(export, tmp_path):
    path = tmp_path / "models.config"
    path.write_text(CONFIG.format(base="/models/query_tower", more=""))
    (config,) = configs_of_file(path, export)
    assert config.wanted() == [1]


def test_export_without_models_and_model_without_versions_are_named(tmp_path, export):
    with pytest.raises(InputError, match=r"--export_dir=.*smoothclir-export"):
        configs_of_export(tmp_path / "nowhere")
    shutil.rmtree(export / "search" / "1")
    names = [config.name for config in configs_of_export(export)]
    assert sorted(names) == ["document_tower", "query_tower"]
    with pytest.raises(InputError, match=r"search: model 'tower' has no version to serve"):
        registry(export, name="search")


@pytest.mark.parametrize("name", ["saved_model.pb", "variables/variables.index", "manifest.json"])
def test_tampered_version_is_not_loaded_and_the_old_one_stays(three_versions, export, name):
    models = registry(export)
    add_version(three_versions, export, 2)
    file = export / "query_tower" / "2" / name
    whole = file.read_bytes()
    file.write_bytes(b"x" + whole[1:])
    for _ in range(2):
        models.poll()
        assert available(models) == [1]
        assert models.states("tower")[2].code == "FAILED_PRECONDITION"
        assert name in models.states("tower")[2].message
    file.write_bytes(whole)  # such as a copy that had not been whole yet
    models.poll()
    assert available(models) == [2]
    assert models.states("tower")[1].state == "END"


def test_server_does_not_start_with_a_tampered_model(export):
    (export / "search" / "1" / "more.txt").write_text("")
    with pytest.raises(InputError, match=r"more\.txt: the file is not the one"):
        DevelopmentServer(ModelRegistry(lambda: configs_of_export(export)))


def test_model_without_a_manifest_is_not_loaded(export):
    (export / "query_tower" / "1" / "manifest.json").unlink()
    with pytest.raises(InputError, match="this is not a manifest"):
        registry(export)


def test_request_under_way_finishes_after_its_version_is_unloaded(
    three_versions, export, monkeypatch
):
    models = registry(export)
    started, go_on, run = threading.Event(), threading.Event(), Signature.run

    def slow(self, *arguments):
        started.set()
        assert go_on.wait(20)
        return run(self, *arguments)

    with monkeypatch.context() as patch, futures.ThreadPoolExecutor(1) as pool:
        add_version(three_versions, export, 2)
        signature = models.get("tower").signature("")
        patch.setattr(Signature, "run", slow)
        answer = pool.submit(signature.run, {"text": np.array([b"red"], object)})
        assert started.wait(20)
        patch.setattr(Signature, "run", run)  # the warm-up of version 2 runs too
        models.poll()
        assert available(models) == [2]
        go_on.set()
        vector = answer.result(20)["vector"]
    expected = encode(load_tower(three_versions, "query", 1)[0], ["red"])
    np.testing.assert_allclose(vector, expected, atol=1e-6)


def test_unloaded_version_is_freed(three_versions, export):
    models = registry(export)
    gone = weakref.ref(models.get("tower"))
    add_version(three_versions, export, 2)
    models.poll()
    gc.collect()
    assert gone() is None


@pytest.mark.slow
def test_hot_swap_during_load_loses_no_request_and_every_answer_is_of_one_version(
    three_versions, export
):
    expected = [
        encode(load_tower(three_versions, "query", version)[0], ["red apple"])[0]
        for version in (1, 2, 3)
    ]
    stopped = threading.Event()
    with local_server(export, poll_seconds=0.05) as addresses:

        def ask(address):
            seen = []
            with ServingClient(address, retries=0, timeout=20) as client:
                while not stopped.is_set():
                    seen.append(client.encode(["red apple"])[0])
            return seen

        with futures.ThreadPoolExecutor(6) as pool:
            clients = [pool.submit(ask, a) for a in 3 * [addresses.grpc, addresses.rest]]
            try:
                for version in (2, 3):
                    add_version(three_versions, export, version)
                    swapped = {version - 1: "END", version: "AVAILABLE"}
                    wait_for(functools.partial(has_states, addresses, swapped))
            finally:
                stopped.set()
            answers = [answer for client in clients for answer in client.result()]
    kinds = [[np.allclose(answer, vector, atol=1e-6) for vector in expected] for answer in answers]
    assert all(sum(kind) == 1 for kind in kinds)
    assert all(any(kind[version] for kind in kinds) for version in (0, 1))


def test_warm_up_requests_are_run_before_a_version_is_ready(export, monkeypatch):
    calls, run = [], Signature.run

    def counted(self, inputs, *arguments):
        calls.append(sorted(inputs))
        return run(self, inputs, *arguments)

    monkeypatch.setattr(Signature, "run", counted)
    LoadedModel("search", 1, export / "search" / "1")
    assert ["text"] in calls
    assert ["document", "query"] in calls


def test_port_in_use_is_named(export):
    models = ModelRegistry(lambda: configs_of_export(export))
    with DevelopmentServer(models) as server:
        with pytest.raises(InputError, match=f"--rest_api_port={server.rest_api_port}"):
            DevelopmentServer(models, rest_api_port=server.rest_api_port)
        with pytest.raises(InputError, match=f"--port={server.port}"):
            DevelopmentServer(models, port=server.port)


def test_command_answers_what_it_was_sent_before_sigterm_and_ends_cleanly(export):
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", "export.serve", f"--export_dir={export}", "--verbosity=-1"]
    child = subprocess.Popen(
        [*command, "--port=0", "--rest_api_port=0"],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        grpc_part, rest_part = child.stdout.readline().split()
        with ServingClient(grpc_part.partition("=")[2]) as client:
            vector = client.encode(["red"])
        with ServingClient(rest_part.partition("=")[2]) as client:
            np.testing.assert_allclose(client.encode(["red"]), vector, atol=1e-6)
        address = ("127.0.0.1", int(rest_part.rpartition(":")[2]))
        with socket.create_connection(address, timeout=20) as one:
            one.sendall(b"POST /v1/models/query_tower:predict HTTP/1.1\r\nHost: here\r\n")
            child.terminate()
            one.sendall(b'Content-Length: 22\r\n\r\n{"instances": ["red"]}')
            assert one.recv(1 << 16).startswith(b"HTTP/1.1 200")
        assert child.wait(20) == 0
        assert child.stderr.read() == ""
    finally:
        child.kill()
        child.communicate()
