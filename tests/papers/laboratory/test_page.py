"""The report page: well-formed, escaped, self-contained, and readable by a screen reader."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser

import pytest

from tf_smoothclir.papers.laboratory.page import PageTable, Section, write_page

VOID = {"meta", "img", "br", "hr", "link"}
PNG = b"\x89PNG\r\n\x1a\nany bytes"
NASTY = "<script>alert('x')</script> & \"quoted\" </pre></section>"


class Tree(HTMLParser):
    """Checks that tags balance; keeps tags with attributes, and the text by the tag it is in."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.texts, self.doctypes = [], [], [], []

    def handle_decl(self, decl):
        self.doctypes.append(decl)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if data.strip():
            self.texts.append((self.open[-1], data))

    def all(self, wanted):
        return [attributes for tag, attributes in self.tags if tag == wanted]

    def text(self, wanted):
        return [data for tag, data in self.texts if tag == wanted]


def parse(path):
    tree = Tree()
    tree.feed(path.read_text(encoding="utf-8"))
    tree.close()
    assert tree.open == []
    return tree


@pytest.fixture
def plot(tmp_path):
    (tmp_path / "scores_by_grade.png").write_bytes(PNG)
    return tmp_path / "scores_by_grade.png"


@pytest.fixture
def sections(plot):
    table = PageTable(["metric", "SOSL", "p"], [["MAP", "0.841", ""], ["x", "-1", "2%"]])
    return [
        Section("Table 2: losses", "First.\n\nSecond ε.", ["run --a", "run --b"], [table], []),
        Section("Figure 3", plots=[plot, plot]),
    ]


def test_page_is_well_formed_html5_with_working_links(tmp_path, sections):
    path = write_page(tmp_path, sections, title="Title", note="Today, 2 cores.")
    assert path == tmp_path / "report.html"
    tree = parse(path)
    assert tree.doctypes == ["DOCTYPE html"]
    assert tree.all("html") == [{"lang": "en"}]
    assert tree.text("title") == tree.text("h1") == ["Title"]
    assert tree.text("p")[:4] == ["Today, 2 cores.", "First.", "Second ε.", "Made by "]
    assert tree.text("h2") == ["Table 2: losses", "Figure 3", "Commands"]
    assert tree.text("a") == [*tree.text("h2"), "command 1", "command 2"]
    targets = [link["href"].removeprefix("#") for link in tree.all("a")]
    sections_and_commands = [*tree.all("section"), *(li for li in tree.all("li") if "id" in li)]
    assert targets == [part["id"] for part in sections_and_commands]
    assert tree.text("code") == ["run --a", "run --b"]
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in tree.all(
        "meta"
    )


def test_ids_are_unique_and_each_command_is_said_once(tmp_path, sections):
    page = write_page(tmp_path, [*sections, *sections]).read_text(encoding="utf-8")
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids)) == 4 + 1 + 2  # sections, the list of commands, commands
    assert page.count("run --a") == 1


def test_page_is_self_contained(tmp_path, sections):
    path = write_page(tmp_path, sections)
    tree = parse(path)
    assert not {"script", "link", "iframe", "object"} & {tag for tag, _ in tree.tags}
    for _, attributes in tree.tags:
        for name in {"src", "href", "srcset", "data", "style"} & set(attributes):
            assert attributes[name].startswith(("data:", "#"))
    page = path.read_text(encoding="utf-8")
    assert not re.search(r"https?:|url\(|@import", page)


def test_plots_are_inlined_and_described(tmp_path, sections):
    images = parse(write_page(tmp_path, sections)).all("img")
    assert len(images) == 2
    prefix = "data:image/png;base64,"
    assert images[0]["src"].startswith(prefix)
    assert base64.b64decode(images[0]["src"][len(prefix) :]) == PNG
    assert images[0]["alt"] == "Figure 3: scores by grade"


def test_everything_is_escaped(tmp_path, plot):
    evil = plot.with_name("a<b&'c'.png")
    evil.write_bytes(plot.read_bytes())
    table = PageTable([NASTY], [[NASTY]])
    sections = [Section(NASTY, NASTY, [NASTY], [table], [evil])]
    tree = parse(write_page(tmp_path, sections, title=NASTY, note=NASTY))
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
        (["0.841", "-1.2", "+3"], True),
        (["1,234", "5e-06", "12.5%", "3 s", "7 ms", "113k"], True),
        (["0.438 (0.431 to 0.445)", "0.438 (0.431 to 0.445) †", "0.4 ± 0.1"], True),
        (["0.5", "", "—", "nan"], True),
        (["", "—"], False),
        (["2/ε", "4"], False),
        (["0.2, 0.7", "SOSL"], False),
        (["3PartL2", "1"], False),
        ([], False),
    ],
)
def test_columns_of_numbers_are_aligned_right(cells, right, tmp_path):
    table = PageTable(["x"], [[cell] for cell in cells])
    tree = parse(write_page(tmp_path, [Section("t", tables=[table])]))
    expected = "number" if right else None
    assert [cell.get("class") for cell in tree.all("td")] == [expected] * len(cells)
    assert tree.all("th")[0].get("class") == expected


def test_bold_cells_are_bold_and_still_numbers(tmp_path):
    table = PageTable(["system", "NDCG@5"], [["a<b", "**0.5 †**"], ["**c&d**", "0.4"]])
    text = write_page(tmp_path, [Section("T", tables=[table])]).read_text(encoding="utf-8")
    assert '<td class="number"><strong>0.5 †</strong></td>' in text
    assert "<td><strong>c&amp;d</strong></td>" in text
    assert "**" not in text


def test_wide_tables_scroll_on_their_own_also_by_keyboard(tmp_path, sections):
    path = write_page(tmp_path, sections)
    (wrapper,) = parse(path).all("div")
    assert wrapper["class"] == "table"
    assert wrapper["tabindex"] == "0"
    assert ".table { overflow-x: auto" in path.read_text(encoding="utf-8")


def test_page_has_styles_for_dark_screens_and_for_print(tmp_path, sections):
    page = write_page(tmp_path, sections).read_text(encoding="utf-8")
    assert "@media (prefers-color-scheme: dark)" in page
    assert "@media print" in page


def test_a_page_may_have_no_sections(tmp_path):
    tree = parse(write_page(tmp_path, []))
    assert tree.text("h1") == ["Experiments"]
    assert not tree.all("nav")


@pytest.mark.parametrize("row", [[], ["1"], ["1", "2", "3"]])
def test_a_row_of_the_wrong_length_is_an_error_and_leaves_no_page(row, tmp_path):
    table = PageTable(["a", "b"], [["1", "2"], row])
    with pytest.raises(ValueError, match=r"Table 9: row .* must have one cell for each"):
        write_page(tmp_path, [Section("Table 9", tables=[table])])
    assert list(tmp_path.iterdir()) == []


def test_missing_plot_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_page(tmp_path, [Section("x", plots=[tmp_path / "none.png"])])
