"""Tables: Markdown and CSV for files; drawn on a terminal."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Sequence

from tf_smoothclir.utils.terminal import visible


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
