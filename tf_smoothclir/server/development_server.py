"""The development server: TensorFlow Serving's gRPC and REST APIs in one Python process."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping
from concurrent import futures

import grpc

from tf_smoothclir.server.grpc_service import add_services
from tf_smoothclir.server.model_registry import ModelRegistry
from tf_smoothclir.server.ports import port_taken
from tf_smoothclir.server.rest import RestServer, Route

_GRACE = 10.0  # seconds for requests under way when the server stops


class DevelopmentServer:
    """Serves models until it is stopped.

    Attributes:
        host: Address that it listens on.
        port: Port of gRPC.
        rest_api_port: Port of REST.
    """

    def __init__(
        self,
        models: ModelRegistry,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        rest_api_port: int = 0,
        grpc_threads: int = 16,
        max_bytes: int = 64 << 20,
        poll_seconds: float = 1.0,
        routes: Mapping[str, Route] | None = None,
        names: Collection[str] = (),
    ):
        """Loads the models, binds the ports and starts answering.

        Args:
            max_bytes: Largest request.
            poll_seconds: Seconds between looks for new versions.
        """
        models.start()
        self.host = host
        self._models = models
        self._poll_seconds = poll_seconds
        try:
            self._rest = RestServer(
                (host, rest_api_port), models, max_bytes=max_bytes, routes=routes, names=names
            )
        except OSError as error:
            raise port_taken("--rest_api_port", rest_api_port, error) from None
        self.rest_api_port = self._rest.server_address[1]
        self._grpc = _grpc_server(models, grpc_threads, max_bytes)
        try:
            self.port = self._grpc.add_insecure_port(f"{host}:{port}")
        except RuntimeError as error:
            self._rest.server_close()
            raise port_taken("--port", port, error) from None
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._rest.serve_forever, daemon=True),
            threading.Thread(target=self._poll, daemon=True),
        ]
        self._grpc.start()
        for thread in self._threads:
            thread.start()

    def stop(self, grace: float = _GRACE) -> None:
        """Accepts no more requests, and lets those under way finish."""
        self._stopping.set()
        stopped = self._grpc.stop(grace)
        self._rest.stop(grace)
        stopped.wait()
        for thread in self._threads:
            thread.join(grace)

    def __enter__(self) -> DevelopmentServer:
        return self

    def __exit__(self, *error) -> None:
        self.stop()

    def _poll(self) -> None:
        while not self._stopping.wait(self._poll_seconds):
            try:
                self._models.poll()
            except Exception:  # such as a directory that is deleted while it is read
                logging.exception("Looking for new versions failed; will try again")


def _grpc_server(models: ModelRegistry, threads: int, max_bytes: int) -> grpc.Server:
    server = grpc.server(
        futures.ThreadPoolExecutor(threads, thread_name_prefix="grpc"),
        options=[
            ("grpc.max_receive_message_length", max_bytes),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 0),  # two servers on one port would share the requests
        ],
    )
    add_services(server, models)
    return server
