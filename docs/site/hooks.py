"""Hooks of MkDocs: the pages that are not files of docs/."""

from __future__ import annotations

import command_pages
import site_links
from mkdocs.structure.files import File

_OF_PAPERS = [f"papers/{name}/README.md" for name in ("liu2020", "yu2020", "li2018")]


def on_config(config):
    """Completes the navigation: each command, each page of papers/."""
    names = command_pages.commands()
    for entry in config["nav"]:
        if "Commands" in entry:
            pages = [{f"smoothclir-{name}": command_pages.page_of(name)} for name in names]
            entry["Commands"] = ["commands/index.md", *pages]
        if "Papers" in entry:
            entry["Papers"] = [*_OF_PAPERS, *_experiments()]
    return config


def on_files(files, config):
    """Adds the pages that are made here."""
    made = {page: site_links.page_text(page) for page in site_links.PAGES}
    for page, text in {**made, **command_pages.pages()}.items():
        files.append(File.generated(config, page, content=text))
    for name, path in site_links.of_papers().items():
        if path.suffix == ".md":
            text = site_links.linked(path.read_text(encoding="utf-8"), name, name)
            files.append(File.generated(config, name, content=text))
        else:
            files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown, page, config, files):
    """Lets links of guides to files outside docs/ lead to their pages."""
    path = page.file.src_uri
    if page.file.generated_by:
        return markdown
    return site_links.linked(markdown, f"docs/{path}", path)


def _experiments():
    """Returns experiment -> its pages, one for each data set."""
    found = []
    for directory in sorted((site_links.ROOT / "papers" / "results").iterdir()):
        pages = [path.relative_to(site_links.ROOT).as_posix() for path in directory.glob("*.md")]
        if pages:
            found.append({directory.name: sorted(pages)})
    return found
