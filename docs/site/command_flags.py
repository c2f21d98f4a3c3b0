"""Prints what a command does and its flags, as JSON: python command_flags.py trainers.train"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from absl import flags

from tf_smoothclir.command_line import command, setting_flags


def main(module: str) -> None:
    """Loads a command, and notes what it would run with instead of running it."""
    found = {}

    def note(main, description, groups=(), *, arguments=""):
        del main
        setting_flags.define_plugin()
        groups = setting_flags.load_plugins([], groups)  # defines those of built-in plug-ins
        by_group = flags.FLAGS.flags_by_module_dict()
        found.update(
            description=description.strip(),
            arguments=arguments,
            groups={
                group: [_flag(flag) for flag in sorted(by_group.get(group, []), key=_name)]
                for group in (command.COMMAND, *groups)
                if by_group.get(group)
            },
        )

    command.run_main = note
    importlib.import_module(f"tf_smoothclir.{module}").run()  # as it is installed
    json.dump(found, sys.stdout)


def _name(flag) -> str:
    return flag.name


def _flag(flag) -> dict:
    return {
        "name": flag.name,
        "help": flag.help,
        "default": (flag.default_as_str or "").strip("'"),
        "values": list(getattr(flag.parser, "enum_values", None) or ()),
    }


if __name__ == "__main__":
    main(sys.argv[1])
