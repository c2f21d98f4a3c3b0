"""Servers for tests: REST by the local one, gRPC by a small fake of TensorFlow Serving."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
import urllib.error
import urllib.request
from concurrent import futures

import grpc
import pytest
import tensorflow as tf
from tensorflow_serving.apis import (
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from tf_smoothclir.publishing.export_directory import MODELS, exported_versions, load_part
from tf_smoothclir.server.application import application
from tf_smoothclir.server.http_server import bound_socket, http_server
from tf_smoothclir.server.served_models import load_models


@contextlib.contextmanager
def running(app):
    """Runs the local server in a thread; yields its address."""
    bound = bound_socket("127.0.0.1", 0)
    server = http_server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    address = f"http://127.0.0.1:{bound.getsockname()[1]}"
    thread.start()
    try:
        wait_for(lambda: server.started)
        yield address
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


@contextlib.contextmanager
def local_server(export_dir, **options):
    """Runs the local server over an export directory; yields its address."""
    with running(application(load_models(export_dir), **options)) as address:
        yield address


class FakeServing(
    prediction_service_pb2_grpc.PredictionServiceServicer,
    model_service_pb2_grpc.ModelServiceServicer,
):
    """What TensorFlow Serving answers by gRPC, as far as the client asks."""

    def __init__(self, export_dir):
        self._models = {
            name: load_part(export_dir, role)
            for role, name in MODELS.items()
            if exported_versions(export_dir, role)
        }

    def Predict(self, request, context):
        model, version = self._chosen(request.model_spec, context)
        name = request.model_spec.signature_name or "serving_default"
        if name not in model.signatures:
            code = grpc.StatusCode.FAILED_PRECONDITION
            context.abort(code, f'Serving signature key "{name}" not found.')
        inputs = {key: tf.constant(tf.make_ndarray(one)) for key, one in request.inputs.items()}
        response = predict_pb2.PredictResponse()
        response.model_spec.version.value = version
        for key, value in model.signatures[name](**inputs).items():
            response.outputs[key].CopyFrom(tf.make_tensor_proto(value))
        return response

    def GetModelStatus(self, request, context):
        _, version = self._chosen(request.model_spec, context)
        response = get_model_status_pb2.GetModelStatusResponse()
        state = get_model_status_pb2.ModelVersionStatus.AVAILABLE
        response.model_version_status.add(version=version, state=state)
        return response

    def _chosen(self, spec, context):
        if spec.version_label:
            message = f"Unrecognized servable version label: {spec.version_label}"
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, message)
        model, manifest = self._models.get(spec.name, (None, None))
        if model is None or spec.version.value not in (0, manifest.version):
            message = f"Servable not found for request: {spec.name}"
            context.abort(grpc.StatusCode.NOT_FOUND, message)
        return model, manifest.version


@contextlib.contextmanager
def grpc_server(export_dir, **options):
    """Runs `FakeServing` over an export directory; yields its address."""
    with serving(FakeServing(export_dir), **options) as address:
        yield address


@contextlib.contextmanager
def serving(fake, port=0, max_bytes=-1):
    """Runs a `FakeServing`; yields its address."""
    size = ("grpc.max_receive_message_length", max_bytes)
    server = grpc.server(futures.ThreadPoolExecutor(8), options=[size, ("grpc.so_reuseport", 0)])
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(fake, server)
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(fake, server)
    port = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_for(condition, seconds=20):
    """Waits until a condition holds; fails the test if it never does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.02)
    pytest.fail(f"the condition did not hold within {seconds} s")


def rest(address, path, body=None, method=None, timeout=20):
    """`(status, answer)` of a REST request; `body` is bytes, or becomes JSON."""
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
    request = urllib.request.Request(address + path, body, method=method)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def connected(address):
    host, _, port = address.rpartition("/")[2].partition(":")
    return socket.create_connection((host, int(port)), timeout=20)


def raw(address, request):
    """The status and the body of the answer to bytes that are sent as they are."""
    with connected(address) as one:
        one.sendall(request)
        response = http.client.HTTPResponse(one)
        response.begin()
        return response.status, response.read().decode()
