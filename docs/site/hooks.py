"""Hooks of MkDocs: the pages that are not files of docs/."""

from __future__ import annotations

import command_pages
import sections
from mkdocs.structure.files import File

_RESULTS = "results"


def on_config(config):
    """Completes the navigation: each command, each page of results."""
    names = command_pages.commands()
    for entry in config["nav"]:
        if "Commands" in entry:
            pages = [{f"smoothclir-{name}": command_pages.page_of(name)} for name in names]
            entry["Commands"] = ["commands/index.md", *pages]
        if "Results" in entry:
            own = ["figures.md", "results/README.md", "results/yu2020.md"]
            entry["Results"] = [*own, *_experiments()]
    return config


def on_files(files, config):
    """Adds the pages that are made here."""
    made = {page: sections.page_text(page) for page in sections.PAGES}
    for page, text in {**made, **command_pages.pages()}.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown, page, config, files):
    """Lets links of guides to files outside docs/ lead to their pages."""
    path = page.file.src_uri
    if page.file.generated_by:
        return markdown
    return sections.linked(markdown, f"docs/{path}", path)


def _experiments():
    """Returns experiment -> its pages, one for each data set."""
    found = []
    for directory in sorted((sections.ROOT / "docs" / _RESULTS).iterdir()):
        pages = sorted(directory.glob("*.md")) if directory.is_dir() else []
        if pages:
            paths = [path.relative_to(sections.ROOT / "docs").as_posix() for path in pages]
            found.append({directory.name: paths})
    return found
