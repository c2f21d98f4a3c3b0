"""The one error for users' mistakes: where it is, what is wrong, what to do."""

from __future__ import annotations

import errno
import os

from tf_smoothclir.utils.printing import visible_lines

_FULL_DISK = tuple(map(os.strerror, (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)))


class InputError(ValueError):
    """User input that cannot be used; the message says where it is, why, and what to do.

    Commands print it without a stack trace and exit with a non-zero code.
    """


def input_error(
    where: str | os.PathLike, reason: str, remedy: str, *, line: int | None = None
) -> InputError:
    """An `InputError` whose message, `where:line: reason. Remedy.`, a terminal can show."""
    place = os.fspath(where) if line is None else f"{os.fspath(where)}:{line}"
    return InputError(visible_lines(f"{place}: {reason}. {remedy}."))


def is_full_disk(error: BaseException | None) -> bool:
    """Whether an error, also one of TensorFlow's, says that the disk is full."""
    return any(reason in str(error) for reason in _FULL_DISK)
