"""Pages of the site that are files outside docs/, and where links between files lead."""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Page -> file.
PAGES = {
    "index.md": "README.md",
    "building.md": "BUILD.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "security.md": "SECURITY.md",
    "operations.md": "export/serving/README.md",
    "benchmarks.md": "benchmarks/README.md",
    "quality.md": "benchmarks/quality.md",
}
_FENCE = re.compile(r"^ *(```|~~~)")
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def page_text(page: str) -> str:
    """Returns the Markdown of a page of `PAGES`, with links that fit the site."""
    name = PAGES[page]
    return linked((ROOT / name).read_text(encoding="utf-8"), name, page)


def linked(text: str, name: str, page: str) -> str:
    """Returns text with relative links that lead to pages of the site.

    Args:
        text: Markdown.
        name: The file that it is from, relative to the root.
        page: Where it will be, relative to docs/.
    """

    def link(match: re.Match[str]) -> str:
        image, label, target = match.groups()
        path, anchor, fragment = target.partition("#")
        if not path or "://" in path or path.startswith("mailto:"):
            return match[0]
        file = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
        of_site = _page_of(file)
        if not of_site:  # a file that the site does not show
            return label
        address = os.path.relpath(of_site, posixpath.dirname(page) or ".") + anchor + fragment
        return f"{image}[{label}]({address})"

    return "".join(line if is_code else _LINK.sub(link, line) for line, is_code in lines(text))


def of_papers() -> dict[str, Path]:
    """Page, picture or table of papers/ -> its file; on the site it has the same name."""
    files = (path for path in (ROOT / "papers").rglob("*.*") if "py" not in path.suffix)
    return {path.relative_to(ROOT).as_posix(): path for path in sorted(files)}


def lines(text: str):
    """Yields each line with its ending, and whether it is code."""
    inside = False
    for line in text.splitlines(keepends=True):
        fence = bool(_FENCE.match(line))
        yield line, inside or fence
        inside ^= fence


def _page_of(name: str) -> str:
    """Returns the page or picture of a file, relative to docs/; "" if it has none."""
    if name in of_papers():
        return name
    page = name.removeprefix("docs/")
    if page != name and ((ROOT / name).is_file() or page.startswith("commands/")):
        return page
    return next((page for page, file in PAGES.items() if file == name), "")
