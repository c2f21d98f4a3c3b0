"""A report as one self-contained HTML file: no network, no script, no other file."""

from __future__ import annotations

import base64
import dataclasses
import html
import os
import re
from pathlib import Path

from tf_smoothclir.storage.files import read_json, write_json, write_text

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #fff; --faint: #f3f4f6;
  --line: #c9ccd1; --link: #005a9c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --paper: #16181b; --faint: #22252a;
  --line: #4a4f57; --link: #7cc0f5; } }
* { box-sizing: border-box; }
body { max-width: 62rem; margin: 0 auto; padding: 1rem; color: var(--ink);
  background: var(--paper); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
h1, h2 { line-height: 1.2; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
a { color: var(--link); }
pre { margin: .5rem 0; padding: .75rem; background: var(--faint); border-radius: .3rem;
  white-space: pre-wrap; overflow-wrap: anywhere; }
.table { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--line); text-align: left;
  white-space: nowrap; }
th.number, td.number { text-align: right; }
img { display: block; max-width: 100%; height: auto; margin: 1rem 0; background: #fff; }
header p { opacity: .8; }
@media (max-width: 40rem) { th, td { white-space: normal; } .number { white-space: nowrap; } }
@media print { :root { --ink: #000; --paper: #fff; --faint: #fff; --line: #999; --link: #000; }
  body { max-width: none; } nav { display: none; } pre { border: 1px solid #999; }
  .table { overflow: visible; } td, th { white-space: normal; }
  img, tr, pre { break-inside: avoid; } h2 { break-after: avoid; } }
"""
# A number, perhaps followed by an interval, a deviation, a unit or a footnote mark.
_NUMBER = re.compile(r"[-+−±]?[\d.,]+(e[-+]?\d+)?\s*(%|s|ms|min|h|k|M)?(\s*(\(.*\)|±.*))?\s*[†‡*]?")
_BOLD = re.compile(r"\*\*(.*)\*\*")
_EMPTY = ("", "-", "–", "—", "nan")


@dataclasses.dataclass(frozen=True)
class PageTable:
    """A table of texts."""

    columns: list[str]  # their names
    rows: list[list[str]]  # each with a text for every column; "**0.5**" is bold


@dataclasses.dataclass(frozen=True)
class Section:
    """A part of the report."""

    title: str  # heading
    text: str = ""  # plain text; an empty line starts a new paragraph
    # the command lines that produce what the section shows
    commands: list[str] = dataclasses.field(default_factory=list)
    tables: list[PageTable] = dataclasses.field(default_factory=list)  # what it tabulates
    # PNG files; a file's name, with spaces for underscores, becomes its alternative text
    plots: list[Path] = dataclasses.field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Section:
        """Reads a section from a JSON file, beside which its plots are."""
        values = read_json(path)
        values["tables"] = [PageTable(**table) for table in values["tables"]]
        values["plots"] = [path.parent / plot for plot in values["plots"]]
        return cls(**values)

    def write(self, path: Path) -> None:
        """Writes the section to a JSON file beside its plots."""
        values = dataclasses.asdict(self)
        values["plots"] = [plot.name for plot in self.plots]
        write_json(path, values)


def write_page(
    output_dir: str | os.PathLike,
    sections: list[Section],
    *,
    title: str = "Experiments",
    note: str = "",
) -> Path:
    """Writes report.html."""
    named = [(f"section-{number}", section) for number, section in enumerate(sections, start=1)]
    contents = "".join(
        f'<li><a href="#{place}">{_escape(section.title)}</a></li>\n' for place, section in named
    )
    parts = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n",
        f"<header>\n<h1>{_escape(title)}</h1>\n{_paragraphs(note)}</header>\n",
        f'<nav aria-label="Contents">\n<ol>\n{contents}</ol>\n</nav>\n' if sections else "",
        "<main>\n",
        *(_section(place, section) for place, section in named),
        "</main>\n</body>\n</html>\n",
    ]
    path = Path(output_dir) / "report.html"
    write_text(path, "".join(parts))
    return path


def _section(place: str, section: Section) -> str:
    parts = [
        f'<section id="{place}">\n<h2>{_escape(section.title)}</h2>\n',
        _paragraphs(section.text),
    ]
    parts += [f"<pre><code>{_escape(c)}</code></pre>\n" for c in dict.fromkeys(section.commands)]
    parts += [_table(table, section.title) for table in section.tables]
    parts += [_plot(Path(path), section.title) for path in section.plots]
    return "".join([*parts, "</section>\n"])


def _paragraphs(text: str) -> str:
    found = (part.strip() for part in re.split(r"\n\s*\n", text))
    return "".join(f"<p>{_escape(part)}</p>\n" for part in found if part)


def _table(table: PageTable, title: str) -> str:
    """A table that scrolls on its own; columns of numbers are right-aligned."""
    columns, rows = table.columns, table.rows
    for row in rows:
        if len(row) != len(columns):
            raise ValueError(f"{title}: row {row!r} must have one cell for each of {columns!r}")
    classes = [' class="number"' if _is_numeric(cells) else "" for cells in zip(*rows)]
    classes = classes or [""] * len(columns)
    head = "".join(
        f'<th scope="col"{kind}>{_escape(name)}</th>' for name, kind in zip(columns, classes)
    )
    body = "".join(
        f"<tr>{''.join(f'<td{kind}>{_cell(c)}</td>' for c, kind in zip(row, classes))}</tr>\n"
        for row in rows
    )
    # tabindex: to scroll it with the keyboard.
    return (
        f'<div class="table" role="region" tabindex="0" aria-label="Table: {_escape(title)}">\n'
        f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n</div>\n"
    )


def _cell(text: object) -> str:
    bold = _BOLD.fullmatch(str(text))
    return f"<strong>{_escape(bold[1])}</strong>" if bold else _escape(text)


def _is_numeric(cells) -> bool:
    texts = [_BOLD.sub(r"\1", str(cell)).strip() for cell in cells]
    filled = [text for text in texts if text.lower() not in _EMPTY]
    return bool(filled) and all(map(_NUMBER.fullmatch, filled))


def _plot(path: Path, title: str) -> str:
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    described = _escape(f"{title}: {path.stem.replace('_', ' ')}")
    return f'<img src="data:image/png;base64,{data}" alt="{described}">\n'


def _escape(text: object) -> str:
    return html.escape(str(text), quote=True)
