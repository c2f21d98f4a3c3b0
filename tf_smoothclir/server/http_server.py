"""Listening on a port and answering until a signal comes: uvicorn with this package's limits."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from typing import NoReturn

import uvicorn
from starlette.applications import Starlette

from tf_smoothclir.utils.errors import input_error

MAX_CONNECTIONS = 128  # a request on one more is refused with 503
_GRACE_SECONDS = 5  # for requests under way when the server stops


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket with an address of its own; taken before models are loaded, which takes a while."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Without the protocol, asyncio does not switch Nagle's algorithm off: 40 ms an answer.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        reason = f"the port cannot be used ({error})"
        raise input_error(
            f"--port={port}", reason, "Choose another, or 0 for any free one"
        ) from None
    return bound


def http_server(application: Starlette) -> uvicorn.Server:
    """A server with limits, which logs errors alone."""
    config = uvicorn.Config(
        application,
        http="h11",
        loop="asyncio",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    return uvicorn.Server(config)


def serve(application: Starlette, bound: socket.socket) -> NoReturn:
    """Prints the address, answers until Ctrl-C or SIGTERM, and ends the process."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    bound.listen()  # from now on, whoever reads the address may ask
    host, port = bound.getsockname()[:2]
    print(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}", flush=True)
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises it once all is answered
        http_server(application).run(sockets=[bound])
    # A request that is still being computed would make the process wait.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
