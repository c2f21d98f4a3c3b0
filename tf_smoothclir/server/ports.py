"""Ports that a server listens on."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from tf_smoothclir.utils.errors import InputError, input_error


def check_ports(host: str, ports: Mapping[str, int]) -> None:
    """Checks that ports can be used, before models are loaded, which takes a while."""
    for flag, port in ports.items():
        try:
            kind = socket.AF_INET6 if ":" in host else socket.AF_INET
            with socket.socket(kind) as tried:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                tried.bind((host, port))
        except OSError as error:
            raise port_taken(flag, port, error) from None


def port_taken(flag: str, port: int, error: Exception) -> InputError:
    """The error for a port that cannot be used."""
    return input_error(
        f"{flag}={port}",
        f"the port cannot be used ({error})",
        "Choose another port, or 0 for any free one",
    )
