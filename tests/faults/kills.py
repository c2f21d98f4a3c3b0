"""Kills every command at random moments: `python -m tests.faults.kills --kills=200 --seed=1`.

Each kill (SIGKILL, of the process of the command and not of its children, as `kill -9 PID` does)
comes at a moment drawn uniformly from the time that the command takes. Then the same command runs
to its end: it must succeed, write and print what an undisturbed one does, and leave nothing over.
"""

from __future__ import annotations

import argparse
import collections
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.commands import COMMANDS, Command, Commands, Undisturbed

_OF = sum(command.kills for command in COMMANDS)


def kill(commands: Commands, command: Command, times: int, expected: Undisturbed, *, seed: int):
    """Kills a command some times; yields a line about each and what was wrong, empty if nothing."""
    randomness = random.Random(f"{seed} {command.name}")
    seconds, number = expected.seconds, 0
    while number < times:
        moment = randomness.uniform(0, seconds)
        commands.restore()
        done = commands.run(command, kill_after=moment)
        if done.returncode != -signal.SIGKILL:
            seconds = moment  # it was quicker this time
            continue
        number += 1
        wrong = commands.differs(commands.run(command), expected)
        yield f"{command.name}: killed after {moment:.2f} of {expected.seconds:.2f} s", wrong


def main() -> None:
    """Runs from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", default=[], help="name of a command")
    options = parser.parse_args()
    begin, total, failures = time.monotonic(), collections.Counter(), 0
    with tempfile.TemporaryDirectory() as name, Commands(Path(name), *options.only) as commands:
        for command in commands:
            times = round(options.kills * command.kills / _OF)
            expected = commands.undisturbed(command)
            for line, wrong in kill(commands, command, times, expected, seed=options.seed):
                total[command.name] += 1
                failures += bool(wrong)
                print(line, "WRONG: " + wrong if wrong else "", flush=True)
    print(*(f"{name}: {number}" for name, number in total.items()), sep=", ")
    seconds = time.monotonic() - begin
    print(f"{sum(total.values())} kills, {failures} wrong, {seconds:.0f} s")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
