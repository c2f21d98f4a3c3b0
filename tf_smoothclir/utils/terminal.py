"""Printing what others wrote: texts, ids and names without control characters, JSON as UTF-8."""

from __future__ import annotations

import io
import json
import re
import sys

_NOT_PRINTED = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def visible(text: object) -> str:
    """A text whose control characters are shown, such as ␛, instead of sent to a terminal.

    An escape sequence in a document or a file name could clear the screen, or write a command into
    it. The marks that turn the direction of what follows are shown as their codes.
    """
    return _NOT_PRINTED.sub(_shown, str(text))


def _shown(match: re.Match) -> str:
    code = ord(match[0])
    if match[0] in "\t\n\r":
        return " "
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"\\u{code:04x}"


def visible_lines(text: object) -> str:
    """The same for a text of several lines, which stay lines."""
    return "\n".join(map(visible, str(text).split("\n")))


def print_json(value: object) -> None:
    """Prints a JSON value in a line of UTF-8, whatever the locale is; control characters as \\u...

    They stand in strings alone, where JSON has the same escapes.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    line = json.dumps(value, ensure_ascii=False)
    print(_NOT_PRINTED.sub(lambda match: f"\\u{ord(match[0]):04x}", line))


def print_any_text() -> None:
    """From now on, what the locale cannot print is printed as its code, such as \\u4e09."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
