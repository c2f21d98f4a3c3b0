"""Numbered states of variables: folders, of which the one before goes once the next is on disk."""

import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tf_smoothclir.storage.files import discard_directory
from tf_smoothclir.storage.folder import Folder, new_folder
from tf_smoothclir.utils.errors import input_error

TRAIN_AGAIN = "Restore the files from a copy, or train again with --overwrite"
STATE, BEST = "state", "best"  # of a run: all that training goes on from; the best weights
_VARIABLES = "variables"


def keep_best(directory: Path) -> None:
    """Deletes what a finished run does not need: all states, and best weights but the last."""
    best = SavedStates(directory, BEST)
    if latest := best.latest():
        best.discard(lambda number: number < latest)
        SavedStates(directory, STATE).discard(bool)


class SavedStates:
    """The states of one name in a directory; `<name>-<number>` is a folder of the kind `name`."""

    def __init__(self, directory: Path, name: str):
        self._directory, self._name = Path(directory), name
        self._pattern = re.compile(rf"{re.escape(name)}-(\d+)")

    def folder(self, number: int) -> Path:
        """The folder of a state."""
        return self._directory / f"{self._name}-{number}"

    def prefix(self, number: int) -> str:
        """The path of the variables of a state, as TensorFlow takes it."""
        return os.fspath(self.folder(number) / _VARIABLES)

    def complete(self) -> list[int]:
        """The numbers of the states, latest first."""
        there = os.listdir(self._directory) if self._directory.is_dir() else ()
        return sorted((int(m[1]) for m in map(self._pattern.fullmatch, there) if m), reverse=True)

    def latest(self) -> int:
        """The number of the latest state; 0 if there is none."""
        return max(self.complete(), default=0)

    def checked(self, number: int) -> dict[str, Any]:
        """The facts of a state; raises `InputError` if it is damaged, or of another run."""
        folder = Folder.checked(self.folder(number), self._name, TRAIN_AGAIN)
        if folder.facts.get("run", self._run) != self._run:
            raise input_error(folder.path, "it is of a run with another config.json", TRAIN_AGAIN)
        return folder.facts

    @property
    def _run(self) -> str:
        """A digest of the settings and data of the run, whichever of its parts rank in the end."""
        config = self._directory.parent / "config.json"
        if not config.is_file():
            return ""
        content = re.sub(rb',\s*"ranks_by": "[^"]*"', b"", config.read_bytes())
        return hashlib.sha256(content).hexdigest()

    def save(
        self, write: Callable[[str], object], *, former: int | None = None, needs: int = 0
    ) -> int:
        """Writes a state, which needs another one, then deletes all others but the one before."""
        former = self.latest() if former is None else former
        number = 1 + self.latest()
        with new_folder(self.folder(number), self._name) as (path, facts):
            write(os.fspath(path / _VARIABLES))
            facts.update(needs=needs, run=self._run)
        self.discard(lambda n: n not in (number, former))
        return number

    def discard(self, condition: Callable[[int], bool]) -> None:
        """Deletes the states of whose numbers a condition is true."""
        for number in filter(condition, self.complete()):
            discard_directory(self.folder(number))
