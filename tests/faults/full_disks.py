"""Every command on a disk that is full: `python -m tests.faults.full_disks --sizes=3`.

No file can grow beyond some bytes, so that writing fails as on a full disk, and flushing, closing
and TensorFlow's own writing with it. The command must end with one message, which names a file,
and without a stack trace. With room again, the same command must succeed and give what an
undisturbed one does.
"""

import re

from tests.faults.commands import Command, Commands, Undisturbed, disturb_all

# Python names the file after the reason, TensorFlow before it.
_MESSAGE = re.compile(
    r"error: ([^/]*: '/.+'|.*/.+; [^/]*)\. Free some space, then give the same command again: "
    r"everything saved so far is kept\."
)


def fill(commands: Commands, command: Command, expected: Undisturbed, options):
    """Tries some sizes of the largest file; yields a line about each and what was wrong."""
    written, sizes = expected.sizes, options.sizes
    for number in range(min(sizes, len(written))):
        # None has room at first; then a larger and larger share, up to all but the last byte.
        largest = written[len(written) * number // max(1, sizes - 1) - 1] - 1 if number else 0
        commands.restore()
        done = commands.run(command, largest_file=largest)
        wrong = _mistake(done) or commands.differs(commands.run(command), expected)
        yield f"{command.name}: files up to {largest} bytes: {done.stderr[-200:]!r}", wrong


def _mistake(done) -> str:
    last = (done.stderr.strip().splitlines() or [""])[-1]
    if done.returncode != 1 or "Traceback" in done.stderr or not _MESSAGE.fullmatch(last):
        return f"exit code {done.returncode}: {done.stderr}"
    return ""


if __name__ == "__main__":
    disturb_all(__doc__, {"sizes": 3}, fill)  # of the largest file; at least 2
