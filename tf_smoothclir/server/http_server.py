"""Listening on a port and answering until a signal comes: uvicorn with this package's limits."""

import asyncio
import contextlib
import errno
import os
import signal
import socket
import sys
from typing import NoReturn

import h11
import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from tf_smoothclir.utils.errors import InputError, input_error

MAX_CONNECTIONS = 128  # a request on one more is refused with 503
HEADER_SECONDS = 10.0  # from a connection, or an answer, to the end of the next headers
ANSWER_SECONDS = 60.0  # in which a client reads an answer
MAX_UNREAD_BYTES = 128 << 20  # of answers; a request that comes meanwhile is refused with 503
_GRACE_SECONDS = 5  # for requests under way when the server stops


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket with an address of its own; taken before models are loaded, which takes a while."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Without the protocol, asyncio does not switch Nagle's algorithm off: 40 ms an answer.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except (OSError, UnicodeError) as error:
        bound.close()
        if getattr(error, "errno", None) in (errno.EADDRINUSE, errno.EACCES):
            raise _port_error(port, error) from None
        reason, remedy = "the address cannot be used", "Give one of this machine; 0.0.0.0 for all"
        raise input_error(f"--host={host}", f"{reason} ({error})", remedy) from None
    return bound


def _port_error(port: int, error: OSError) -> InputError:
    reason, remedy = "the port cannot be used", "Choose another, or 0 for any free one"
    return input_error(f"--port={port}", f"{reason} ({error})", remedy)


class _Connection(H11Protocol):
    """A connection that ends where its client is slow: uvicorn waits for ever."""

    _headers_due: asyncio.TimerHandle | None = None
    _answer_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_headers()

    def data_received(self, data: bytes) -> None:
        unread = sum(
            connection.transport.get_write_buffer_size() for connection in self.connections
        )
        self.limit_concurrency = 0 if unread > MAX_UNREAD_BYTES else MAX_CONNECTIONS
        super().data_received(data)
        self._wait_for_headers()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait_for_headers()

    def _wait_for_headers(self) -> None:
        """Starts the time for headers, or stops it where they are complete."""
        answering = self.cycle is not None and not self.cycle.response_complete
        if answering and self._headers_due is not None:
            self._headers_due.cancel()
            self._headers_due = None
        elif not answering and self._headers_due is None:
            self._headers_due = self.loop.call_later(HEADER_SECONDS, self._end_idle)

    def _end_idle(self) -> None:
        self._headers_due = None
        if self._answer_due is None:
            self.transport.abort()
        else:  # the answer before is not read yet
            self._wait_for_headers()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._answer_due = self.loop.call_later(ANSWER_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._answer_due is not None:
            self._answer_due.cancel()
            self._answer_due = None

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for timer in filter(None, (self._headers_due, self._answer_due)):
            timer.cancel()

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:  # an answer has begun, or was given before the body turned out to be malformed
            self.transport.close()


def http_server(application: Starlette) -> uvicorn.Server:
    """A server with limits, which logs errors alone."""
    config = uvicorn.Config(
        application,
        http=_Connection,
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
    host, port = bound.getsockname()[:2]
    try:
        bound.listen()  # from now on, whoever reads the address may ask
    except OSError as error:  # another server was bound to the port too, and listens first
        raise _port_error(port, error) from None
    print(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}", flush=True)
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises it once all is answered
        http_server(application).run(sockets=[bound])
    # A request that is still being computed would make the process wait.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
