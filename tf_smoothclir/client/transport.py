"""What the two transports, gRPC and REST, have in common."""

from __future__ import annotations

import dataclasses


class RequestFailure(Exception):
    """A request that failed.

    Attributes:
        code: Name of a gRPC status code.
        message: What the server said, or why there was no connection.
    """

    def __init__(self, code: str, message: str):
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


@dataclasses.dataclass(frozen=True)
class ModelSelection:
    """A model and its version.

    Attributes:
        name: Name of the model.
        version: Its version; 0 for the one that the label names or, without a label, the latest.
        label: Label of a version; empty for none.
    """

    name: str
    version: int = 0
    label: str = ""


@dataclasses.dataclass(frozen=True)
class VersionStatus:
    """What a server says about a version of a model.

    Attributes:
        version: The version.
        state: Its state, such as "AVAILABLE".
        error_code: "OK", or the name of the gRPC code of what went wrong.
        error_message: Empty, or what went wrong.
    """

    version: int
    state: str
    error_code: str
    error_message: str
