"""Errors of requests: gRPC status codes, and the HTTP status of each."""

from __future__ import annotations

# The translation of TensorFlow Serving's HTTP server.
HTTP_STATUS = {
    "CANCELLED": 499,
    "UNKNOWN": 500,
    "INVALID_ARGUMENT": 400,
    "DEADLINE_EXCEEDED": 504,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "PERMISSION_DENIED": 403,
    "RESOURCE_EXHAUSTED": 429,
    "FAILED_PRECONDITION": 400,
    "ABORTED": 409,
    "OUT_OF_RANGE": 400,
    "UNIMPLEMENTED": 501,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DATA_LOSS": 500,
    "UNAUTHENTICATED": 401,
}
_LONGEST = 1000  # characters; gRPC sends messages in a header


class RequestError(Exception):
    """A request that cannot be answered.

    Attributes:
        code: Name of a gRPC status code, a key of `HTTP_STATUS`.
        message: Text for the client.
    """

    def __init__(self, code: str, message: str):
        super().__init__(message)
        self.code = code
        self.message = message if len(message) <= _LONGEST else message[: _LONGEST - 1] + "…"


def invalid(message: str) -> RequestError:
    """The error for a request that no server could answer."""
    return RequestError("INVALID_ARGUMENT", message)
