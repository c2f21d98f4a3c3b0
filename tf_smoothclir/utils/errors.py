"""The one error for a user's mistake: where it is, what is wrong, what to do."""

from __future__ import annotations

import os


class InputError(ValueError):
    """Something the user gave cannot be used; the message says where, why, and the remedy.

    The command-line mains print it without a stack trace and exit non-zero.
    """


def input_error(
    where: str | os.PathLike, reason: str, remedy: str, *, line: int | None = None
) -> InputError:
    """Returns an `InputError` that reads `file:line: reason. remedy.`

    Args:
        where: File, directory, flag or record that holds the mistake.
        reason: What is wrong, with the offending value; no full stop.
        remedy: What the user can do about it; no full stop.
        line: Line number in the file, from 1, where there is one.
    """
    place = os.fspath(where) if line is None else f"{os.fspath(where)}:{line}"
    return InputError(f"{place}: {reason}. {remedy}.")
