"""Kills every command at random moments: `python -m tests.faults.kills --kills=200 --seed=1`.

Each kill (SIGKILL, of the process of the command and not of its children, as `kill -9 PID` does)
comes at a moment drawn uniformly from the time that the command takes. Then the same command runs
to its end: it must succeed, write and print what an undisturbed one does, and leave nothing over.
"""

import random
import signal

from tests.faults.commands import COMMANDS, Command, Commands, Undisturbed, disturb_all


def kill(commands: Commands, command: Command, times: int, expected: Undisturbed, *, seed: int):
    """Kills a command some times; yields a line about each and what was wrong, empty if nothing."""
    randomness = random.Random(f"{seed} {command.name}")
    seconds, number = expected.seconds, 0
    while number < times:
        moment = randomness.uniform(0, seconds)
        commands.restore()
        if commands.run(command, kill_after=moment).returncode != -signal.SIGKILL:
            seconds = moment  # it was quicker this time
            continue
        number += 1
        wrong = commands.differs(commands.run(command), expected)
        yield f"{command.name}: killed after {moment:.2f} of {expected.seconds:.2f} s", wrong


def _kill(commands, command, expected, options):
    times = round(options.kills * command.kills / sum(each.kills for each in COMMANDS))
    return kill(commands, command, times, expected, seed=options.seed)


if __name__ == "__main__":
    disturb_all(__doc__, {"kills": 200, "seed": 1}, _kill)
