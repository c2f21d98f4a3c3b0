"""The site is built without a warning and is complete; what its pages call and link to is there."""

import dataclasses
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import command_pages  # of docs/site
import pytest
import site_links

import tf_smoothclir
from tf_smoothclir.extras.distributed.settings import ShardsSettings
from tf_smoothclir.papers import li2018
from tf_smoothclir.papers.laboratory.catalogue import EXPERIMENTS

ROOT = Path(__file__).resolve().parent.parent
FLAGS = {"search": {"export_dir", "query", "top_k", "explain"}}
FLAGS["train"] = {"preset", "thresholds", "retriever", "output_dir"}
REPRODUCE = "smoothclir-reproduce"
OF_ABSL = {"flagfile", "help", "helpfull", "verbosity"}
# Not those of environments, caches and tools, whose folders begin with a dot.
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("[a-z]*/**/*.md")]


def loaded_by(page):
    """What a browser loads for a page without being asked."""
    sources = re.findall(r'<(?:script|img|iframe|source)\b[^>]*?\ssrc="([^"]+)"', page)
    links = re.findall(r"<link\b[^>]*>", page)
    links = [link for link in links if not re.search(r'rel="(canonical|next|prev)"', link)]
    return sources + [re.search(r'href="([^"]+)"', link)[1] for link in links]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The directory of the site, and path -> page."""
    for name in ("mkdocs", "material", "mkdocstrings"):
        pytest.importorskip(name, reason="the site needs pip install '.[docs]'")
    path = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", path]
    options = {"cwd": ROOT, "env": {**os.environ, "NO_MKDOCS_2_WARNING": "1"}, "timeout": 300}
    done = subprocess.run(command, **options, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return path, {page: page.read_text(encoding="utf-8") for page in path.rglob("*.html")}


@pytest.mark.slow
def test_no_page_loads_anything_from_elsewhere(site):
    directory, pages = site
    assert len(pages) > 40
    loaded = {url for page in pages.values() for url in loaded_by(page)}
    assert any(url.endswith(".css") for url in loaded)
    assert any(url.endswith(".js") for url in loaded)
    assert [url for url in loaded if re.match(r"(https?:)?//", url)] == []
    styles = "".join(path.read_text(encoding="utf-8") for path in directory.rglob("*.css"))
    assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", styles)


@pytest.mark.slow
def test_every_public_name_and_each_command_with_its_flags_has_its_place(site):
    directory, pages = site
    ids = {path: {*re.findall(r'\bid="([^"]+)"', page)} for path, page in pages.items()}
    reference = set().union(*(ids[path] for path in pages if path.parent.name == "reference"))
    public = {f"tf_smoothclir.{name}" for name in tf_smoothclir.__all__} - {"tf_smoothclir.metrics"}
    assert public | {"tf_smoothclir.api.metrics.NDCG", "tf_smoothclir.Model.search"} <= reference
    for name in command_pages.commands():
        flags = ids[(directory / command_pages.page_of(name)).with_suffix(".html")]
        assert "verbosity" not in flags  # the flags of libraries are not the command's
        assert FLAGS.get(name, set()) <= flags


def prose(page):
    return [line for line, is_code in site_links.lines(page.read_text("utf-8")) if not is_code]


def anchors(page):
    """Of the headings of a page, as hosting sites make them."""
    titles = [line.lstrip("#").strip().lower() for line in prose(page) if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}


def test_links_between_files_lead_to_files_and_their_headings():
    """On the site, a link to what is not there would be its label alone."""
    missing = []
    for page in [*PAGES, ROOT / "examples" / "own_data.ipynb"]:
        for target, anchor in re.findall(r"\]\(([^)#\s:]*)#?([^)\s:]*)\)", "".join(prose(page))):
            file = (page.parent / target).resolve() if target else page
            if not file.exists() or (anchor and anchor not in anchors(file)):
                missing.append(f"{page.relative_to(ROOT)}: {target}#{anchor}")
    for file in ROOT.glob("[a-z]*/**/*.py"):
        named = re.findall(r"(?<![\w./])(?:docs|papers)/[\w/]+\.md", file.read_text("utf-8"))
        missing += [f"{file.name}: {name}" for name in named if not (ROOT / name).exists()]
    assert missing == []


def test_the_readme_leads_to_every_guide_and_the_site_shows_it():
    readme, nav = (ROOT.joinpath(name).read_text("utf-8") for name in ("README.md", "mkdocs.yml"))
    for guide in (ROOT / "docs").glob("*.md"):
        assert f"(docs/{guide.name}" in readme, guide.name
        assert f"- {guide.name}" in nav, guide.name


def code(page):
    """Blocks and spans of code of a page, with lines that go on joined."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    spans = re.findall(r"`([^`]+)`", "".join(prose(page)))
    return [*"\n".join(blocks).splitlines(), *(" ".join(span.split()) for span in spans)]


def unknown_in(line, flags):
    """What a line of code calls that is not there, of commands, flags, modules and targets."""
    found = []
    line = re.sub(r"'[^']*'", "''", line)  # a value, perhaps with flags of another program
    for name, arguments in re.findall(r"\bsmoothclir-([a-z-]*[a-z])\b([^|#&;<>]*)", line):
        if name not in flags:
            found.append(f"smoothclir-{name}")
            continue
        for flag in re.findall(r"(?<![\w'=-])--([a-z]\w*)", arguments):
            brought = flags["--plugin"] if "--plugin=" in arguments else set()
            if not {flag, flag.removeprefix("no")} & (flags[name] | brought | OF_ABSL):
                found.append(f"smoothclir-{name} --{flag}")
    modules = re.findall(r"python -m ((?:benchmarks|export|papers|tests|trainers)[\w.]*)", line)
    found += [name for name in modules if importlib.util.find_spec(name) is None]
    if line.startswith("make "):
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        named = re.findall(r"(?<!\S)[a-z-]+(?!\S)", line.partition("#")[0])[1:]
        found += [f"make {name}" for name in named if name not in targets]
    return found


@pytest.fixture(scope="module")
def flags():
    """Command -> names of its flags; "--plugin" -> those that papers and extras bring."""
    brought = (li2018.AdversarialSettings, ShardsSettings)
    return {
        "--plugin": {field.name for group in brought for field in dataclasses.fields(group)},
        **{
            name: {flag["name"] for group in command["groups"].values() for flag in group}
            for name, command in command_pages.descriptions().items()
        },
    }


@pytest.mark.slow
def test_commands_flags_modules_and_targets_exist(flags):
    lines = [(page, line) for page in PAGES if page.stem != "CHANGELOG" for line in code(page)]
    assert sum("smoothclir-train" in line for _, line in lines) > 20
    unknown = [(page.name, name) for page, line in lines for name in unknown_in(line, flags)]
    # Flags alone, which other commands have too: on pages of papers those of two commands,
    # of a paper's authors, and of a benchmark.
    flags["reproduce"] |= flags["train"] | flags["--plugin"] | {"fine_tune", "run_dir"}
    for page, line in lines:
        if ROOT / "papers" in page.parents and line.startswith("--"):
            unknown += [(page.name, name) for name in unknown_in(f"{REPRODUCE} {line}", flags)]
    assert unknown == []


def test_pages_of_results_name_the_experiments_that_make_them():
    named = set()
    for page in PAGES:
        for line in code(page):
            names = re.findall(rf"{REPRODUCE}((?: [a-z]\w*)+)", line)
            named |= {*" ".join(names).split()}
            assert named <= {*EXPERIMENTS, "all"}, page
            of_page = EXPERIMENTS.get(page.parent.name)
            if names and of_page and page.stem != "README":
                assert of_page.name in names[0].split(), page
                assert page.read_text(encoding="utf-8").startswith(f"# {of_page.title}, "), page
    assert named >= {*EXPERIMENTS}
