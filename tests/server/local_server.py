"""The local server in a thread, one that answers what a test says, and requests to them."""

import contextlib
import http.client
import http.server
import json
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tf_smoothclir.server.application import application
from tf_smoothclir.server.http_server import bound_socket, http_server
from tf_smoothclir.server.served_models import load_models

ROOT = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def local_server(export_dir, **options):
    """Runs the local server over an export directory in a thread; yields its address."""
    bound = bound_socket("127.0.0.1", 0)
    models = load_models(export_dir, may_be_none="page" in options)
    server = http_server(application(models, **options))
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
def answering(answer):
    """A server that answers each POST with `status, content = answer(path, headers, body)`."""

    class Answering(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, content = answer(self.path, self.headers, body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            """Logs nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


@contextlib.contextmanager
def process(export_dir, *more):
    """`(process, address)` of a server that prints nothing but its address."""
    command = [sys.executable, "-m", "export.serve", f"--export_dir={export_dir}", "--port=0"]
    options = {"cwd": ROOT, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*command, *more], **options) as child:
        try:
            yield child, child.stdout.readline().strip()
        finally:
            child.kill()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_for(condition, seconds=20):
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
