"""The site is built from docs/, README.md and the docstrings without a warning, and is complete."""

from __future__ import annotations

import html.parser
import os
import re
import subprocess
import sys
from pathlib import Path

import command_pages  # of docs/site
import pytest
import sections

import tf_smoothclir

ROOT = Path(__file__).resolve().parent.parent
FLAGS = {
    "search": {"export_dir", "query", "top_k", "explain"},
    "train": {"preset", "thresholds", "retriever", "output_dir"},
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    for name in ("mkdocs", "material", "mkdocstrings"):
        pytest.importorskip(name, reason="the site needs pip install '.[docs]'")
    directory = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict"]
    done = subprocess.run(
        [*command, "--site-dir", directory],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return directory


class _Loaded(html.parser.HTMLParser):
    """Collects what a browser loads for a page without being asked, and the ids of the page."""

    def __init__(self, text):
        super().__init__()
        self.loaded, self.ids = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.ids.add(values.get("id"))
        if tag == "link" and values.get("rel") not in ("canonical", "next", "prev"):
            self.loaded.append(values["href"])
        if tag in ("script", "img", "iframe", "source") and values.get("src"):
            self.loaded.append(values["src"])


@pytest.mark.slow
def test_no_page_loads_anything_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    loaded = {url for page in pages for url in _Loaded(page.read_text(encoding="utf-8")).loaded}
    assert any(url.endswith(".css") for url in loaded)
    assert any(url.endswith(".js") for url in loaded)
    assert [url for url in loaded if re.match(r"(https?:)?//", url)] == []
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", styles)


@pytest.mark.slow
def test_the_reference_has_every_public_name(site):
    ids = set()
    for page in (site / "reference").glob("*.html"):
        ids |= _Loaded(page.read_text(encoding="utf-8")).ids
    public = {f"tf_smoothclir.{name}" for name in tf_smoothclir.__all__} - {"tf_smoothclir.metrics"}
    assert public <= ids
    assert {"tf_smoothclir.api.metrics.ndcg", "tf_smoothclir.Model.search"} <= ids


@pytest.mark.slow
def test_each_command_has_a_page_with_its_flags(site):
    for name in command_pages.commands():
        page = _Loaded((site / command_pages.page_of(name)).with_suffix(".html").read_text("utf-8"))
        assert "verbosity" not in page.ids  # the flags of libraries are not the command's
        assert FLAGS.get(name, set()) <= page.ids


def test_every_section_of_the_readme_is_on_a_page():
    for file in ("README.md", "BUILD.md"):
        shown = {
            title for name, wanted in sections.PAGES.values() if name == file for title in wanted
        }
        there = set(sections.sections_of((ROOT / file).read_text(encoding="utf-8")))
        assert there - shown == sections.LEFT_OUT.get(file, set()), file


def test_links_between_files_lead_to_files():
    """On the site, a link to what is not there would be its label alone."""
    folders = ("docs", "papers", "benchmarks", "export")
    pages = [page for folder in folders for page in (ROOT / folder).rglob("*.md")]
    missing = []
    for page in [*ROOT.glob("*.md"), *pages]:
        for target in re.findall(r"\]\(([^)#\s:]+)[)#]", page.read_text(encoding="utf-8")):
            made = os.path.relpath(page.parent / target, ROOT / "docs")
            is_made = made in sections.PAGES or made.startswith("commands/")
            if not is_made and not (page.parent / target).exists():
                missing.append(f"{page.relative_to(ROOT)}: {target}")
    assert missing == []


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("[a](docs/python.md)", "[a](python.md)"),
        ("[a](BUILD.md)", "[a](training.md)"),
        ("[a](LICENSE)", "a"),  # not on the site
        ("[a](https://example.org/b)", "[a](https://example.org/b)"),
        ("[a](#here)", "[a](#here)"),
        ("```\n[a](LICENSE)\n```", "```\n[a](LICENSE)\n```"),  # code stays
        ("[a](benchmarks/README.md#rivals)", "[a](benchmarks.md#rivals)"),
    ],
)
def test_links_lead_to_pages_of_the_site(link, expected):
    assert sections.linked(link, "README.md", "index.md") == expected


def test_a_link_with_a_heading_leads_to_the_page_that_has_it():
    page = sections.linked("[a](README.md#what-it-reaches)", "BUILD.md", "commands/x.md")
    assert page == "[a](../figures.md#what-it-reaches)"
