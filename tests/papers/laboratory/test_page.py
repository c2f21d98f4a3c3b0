"""The report page: well-formed, escaped, self-contained, and readable by a screen reader."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser

import pytest

from tf_smoothclir.papers.laboratory.page import PageTable, Section, write_page

PNG = b"\x89PNG\r\n\x1a\nany bytes"
NASTY = "<script>alert('x')</script> & \"quoted\" </pre></section>"


class Tree(HTMLParser):
    """Checks that tags balance; keeps tags with attributes, and the text by the tag it is in."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.texts = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "br", "hr", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if data.strip() and self.open:
            self.texts.append((self.open[-1], data))

    def all(self, wanted):
        return [attributes for tag, attributes in self.tags if tag == wanted]

    def text(self, wanted):
        return [data for tag, data in self.texts if tag == wanted]


@pytest.fixture
def page_of(tmp_path):
    """`page_of(sections)` writes a page; returns its text and its tree."""

    def write(sections, **options):
        path = write_page(tmp_path, sections, **options)
        assert path == tmp_path / "report.html"
        text, tree = path.read_text(encoding="utf-8"), Tree()
        tree.feed(text)
        tree.close()
        assert tree.open == []
        return text, tree

    return write


@pytest.fixture
def sections(tmp_path):
    plot = tmp_path / "scores_by_grade.png"
    plot.write_bytes(PNG)
    table = PageTable(["metric", "SOSL", "p"], [["MAP", "0.841", ""], ["x", "-1", "2%"]])
    return [
        Section("Table 2: losses", "First.\n\nSecond ε.", ["run --a", "run --b"], [table], []),
        Section("Figure 3", plots=[plot, plot]),
    ]


def test_page_is_well_formed_html5_with_working_links(page_of, sections):
    text, tree = page_of([*sections, sections[0]], title="Title", note="Today, 2 cores.")
    assert text.startswith("<!DOCTYPE html>")
    assert tree.all("html") == [{"lang": "en"}]
    assert tree.text("title") == tree.text("h1") == ["Title"]
    assert tree.text("p")[:4] == ["Today, 2 cores.", "First.", "Second ε.", "Made by "]
    assert tree.text("h2") == ["Table 2: losses", "Figure 3", "Table 2: losses", "Commands"]
    targets = [link["href"].removeprefix("#") for link in tree.all("a")]
    sections_and_commands = [*tree.all("section"), *(li for li in tree.all("li") if "id" in li)]
    ids = [part["id"] for part in sections_and_commands]
    assert list(dict.fromkeys(targets)) == ids  # each command once, however often it is named
    assert len(set(ids)) == len(ids) == 3 + 1 + 2
    assert tree.text("code") == ["run --a", "run --b"]
    wrapper = tree.all("div")[0]  # wide tables scroll on their own, also by keyboard
    assert (wrapper["class"], wrapper["tabindex"]) == ("table", "0")


def test_page_is_self_contained_and_its_plots_are_described(page_of, sections):
    page, tree = page_of(sections)
    for tag, attributes in tree.tags:
        assert tag not in ("script", "link", "iframe", "object")
        for name in {"src", "href", "srcset", "data", "style"} & set(attributes):
            assert attributes[name].startswith(("data:", "#"))
    assert not re.search(r"https?:|url\(|@import", page)
    image, _ = tree.all("img")
    assert base64.b64decode(image["src"].removeprefix("data:image/png;base64,")) == PNG
    assert image["alt"] == "Figure 3: scores by grade"


def test_everything_is_escaped(page_of, tmp_path):
    evil = tmp_path / "a<b&'c'.png"
    evil.write_bytes(PNG)
    table = PageTable([NASTY], [[NASTY]])
    _, tree = page_of([Section(NASTY, NASTY, [NASTY], [table], [evil])], title=NASTY, note=NASTY)
    assert not tree.all("script")
    for tag, times in {"h1": 1, "code": 1, "th": 1, "td": 1}.items():
        assert tree.text(tag) == [NASTY] * times, tag
    assert tree.text("h2") == [NASTY, "Commands"]
    assert tree.text("a") == [NASTY, "Commands", "command 1"]
    assert tree.text("p") == [NASTY, NASTY, "Made by ", "."]
    assert tree.all("img")[0]["alt"] == f"{NASTY}: a<b&'c'"
    assert tree.all("div")[0]["aria-label"] == f"Table: {NASTY}"


@pytest.mark.parametrize(
    ("cells", "right"),
    [
        (["0.841", "-1.2", "+3", "", "—", "nan"], True),
        (["1,234", "5e-06", "12.5%", "7 ms", "0.438 (0.431 to 0.445) †", "**0.5**"], True),
        (["", "—"], False),
        (["0.2, 0.7", "2/ε", "4"], False),
        (["3PartL2", "1"], False),
    ],
)
def test_columns_of_numbers_are_aligned_right(cells, right, page_of):
    _, tree = page_of([Section("t", tables=[PageTable(["x"], [[cell] for cell in cells])])])
    expected = "number" if right else None
    assert [cell.get("class") for cell in tree.all("td")] == [expected] * len(cells)
    assert tree.all("th")[0].get("class") == expected
    assert tree.text("strong") == [cell.strip("*") for cell in cells if "**" in cell]


def test_a_row_of_the_wrong_length_is_an_error_and_leaves_no_page(tmp_path):
    for row in (["1"], ["1", "2", "3"]):
        table = PageTable(["a", "b"], [["1", "2"], row])
        with pytest.raises(ValueError, match=r"Table 9: row .* must have one cell for each"):
            write_page(tmp_path, [Section("Table 9", tables=[table])])
        assert list(tmp_path.iterdir()) == []
