"""Servers for tests: the local one in this process, and TensorFlow Serving if installed."""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from typing import NamedTuple

import grpc
import pytest
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2

from tf_smoothclir.server.development_server import DevelopmentServer
from tf_smoothclir.server.model_config import MODELS, configs_of_export
from tf_smoothclir.server.model_registry import ModelRegistry

LOCAL, TF_SERVING = "smoothclir-serve", "tensorflow_model_server"
SERVERS = (LOCAL, TF_SERVING)


class Addresses(NamedTuple):
    """Where a server listens on this machine."""

    port: int
    rest_api_port: int

    @property
    def grpc(self):
        return f"127.0.0.1:{self.port}"

    @property
    def rest(self):
        return f"http://127.0.0.1:{self.rest_api_port}"


@contextlib.contextmanager
def local_server(export_dir, **options):
    """Runs the local server over an export directory."""
    with DevelopmentServer(
        ModelRegistry(lambda: configs_of_export(export_dir)), **options
    ) as server:
        yield Addresses(server.port, server.rest_api_port)


@contextlib.contextmanager
def any_server(kind, export_dir, directory):
    """Runs a server of `SERVERS` over an export directory; skips where it is not installed."""
    if kind == LOCAL:
        with local_server(export_dir) as addresses:
            yield addresses
        return
    if shutil.which(TF_SERVING) is None:
        pytest.skip(f"no {TF_SERVING} on the PATH: only the local server is tested")
    config = directory / "models.config"
    config.write_text(
        "model_config_list {"
        + " ".join(
            f'config {{ name: "{name}" base_path: "{export_dir / name}"'
            ' model_platform: "tensorflow" }'
            for name in MODELS
            if (export_dir / name).is_dir()
        )
        + "}"
    )
    addresses = Addresses(free_port(), free_port())
    command = [
        TF_SERVING,
        f"--port={addresses.port}",
        f"--rest_api_port={addresses.rest_api_port}",
        f"--model_config_file={config}",
    ]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: rest(addresses, "/v1/models/search")[0] == 200, 60)
        yield addresses
    finally:
        child.terminate()
        child.wait()


def free_port():
    """A free port."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_for(condition, seconds=20):
    """Waits until a condition holds; fails the test if it never does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            if condition():
                return
        time.sleep(0.02)
    pytest.fail(f"the condition did not hold within {seconds} s")


def rest(addresses, path, body=None, method=None):
    """`(status, answer)` of a REST request; `body` is bytes, or becomes JSON."""
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
    request = urllib.request.Request(addresses.rest + path, body, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def raw(addresses, request):
    """The first line and the JSON of the answer to bytes that are sent as they are."""
    with socket.create_connection(("127.0.0.1", addresses.rest_api_port), timeout=20) as one:
        one.sendall(request)
        response = http.client.HTTPResponse(one)
        response.begin()
        return response.status, json.loads(response.read())


def predict_request(model, inputs, signature="", **spec):
    """A PredictRequest; each input is a proto, or values for `tf.make_tensor_proto`."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name = model
    request.model_spec.signature_name = signature
    if "version" in spec:
        request.model_spec.version.value = spec["version"]
    if "label" in spec:
        request.model_spec.version_label = spec["label"]
    for name, value in inputs.items():
        if not hasattr(value, "SerializeToString"):
            value = tf.make_tensor_proto(value)
        request.inputs[name].CopyFrom(value)
    return request


def code_of(call, *arguments):
    """Name of the gRPC code that a call fails with, and its message."""
    with pytest.raises(grpc.RpcError) as caught:
        call(*arguments, timeout=20)
    return caught.value.code().name, caught.value.details()
