"""Paths as people write them."""

import os
from typing import Union

from tf_smoothclir.utils.errors import input_error


def local_path(path: str | os.PathLike) -> str:
    """A path with `~` as the home directory; every path that a person gives goes through here."""
    expanded = os.path.expanduser(os.fspath(path))
    if expanded.split("/")[0] == "~":
        raise input_error(expanded, "nobody knows the home directory", "Set the variable HOME")
    try:
        os.path.abspath(expanded).encode()
    except UnicodeEncodeError:
        raise input_error(repr(expanded), "the path is not UTF-8", "Rename it") from None
    return expanded


PathText = Union[str, "os.PathLike[str]"]
