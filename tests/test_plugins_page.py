"""docs/plugins.md: its file, trained, evaluated and exported by its commands."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PAGE = Path(__file__).resolve().parent.parent / "docs" / "plugins.md"
MODULES = {"train": "trainers.train", "evaluate": "trainers.evaluate", "export": "export.export"}


@pytest.fixture(scope="module")
def page():
    return PAGE.read_text(encoding="utf-8")


def test_the_file_of_the_page_works_with_its_commands(page, commands, tmp_path):
    name, text = re.search(r'```python title="(\w+)\.py"\n(.*?)```', page, re.DOTALL).groups()
    (tmp_path / f"{name}.py").write_text(text)
    for command, arguments in re.findall(r"^smoothclir-(\w+) (.*)$", page, re.MULTILINE):
        more = [f"--cache_dir={tmp_path / 'cache'}"] if command != "export" else []
        done = commands.run(MODULES[command], *shlex.split(arguments), *more, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    run = json.loads((tmp_path / "runs/focus/config.json").read_text())
    assert run["settings"]["plugins"] == [name]
    assert run["settings"]["focus"] == {"focus": 2.0}
    assert (tmp_path / "runs/focus/query_tower/1").is_dir()
    refused = commands.run("trainers.evaluate", "--run_dir=runs/focus", cwd=tmp_path)
    assert refused.returncode == 1
    assert f"If you trust it, add --plugin={name}" in refused.stderr
