"""Paths as people write them."""

import os
from typing import Union

from tf_smoothclir.utils.errors import input_error, kind


def local_path(path: str | os.PathLike, argument: str = "path") -> str:
    """A path with `~` as the home directory; every path that a person gives goes through here."""
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        remedy = "Give a path: a string, or one of pathlib"
        raise input_error(f"{argument}={path!r}", f"it is {kind(path)}", remedy)
    expanded = os.path.expanduser(text)
    if expanded.split("/")[0] == "~":
        raise input_error(expanded, "nobody knows the home directory", "Set the variable HOME")
    try:
        os.path.abspath(expanded).encode()
    except UnicodeEncodeError:
        raise input_error(repr(expanded), "the path is not UTF-8", "Rename it") from None
    return expanded


PathText = Union[str, "os.PathLike[str]"]
