"""Commands on the pages exist, and so do their flags: in blocks and inside sentences."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
from pathlib import Path

import command_pages  # of docs/site
import pytest

from tf_smoothclir.extras.distributed.settings import ShardsSettings
from tf_smoothclir.papers import li2018

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "BUILD.md", "SECURITY.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "papers").glob("*/README.md")),
    ROOT / "benchmarks" / "README.md",
    ROOT / "export" / "serving" / "README.md",
]
OF_ABSL = {"flagfile", "help", "helpfull", "verbosity"}


def code(page):
    """Blocks and spans of code of a page, with lines that go on joined."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    spans = re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.M))
    return [line for block in blocks for line in block.splitlines()] + [
        " ".join(span.split()) for span in spans
    ]


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
    ours = r"python -m ((?:benchmarks|export|papers|tests|trainers)[\w.]*)"
    for module in re.findall(ours, line):
        if importlib.util.find_spec(module) is None:
            found.append(module)
    if line.startswith("make "):
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        named = re.findall(r"(?<!\S)[a-z-]+(?!\S)", line.partition("#")[0])[1:]
        found += [f"make {name}" for name in named if name not in targets]
    return found


@pytest.fixture(scope="module")
def flags():
    """Command -> names of its flags; "--plugin" -> those that papers and extras bring."""
    brought = (li2018.AdversarialSettings, li2018.MaxLstmSettings, ShardsSettings)
    return {
        "--plugin": {field.name for group in brought for field in dataclasses.fields(group)},
        **{
            name: {flag["name"] for group in command["groups"].values() for flag in group}
            for name, command in command_pages.descriptions().items()
        },
    }


@pytest.mark.slow
def test_commands_flags_modules_and_targets_exist(flags):
    lines = [(page.name, line) for page in PAGES for line in code(page)]
    assert sum("smoothclir-train" in line for _, line in lines) > 20
    unknown = [(page, name) for page, line in lines for name in unknown_in(line, flags)]
    assert unknown == []


@pytest.mark.parametrize(
    ("line", "unknown"),
    [
        ("smoothclir-train --dim=64 --nooverwrite", []),
        ("smoothclir-train --dimm=64", ["smoothclir-train --dimm"]),
        ("smoothclir-learn --dim=64", ["smoothclir-learn"]),
        ("smoothclir-train --gamma1=1 --plugin=tf_smoothclir.papers.li2018", []),
        ("smoothclir-train --gamma1=1", ["smoothclir-train --gamma1"]),
        ("smoothclir-train --flagfile=a | sort --unique", []),
        ("smoothclir-train --beam='--runner=X'", ["smoothclir-train --beam"]),
        ("python -m tests.nothing", ["tests.nothing"]),
        ("python -m benchmarks.training", []),
        ("make quickstart  # and more", []),
        ("make quickstart nothing", ["make nothing"]),
    ],
)
def test_what_does_not_exist_is_noticed(line, unknown):
    flags = {"train": {"dim", "overwrite", "plugin"}, "--plugin": {"gamma1"}}
    assert unknown_in(line, flags) == unknown
