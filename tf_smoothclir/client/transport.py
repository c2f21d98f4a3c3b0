"""What the two transports, gRPC and REST, have in common."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

# There was no answer, but the same request may well get one next time. An exceeded deadline is not
# retried: an overloaded server would do the work twice.
RETRIED_CODES = frozenset({"UNAVAILABLE"})


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


class Transport(abc.ABC):
    """Sends requests to one server; several threads may share it."""

    @abc.abstractmethod
    def predict(
        self, model: ModelSelection, signature: str, inputs: Mapping[str, Sequence[bytes]]
    ) -> dict[str, np.ndarray]:
        """Runs a signature of a model.

        Returns:
            Output name -> values; strings are objects of type bytes.
        """

    @abc.abstractmethod
    def status(self, model: ModelSelection) -> list[VersionStatus]:
        """The status of each version."""

    @abc.abstractmethod
    def close(self) -> None:
        """Closes the connections."""
