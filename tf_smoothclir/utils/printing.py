"""Printing: texts, ids and names of others without control characters, JSON as UTF-8, tables.

And standard error, of this process and of what it starts, in a file.
"""

import contextlib
import csv
import io
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence

_NOT_PRINTED = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def visible(text: object) -> str:
    """A text whose control characters, and marks of direction, are shown, such as ␛."""
    # An escape sequence in a document or a file name could clear the screen, or write a command
    # into it.
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
    """Prints a JSON value in a line of UTF-8, whatever the locale is."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    line = json.dumps(value, ensure_ascii=False)
    print(_NOT_PRINTED.sub(lambda match: f"\\u{ord(match[0]):04x}", line))


def print_any_text() -> None:
    """From now on, what the locale cannot print is printed as its code, such as \\u4e09."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


@contextlib.contextmanager
def standard_error_in(path: str | os.PathLike) -> Iterator[None]:
    """Appends standard error to a file, also from C++ and from new processes."""
    sys.stderr.flush()
    kept = os.dup(2)
    with open(path, "ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table; bars in cells are escaped, control characters shown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines) + "\n"


def _cell(value: object) -> str:
    return visible(value).replace("|", "\\|")


def csv_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A CSV table, with the line ends of Unix."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


def print_table(
    header: Sequence[str], rows: Sequence[Sequence[object]], *, title: str = ""
) -> None:
    """Prints a table to standard output: drawn on a terminal, else as Markdown."""
    if not sys.stdout.isatty():
        print(f"{visible(title)}\n\n" * bool(title) + markdown_table(header, rows))
        return
    from rich import box  # loading it takes a moment
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    title = visible(title)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title or None, title_justify="left")
    for name, *cells in zip(header, *rows):
        is_number = any(map(str.isdigit, (str(cell)[:1] for cell in cells)))
        table.add_column(Text(name), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    Console(highlight=False).print(table)
