"""Pages of the site that are parts of files outside docs/, and where links between files lead."""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path

from markdown.extensions.toc import slugify

ROOT = Path(__file__).resolve().parents[2]
# Page -> file and its sections of level 2; "" is what stands before them. None is the whole file.
# A link to a file leads to the first of its pages.
PAGES = {
    "index.md": ("README.md", ("", "Try it", "From Python")),
    "own_data.md": ("README.md", ("Your own data",)),
    "keras.md": ("README.md", ("In your own Keras model",)),
    "figures.md": ("README.md", ("What it reaches",)),
    "training.md": ("BUILD.md", ("2. Train",)),
    "evaluation.md": ("BUILD.md", ("3. Evaluate",)),
    "publishing.md": ("BUILD.md", ("4. Export and serve",)),
    "building.md": (
        "BUILD.md",
        ("", "1. A clean machine", "5. What each dependency is for", "6. The house in short"),
    ),
    "deployment.md": ("export/serving/README.md", None),
    "benchmarks.md": ("benchmarks/README.md", None),
    "changelog.md": ("CHANGELOG.md", None),
    "security.md": ("SECURITY.md", None),
}
# Sections that the navigation of the site replaces.
LEFT_OUT = {"README.md": {"More"}}
_FENCE = re.compile(r"^ *(```|~~~)")
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def page_text(page: str) -> str:
    """Returns the Markdown of a page of `PAGES`, with links that fit the site."""
    name, wanted = PAGES[page]
    sections = sections_of((ROOT / name).read_text(encoding="utf-8"))
    if wanted is None:
        text = "".join(sections.values())
    else:
        text = "".join(sections[title] for title in wanted)
        if len(wanted) == 1:
            text = _promoted(text)
    return linked(text, name, page)


def sections_of(text: str) -> dict[str, str]:
    """Returns title -> text of the sections of level 2; "" for what stands before them."""
    found, title = {"": ""}, ""
    for line, is_code in _lines(text):
        if line.startswith("## ") and not is_code:
            title = line[3:].strip()
            found[title] = ""
        found[title] += line
    return found


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
        found = _page_of(file, fragment)
        if not found:  # a file that the site does not show
            return label
        address = os.path.relpath(found, posixpath.dirname(page) or ".") + anchor + fragment
        return f"{image}[{label}]({address})"

    return "".join(line if is_code else _LINK.sub(link, line) for line, is_code in _lines(text))


def of_papers() -> dict[str, Path]:
    """Page, picture or table of papers/ -> its file; on the site it has the same name."""
    files = (path for path in (ROOT / "papers").rglob("*.*") if "py" not in path.suffix)
    return {path.relative_to(ROOT).as_posix(): path for path in sorted(files)}


def _page_of(name: str, fragment: str) -> str:
    """Returns the page or picture of a file, relative to docs/; "" if it has none."""
    if name in of_papers():
        return name
    if name.startswith("docs/") and (ROOT / name).is_file():
        return name[len("docs/") :]
    pages = [page for page, (file, _) in PAGES.items() if file == name]
    with_anchor = (page for page in pages if fragment in _anchors(page))
    return next(with_anchor, pages[0] if pages else "")


def _anchors(page: str) -> set[str]:
    name, wanted = PAGES[page]
    sections = sections_of((ROOT / name).read_text(encoding="utf-8"))
    lines = "".join(sections[title] for title in (sections if wanted is None else wanted))
    headings = (line for line, is_code in _lines(lines) if line.startswith("#") and not is_code)
    return {slugify(heading.lstrip("# ").strip(), "-") for heading in headings}


def _promoted(text: str) -> str:
    """Returns a section with headings one level higher, the first without its number."""
    lines = (
        line[1:] if line.startswith("##") and not is_code else line
        for line, is_code in _lines(text)
    )
    return re.sub(r"^# \d+\. ", "# ", "".join(lines))


def _lines(text: str):
    """Yields each line with its ending, and whether it is code."""
    inside = False
    for line in text.splitlines(keepends=True):
        fence = bool(_FENCE.match(line))
        yield line, inside or fence
        inside ^= fence
