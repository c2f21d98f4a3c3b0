"""Every command on a tiny set, in order, each with what the ones before it have written.

`Commands` runs a command again and again from the same state of the disk, so that what it leaves
after a fault can be compared with what it writes undisturbed.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import re
import shlex
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.command_line.forked import ForkedCommands
from tests.papers.liu2020 import test_polyglot as polyglot
from tests.training.tiny_set import write_tiny_set
from tf_smoothclir.storage.folder import MANIFEST

PRELOADED = (
    "tensorflow",
    "keras_tuner",
    "matplotlib.pyplot",
    "tf_smoothclir.command_line.setting_flags",
    "tf_smoothclir.papers.laboratory.reproduce",
    "tf_smoothclir.publishing.export",
    "tf_smoothclir.search.opening",
    "tf_smoothclir.training.train",
    "tf_smoothclir.tuning.tune",
)
_MEASURED = {"pairs_per_second", "seconds", "peak_rss_mb"}  # times and memory, in JSON
_TELL = {".md", ".html"}  # reports, which tell the same times in words
# Names of functions in a graph count how many a process made before. The quickstart exports in the
# process that trained, or, after a kill, in one that did not.
_GRAPHS = re.compile(r"quick/(query_tower|document_tower|search)/")
_COUNTED = re.compile(r"(?<=\bbest-)\d+|(?<=\bstate-)\d+")
_TINY = "--dim=4 --negatives=3 --batch_size=8 --learning_rate=0.1"
_DENSE = "--epochs=2 --preset=fast --output_dir=WORK/dense"
_BEST = f"{_TINY} --epochs=2 --preset=best --reranker=late_interaction --rerank_depth=5"
_THETAS = "--theta_1=0.1 --theta_2=0.2 --output_dir=WORK/reproduced"
_REPRODUCED = f"{_TINY} --epochs=1 --tune_epochs=1 {_THETAS}"
_DATA = "--data_dir=WORK/data --cache_dir=WORK/cache"
_EXPORT, _INDEX = "--export_dir=WORK/export", "--index_dir=WORK/index"
_SHARDS = "--negatives=3 --num_shards=4 --output_dir=WORK/shards --overwrite"


@dataclasses.dataclass(frozen=True)
class Command:
    """A command; `name` is that of this use of it."""

    name: str
    kills: int  # of 200
    module: str
    flags: str  # "WORK" is the directory that all commands share


_EXTRAS, _PAPERS = "tf_smoothclir.extras", "tf_smoothclir.papers"
_POLYGLOT = "--input=WORK/in.pkl --output=WORK/out.vec --words=WORK/words.txt"
_TUNED = "--epochs=2 --tune=epsilon --max_trials=3 --output_dir=WORK/tuned"
_EVALUATED = "--run_dir=WORK/best --cache_dir=WORK/cache --output_dir=WORK/evaluated"
_COMPARED = "WORK/dense WORK/best --samples=1000 --output_dir=WORK/compared"
_LISTED = f"{_EXPORT} {_INDEX} --query=wordc --trec_run=WORK/hits.trec"
COMMANDS = (
    Command("stats", 4, "trainers.stats", "--data_dir=WORK/data"),
    Command("convert-polyglot", 12, f"{_PAPERS}.liu2020.convert_polyglot", _POLYGLOT),
    Command("shards", 40, f"{_EXTRAS}.distributed.write_shards", f"{_DATA} {_SHARDS}"),
    Command("train", 12, "trainers.train", f"{_DATA} {_TINY} {_DENSE}"),
    Command("train best", 12, "trainers.train", f"{_DATA} {_BEST} --output_dir=WORK/best"),
    Command("evaluate", 8, "trainers.evaluate", _EVALUATED),
    Command("compare", 6, "trainers.compare", _COMPARED),
    Command("tune", 8, "trainers.tune", f"{_DATA} {_TINY} --preset=fast {_TUNED}"),
    Command("export", 14, "export.export", f"--run_dir=WORK/best {_EXPORT}"),
    Command("index", 24, "export.build_index", f"{_EXPORT} {_INDEX}"),
    Command("index anew", 24, "export.build_index", f"{_EXPORT} {_INDEX} --overwrite"),
    Command("search", 14, "export.search", f"{_EXPORT} '--query=wordb worde' --json --explain"),
    Command("search to a file", 10, "export.search", _LISTED),
    Command("lucene", 4, f"{_EXTRAS}.lucene.write_files", f"{_EXPORT} --output_dir=WORK/ans"),
    Command("quickstart", 4, "tests.small_quickstart", "13 --output_dir=WORK/quick"),
    Command("reproduce", 4, f"{_PAPERS}.reproduce", f"figure1 table3 {_DATA} {_REPRODUCED}"),
)


class Commands:
    """The commands in a directory; a context manager."""

    def __init__(self, root: Path, *names: str):
        """Runs commands below `root`: those named, and those before them once."""
        self._root, self.directory = root, root / "work"
        self.chosen = [c for c in COMMANDS if not names or c.name in names]
        self._forked = ForkedCommands(*PRELOADED)

    def __enter__(self) -> Commands:
        self._forked.__enter__()
        self.directory.mkdir(parents=True)
        write_tiny_set(self.directory / "data")
        words = [polyglot.py2_unicode(word) for word in polyglot.WORDS]
        content = polyglot.py2_polyglot(words, polyglot.py2_array(polyglot.ROWS))
        (self.directory / "in.pkl").write_bytes(content)
        return self

    def __exit__(self, *_) -> None:
        self._forked.__exit__()

    def __iter__(self):
        """Yields each chosen command, when everything before it is there."""
        for command in COMMANDS[: 1 + max(map(COMMANDS.index, self.chosen))]:
            if command in self.chosen:
                shutil.copytree(self.directory, self._before, dirs_exist_ok=True)
                yield command
                self.restore()
            done = self.run(command)
            assert done.returncode == 0, (command, done.stderr)
            shutil.rmtree(self._before, ignore_errors=True)

    @property
    def _before(self) -> Path:
        return self._root / "before"

    def restore(self) -> None:
        """Brings back the state of the disk before the present command."""
        shutil.rmtree(self.directory)
        shutil.copytree(self._before, self.directory)

    def run(self, command: Command, **faults):
        """Runs a command; see `ForkedCommands.run`."""
        flags = [f.replace("WORK", str(self.directory)) for f in shlex.split(command.flags)]
        return self._forked.run(command.module, *flags, cwd=self._root, **faults)

    def undisturbed(self, command: Command) -> Undisturbed:
        """Runs a command twice from the same state, and returns what both agree upon."""
        results, seconds = [], 0.0
        for _ in range(2):
            self.restore()
            begin = time.monotonic()
            done = self.run(command)
            seconds = time.monotonic() - begin
            assert done.returncode == 0, (command, done.stderr)
            results.append(self._result(done))
        first, second = results
        stable = {name: of for name, of in first.items() if second.get(name) == of}
        before = _written(self._before)
        sizes = {size for _, size, _ in _written(self.directory) - before if size}
        return Undisturbed(seconds, {*first} | {*second}, stable, sorted(sizes))

    def differs(self, done, expected: Undisturbed) -> str:
        """Returns how the end of a command differs from an undisturbed one; empty if not at all."""
        if done.returncode or "Traceback" in done.stderr:
            return f"exit code {done.returncode}: {done.stderr}"
        found = self._result(done)
        if more := sorted(found.keys() - expected.names):
            return f"left over: {more}"
        wrong = [name for name, of in expected.stable.items() if found.get(name) != of]
        return f"missing or different: {wrong}" if wrong else ""

    def _result(self, done) -> dict[str, list[str]]:
        """Returns name -> digests of the files of this name, and of what was printed.

        Numbers in names, such as those of states, differ after a kill, and so does what was
        measured.
        """
        found: dict[str, list[str]] = {"printed": [_digest(_untimed(done.stdout).encode())]}
        for path in _files(self.directory):
            name = re.sub(r"\d+", "#", path.relative_to(self.directory).as_posix())
            name = re.sub(r"(tfevents\.#\.).*", r"\1", name)
            content = path.read_bytes()
            if path.suffix in _TELL or (_GRAPHS.match(name) and "/variables/" not in name):
                content = b""
            elif path.suffix == ".csv":
                content = _untimed(content.decode()).encode()
            elif path.suffix == ".json":
                value = json.loads(content)
                if path.name == MANIFEST and "files" in value:  # which are compared themselves
                    value = sorted(value["files"])
                content = _COUNTED.sub("#", json.dumps(_unmeasured(value))).encode()
            found.setdefault(name, []).append(_digest(content))
        return {name: sorted(set(digests)) for name, digests in found.items()}


def disturb_all(description: str, options: dict[str, int], disturb) -> None:
    """The command lines of `kills` and `full_disks`.

    `disturb(commands, command, expected, options)` yields a line about each disturbance of a
    command, and what was wrong, empty if nothing.
    """
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    for name, default in options.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--only", action="append", default=[], help="name of a command")
    given, begin, outcomes = parser.parse_args(), time.monotonic(), []
    with tempfile.TemporaryDirectory() as name, Commands(Path(name), *given.only) as commands:
        for command in commands:
            for line, wrong in disturb(commands, command, commands.undisturbed(command), given):
                outcomes.append(bool(wrong))
                print(line, "WRONG: " + wrong if wrong else "", flush=True)
    print(f"{len(outcomes)} disturbances, {sum(outcomes)} wrong, {time.monotonic() - begin:.0f} s")
    sys.exit(any(outcomes))


@dataclasses.dataclass(frozen=True)
class Undisturbed:
    seconds: float
    names: set[str]  # of all files afterwards; numbers are "#"
    stable: dict[str, list[str]]  # name -> digests, where two runs agree
    sizes: list[int]  # of the files that it writes, ascending


def _files(directory: Path) -> list[Path]:
    return [path for path in sorted(directory.rglob("*")) if path.is_file()]


def _written(directory: Path) -> set[tuple[Path, int, int]]:
    """Returns (path, bytes, time of the last change) of all files; copies keep that time."""
    status = {path.relative_to(directory): path.stat() for path in _files(directory)}
    return {(path, found.st_size, found.st_mtime_ns) for path, found in status.items()}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _unmeasured(value):
    if isinstance(value, dict):
        return {key: _unmeasured(part) for key, part in value.items() if key not in _MEASURED}
    return [*map(_unmeasured, value)] if isinstance(value, list) else value


def _untimed(text: str) -> str:
    """Returns tables, as printed or as CSV, without what their column of seconds has."""
    lines, column, width = [], -1, 0
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split(r"[|,]", line)]
        if "seconds" in cells:
            column, width = cells.index("seconds"), len(cells)
        elif len(cells) == width:
            cells[column] = ""
        lines.append(",".join(cells))
    return "\n".join(lines)
