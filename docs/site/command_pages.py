"""A page of the site for each command, from its flags."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_TITLES = {"command": "Flags of the command"}


def commands() -> dict[str, str]:
    """Returns name -> module of the console scripts of setup.py."""
    tree = ast.parse((ROOT / "setup.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "COMMANDS":
            return ast.literal_eval(node.value)
    raise RuntimeError("setup.py: there is no COMMANDS")


def descriptions() -> dict[str, dict]:
    """Returns command -> what it does and its flags; see `command_flags`."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(_description, commands().values())
        return dict(zip(commands(), found))


def page_of(name: str) -> str:
    """Returns the page of a command."""
    return f"commands/smoothclir-{name}.md"


def pages() -> dict[str, str]:
    """Returns page -> Markdown, the list of the commands first."""
    found = descriptions()
    rows = "".join(
        f"| [smoothclir-{name}](smoothclir-{name}.md)"
        f" | {_first_sentence(command['description'])} |\n"
        for name, command in found.items()
    )
    index = (
        "# Commands\n\nEach page lists what `--help` prints. Installing the package installs all of"
        f" them.\n\n| command | what it does |\n| --- | --- |\n{rows}"
    )
    return {
        "commands/index.md": index,
        **{page_of(name): _page(name, command) for name, command in found.items()},
    }


def _description(module: str) -> dict:
    # A process for each: the flags of several commands exclude each other.
    script = Path(__file__).with_name("command_flags.py")
    done = subprocess.run(
        [sys.executable, script, module], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{module}: its flags cannot be read: {done.stderr}")
    return json.loads(done.stdout)


def _page(name: str, command: dict) -> str:
    parts = [f"# smoothclir-{name}\n\n{command['description']}\n"]
    if command["arguments"]:
        parts.append(f"Arguments: {command['arguments']}\n")
    for group, flags in command["groups"].items():
        parts.append(f"## {_TITLES.get(group, f'Settings: {group}')}\n")
        parts += [_flag(flag) for flag in flags]
    return "\n".join(parts)


def _flag(flag: dict) -> str:
    values = f", one of {', '.join(map(_code, flag['values']))}" if flag["values"] else ""
    default = f"default {_code(flag['default'])}" if flag["default"] else "no default"
    help_text = flag["help"].removeprefix(f"<{'|'.join(flag['values'])}>: ")
    help_text = help_text.replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")
    return f"### `--{flag['name']}` {{ #{flag['name']} }}\n\n{help_text}\n\n*{default}{values}*\n"


def _code(value: object) -> str:
    return f"`{value}`"


def _first_sentence(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split()).split(". ")[0].rstrip(".:") + "."
