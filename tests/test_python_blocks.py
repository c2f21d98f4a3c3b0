"""Every Python block of the README and the guides runs, page by page, from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
# They need files or a server that a reader has; tests of their own run them.
ELSEWHERE = {
    "serving.md": "tests/server/test_docs.py",
    "word_vectors.md": "tests/text/test_word_vectors_recipe.py",
}


def blocks(page):
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if blocks(page) and page.name not in ELSEWHERE],
    ids=lambda page: page.name,
)
def test_the_blocks_of_a_page_run(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    names: dict = {}
    for block in blocks(page):
        exec(compile(block, page.name, "exec"), names)


@pytest.mark.parametrize(("page", "test"), ELSEWHERE.items())
def test_other_blocks_are_run_elsewhere(page, test):
    assert blocks(ROOT / "docs" / page)
    assert page in (ROOT / test).read_text(encoding="utf-8")
