"""Short runs of `kills` and `full_disks`; SECURITY.md has the long ones."""

import dataclasses
import types

import pytest

from tests.faults import full_disks, kills
from tests.faults.commands import Commands

pytestmark = pytest.mark.slow


def test_killed_commands_and_those_on_a_full_disk_are_repeated_without_a_trace(tmp_path):
    with Commands(tmp_path, "convert-polyglot", "shards") as commands:
        for command in commands:
            expected = commands.undisturbed(command)
            found = [
                *kills.kill(commands, command, 2, expected, seed=1),
                *full_disks.fill(commands, command, expected, types.SimpleNamespace(sizes=2)),
            ]
            assert [wrong for _, wrong in found] == [""] * 4
            check_differences_are_found(commands, command, expected)


def check_differences_are_found(commands, command, expected):
    """The tools would see another file, one that is left over, and a command that fails."""
    commands.restore()
    done = commands.run(command)
    assert commands.differs(done, expected) == ""
    (commands.directory / "left").touch()
    assert commands.differs(done, expected) == "left over: ['left']"
    (commands.directory / "left").unlink()
    (commands.directory / "in.pkl").write_bytes(b"other")
    assert commands.differs(done, expected) == "missing or different: ['in.pkl']"
    failed = dataclasses.replace(command, flags="--nosuchflag")
    commands.restore()
    assert "exit code 1" in commands.differs(commands.run(failed), expected)
