"""Tables: Markdown, CSV and LaTeX for files; drawn on a terminal."""

from __future__ import annotations

import csv
import io
import re
import shutil
import sys
from collections.abc import Iterable, Sequence

from tf_smoothclir.utils.terminal import visible

_BETWEEN_COLUMNS = 3
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "θ": r"$\theta$",
    "ε": r"$\varepsilon$",
    "†": r"\textsuperscript{$\dagger$}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


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


def latex_table(
    header: Sequence[str], groups: Iterable[Iterable[Sequence[str]]], columns: str
) -> str:
    """A LaTeX tabular (booktabs) with a rule before each group of rows, whose cells are LaTeX."""
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
    lines.append(_latex_line(map(latex_escape, header)))
    for rows in groups:
        lines += [r"\midrule", *map(_latex_line, rows)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _latex_line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def latex_escape(text: object) -> str:
    """Escapes a text so that LaTeX shows it literally."""
    return re.sub(r"[\\~^&%$#_{}θε†]", lambda match: _LATEX[match[0]], str(text))


def print_table(
    header: Sequence[str], rows: Sequence[Sequence[object]], *, title: str = "", keys: int = 1
) -> None:
    """Prints a table to standard output.

    On a terminal it is drawn, and one that is too wide becomes several, one below the other. A file
    or another program gets Markdown.
    """
    if not sys.stdout.isatty():
        print(f"{visible(title)}\n\n" * bool(title) + markdown_table(header, rows))
        return
    width = shutil.get_terminal_size().columns
    title, texts = visible(title), [list(map(visible, row)) for row in rows]
    for columns in _parts(header, texts, width, keys):
        _draw([header[c] for c in columns], [[row[c] for c in columns] for row in texts], title)


def _parts(header, rows, width: int, keys: int) -> list[list[int]]:
    """The columns of each part, as many as fit next to the first `keys` ones."""
    widths = [max(map(len, column)) + _BETWEEN_COLUMNS for column in zip(header, *rows)]
    first = list(range(min(keys, len(header))))
    parts = [list(first)]
    for column in range(len(first), len(header)):
        needed = sum(widths[c] for c in (*parts[-1], column)) - 1
        if len(parts[-1]) > len(first) and needed > width:
            parts.append(list(first))
        parts[-1].append(column)
    return parts


def _draw(header: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
    from rich import box  # loading it takes a moment
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title or None, title_justify="left")
    for name, *cells in zip(header, *rows):
        is_number = any(cell[:1].isdigit() for cell in cells) and all(
            cell[:1].isdigit() or cell[:1] in "+-–" or cell == "none" for cell in cells
        )
        table.add_column(Text(name), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    Console(highlight=False).print(table)
