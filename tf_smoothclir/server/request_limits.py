"""What a request over HTTP may take: names it may call the server, time, numbers, depth."""

from __future__ import annotations

import io
import ipaddress
import re
import socket
import time
from collections.abc import Collection, Sequence
from email.message import Message

import numpy as np

from tf_smoothclir.server.request_error import RequestError, invalid

MAX_INSTANCES = 10_000  # a request
MAX_VALUES = 4_000_000  # in the JSON of a request; each takes up to about 100 bytes of memory
MAX_DEPTH = 100  # of lists and objects in JSON
MAX_TEXT_BYTES = 1 << 22  # of one text
MAX_NUMBERS = 1 << 18  # in an input of numbers, such as the ids of tokens, each with its vector
PIECE_ROWS, PIECE_BYTES = 256, 1 << 20  # of the texts of a request that are computed at once
MAX_LENGTH_DIGITS = 18
_MARKS = re.compile(rb'\\.|["\[\]{}]', re.DOTALL)


def host_is_served(header: str | None, names: Collection[str] = ()) -> bool:
    """Whether a Host header names this server, and not a domain that was pointed at it.

    A web page of another domain could otherwise have a browser ask a server that only its own
    machine reaches (DNS rebinding). That takes a domain with a dot: addresses, names without a dot
    (localhost, those of containers) and the name of the machine are safe.
    """
    if header is None:
        return True
    host = re.sub(r":\d*$", "", header.strip()).strip("[]").rstrip(".").lower()
    if ("." not in host and ":" not in host) or host.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(host)
        return True
    except ValueError:
        return host in {name.lower() for name in (*names, socket.gethostname(), socket.getfqdn())}


def header_mistake(headers: Message) -> str:
    """What makes the end of a request doubtful; empty if nothing does.

    Two servers that find different ends let one client's bytes pass for another's request.
    """
    if headers.defects or headers.get_payload():
        return "A header is malformed, such as by a space before its colon"
    lengths = headers.get_all("Content-Length", ["0"])
    if len(lengths) > 1:
        return "There are several Content-Length headers"
    (length,) = lengths
    if not (length.isascii() and length.isdecimal() and len(length) <= MAX_LENGTH_DIGITS):
        return f"Content-Length is {length[:40]!r}, not up to {MAX_LENGTH_DIGITS} digits"
    return ""


def check_json(body: bytes) -> None:
    """Checks, before it is parsed, that a JSON text is neither too deep nor of too many values."""
    values = body.count(b",") + body.count(b"[") + body.count(b"{")
    if values > MAX_VALUES:
        raise invalid(f"The request has over {MAX_VALUES} values; send several requests")
    depth, in_string = 0, False
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return
    for match in _MARKS.finditer(body):
        mark = match[0]
        if mark == b'"':
            in_string = not in_string
        elif not in_string and len(mark) == 1:
            depth += 1 if mark in b"[{" else -1
            if depth > MAX_DEPTH:
                raise invalid(f"JSON Parse error: nested more than {MAX_DEPTH} deep")


def check_values(name: str, values: np.ndarray) -> None:
    """Checks that an input takes no more memory than one request may, however it was sent.

    Args:
        values: Strings, as objects of type bytes, or numbers.
    """
    if values.dtype != object:
        if values.size > MAX_NUMBERS:
            raise invalid(f"Input {name!r} has over {MAX_NUMBERS} numbers; send several requests")
        return
    if values.size > MAX_INSTANCES:
        raise too_many_instances()
    if any(len(value) > MAX_TEXT_BYTES for value in values.flat):
        raise invalid(f"Input {name!r} has a text of over {MAX_TEXT_BYTES} bytes; cut it")


def too_many_instances() -> RequestError:
    """The error of a request with more than `MAX_INSTANCES`."""
    return invalid(f"The request has over {MAX_INSTANCES} instances; send several requests")


def pieces(texts: Sequence[np.ndarray]) -> list[slice]:
    """Slices of rows, of which one at a time fits into the memory that a request may take.

    Args:
        texts: The inputs, each `[rows]` of type bytes.
    """
    begins, size = [0], 0
    for row, parts in enumerate(zip(*texts)):
        size += sum(map(len, parts))
        if row - begins[-1] == PIECE_ROWS or (size > PIECE_BYTES and row > begins[-1]):
            begins.append(row)
            size = sum(map(len, parts))
    return [slice(*ends) for ends in zip(begins, [*begins[1:], None])]


class DeadlineReader(io.RawIOBase):
    """Reads a socket; a request must be complete some seconds after its first byte."""

    def __init__(self, connection: socket.socket, silence: float, total: float):
        self._connection, self._silence, self._total = connection, silence, total
        self._deadline: float | None = None

    def begin(self) -> None:
        """Waits for the next request."""
        self._deadline = None

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer) -> int:
        """Reads what there is; raises `TimeoutError` after the deadline."""
        wait = self._silence
        if self._deadline is not None:
            wait = min(wait, self._deadline - time.monotonic())
        if wait <= 0:
            raise TimeoutError("the request took too long")
        self._connection.settimeout(wait)
        size = self._connection.recv_into(buffer)
        self._connection.settimeout(self._silence)
        if self._deadline is None:
            self._deadline = time.monotonic() + self._total
        return size
