"""What the readers of embedding files have in common: records, limits and errors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tf_smoothclir.utils.errors import InputError, input_error

MAX_TOKEN_BYTES = 1 << 14  # longer ones are damage, not text


class Record(NamedTuple):
    """One token of a file and its vector.

    Attributes:
        token: The bytes of the token.
        values: dim numbers: an array, or the bytes of each.
    """

    token: bytes
    values: np.ndarray | list[bytes]


def damaged(path, number: int, unit: str, what: str) -> InputError:
    """The error about a "line" or "record", whose number counts from 1."""
    if unit == "line":
        return input_error(path, what, "Correct the line, or download the file again", line=number)
    return input_error(path, f"{unit} {number} {what}", "Download or convert the file again")


def wrong_dim(path, found: int, dim: int, *, line: int | None = None) -> InputError:
    """The error about a file whose vectors are not as long as the model's."""
    reason = f"the embeddings have dimension {found}, but the model has {dim}"
    return input_error(path, reason, f"Give --dim={found}, or another file", line=line)
