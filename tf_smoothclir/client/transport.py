"""What the two ways to a server, gRPC and REST, have in common."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

# There was no answer, and the same request may well have one the next time: worth a retry, which is
# safe, as a prediction changes nothing. A deadline that has passed is not: the server would do the
# work twice when it has too much of it already.
RETRIED = frozenset({"UNAVAILABLE"})


class Failure(Exception):
    """A request that failed.

    Attributes:
        code: Name of a gRPC status code.
        message: What the server or the connection said.
    """

    def __init__(self, code: str, message: str):
        """Keeps both."""
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


@dataclasses.dataclass(frozen=True)
class Selected:
    """A model, and which version of it.

    Attributes:
        name: Of the model.
        version: Number; 0 for the latest, or the one that the label names.
        label: Of a version; empty for none.
    """

    name: str
    version: int = 0
    label: str = ""


class Transport(abc.ABC):
    """Sends requests to one server; may be used by many threads at a time."""

    @abc.abstractmethod
    def predict(
        self, model: Selected, signature: str, inputs: Mapping[str, Sequence[bytes]]
    ) -> dict[str, np.ndarray]:
        """Asks a model.

        Args:
            model: Which.
            signature: Of the model.
            inputs: Name -> strings.

        Returns:
            Output name -> values; strings as objects of type bytes.

        Raises:
            Failure: There was no answer, or an error for one.
        """

    @abc.abstractmethod
    def status(self, model: Selected) -> list[dict]:
        """Returns `{"version", "state", "error_code", "error_message"}` of each version.

        Raises:
            Failure: There was no answer, or an error for one.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Closes the connections."""
