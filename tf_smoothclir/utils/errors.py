"""The one error for users' mistakes: where it is, what is wrong, what to do."""

import errno
import os
import re

from tf_smoothclir.utils.printing import visible_lines

_FULL_DISK = tuple(map(os.strerror, (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)))


# Flags, but for those after the name of a command, and those that only commands have.
_FLAG = re.compile(r"smoothclir-\S+(?: --\S+)*|(?<![\w-])--(?!plugin|noverify)(no)?([a-z]\w*)")
_NEGATED = ("full", "search_model")
_OTHER_NAMES = {"data_dir": "data", "collection": "documents", "index_dir": "index", "top_k": "k"}
_speaking = {"flags": False}


class InputError(ValueError):
    """User input that cannot be used; the message says where it is, why, and what to do.

    It names arguments. In commands it names flags, and is printed without a stack trace.
    """

    def __init__(self, message: str):
        super().__init__(message if _speaking["flags"] else _FLAG.sub(_argument, message))


def name_flags(are_named: bool = True) -> None:
    """Lets errors name flags, as commands do, or arguments of functions."""
    _speaking["flags"] = are_named


def _argument(flag: re.Match) -> str:
    negated, name = flag.groups()
    if name is None:  # of a command
        return flag[0]
    if negated and name not in _NEGATED:
        negated, name = "", negated + name
    return f"{name}=False" if negated else _OTHER_NAMES.get(name, name)


def input_error(
    where: str | os.PathLike, reason: str, remedy: str, *, line: int | None = None
) -> InputError:
    """An `InputError` whose message, `where:line: reason. Remedy.`, a terminal can show."""
    place = os.fspath(where) if line is None else f"{os.fspath(where)}:{line}"
    return InputError(visible_lines(f"{place}: {reason}. {remedy}."))


def kind(value: object) -> str:
    """What a value is, such as "an int"."""
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def is_full_disk(error: BaseException | None) -> bool:
    """Whether an error, also one of TensorFlow's, says that the disk is full."""
    return any(reason in str(error) for reason in _FULL_DISK)
