"""Numbered files of variables that survive kills, power loss and damage.

A state is `<name>-<number>.index`, its `.data-...` files and, last, `<name>-<number>.json`, which
states the size and SHA-256 of the others. All are written under another name, flushed to disk and
renamed; the state before goes once the new one is complete. So whenever the power goes, at least
one state is whole, and one that is not whole is known as such.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable
from pathlib import Path

from tf_smoothclir.utils.files import flush_to_disk, read_json, scratch_directory, write_json
from tf_smoothclir.utils.records import record_from_json
from tf_smoothclir.utils.sealed import FileNote, damage_to

STATE, BEST = "state", "best"  # of a run: all that training goes on from; the best weights


def has_state(directory: Path) -> bool:
    """Whether there is a state in the checkpoints of a run."""
    return bool(SavedStates(directory, STATE).latest())


def keep_best(directory: Path) -> None:
    """Deletes what a finished run does not need: all states, and best weights but the last."""
    best = SavedStates(directory, BEST)
    if latest := best.latest():
        best.discard_before(latest)
        SavedStates(directory, STATE).discard_after(0)


@dataclasses.dataclass(frozen=True)
class _Note:
    """The JSON file of a state.

    Attributes:
        files: Name of each file -> what it was when it was written.
        needs: Number of the state of another name that belongs to this one; 0 for none.
    """

    files: dict[str, FileNote]
    needs: int = 0


class SavedStates:
    """The states of one name in a directory."""

    def __init__(self, directory: Path, name: str):
        self._directory, self._name = Path(directory), name
        self._pattern = re.compile(rf"{re.escape(name)}-(\d+)\.(json|index|data-.*)")

    def prefix(self, number: int) -> str:
        """The path of a state, as TensorFlow takes it."""
        return os.fspath(self._directory / f"{self._name}-{number}")

    def complete(self) -> list[int]:
        """The numbers of the states that were completely written, latest first."""
        return sorted({n for n, kind, _ in self._files() if kind == "json"}, reverse=True)

    def latest(self) -> int:
        """The number of the latest complete state; 0 if there is none."""
        return max(self.complete(), default=0)

    def damage(self, number: int) -> str:
        """Damage to a complete state since it was written; empty if there is none."""
        try:
            note = self._note(number)
        except (OSError, ValueError, RecursionError) as error:
            return f"{self._name}-{number}.json cannot be read ({error})"
        return damage_to(self._directory, note.files)

    def needs(self, number: int) -> int:
        """Number of the state that an undamaged one needs, as given to `save`."""
        return self._note(number).needs

    def save(
        self, write: Callable[[str], object], *, former: int | None = None, needs: int = 0
    ) -> int:
        """Writes a state, then deletes all others but the one before."""
        self._directory.mkdir(parents=True, exist_ok=True)
        former = self.latest() if former is None else former
        number = 1 + max((n for n, _, _ in self._files()), default=0)
        with scratch_directory(self._directory, self._name) as scratch:
            write(os.fspath(scratch / f"{self._name}-{number}"))
            written = sorted(path for path in scratch.iterdir() if path.is_file())
            note = _Note({path.name: FileNote.of(path) for path in written}, needs)
            for path in written:
                flush_to_disk(path)
            for path in written:
                os.rename(path, self._directory / path.name)
            flush_to_disk(self._directory)
            write_json(f"{self.prefix(number)}.json", dataclasses.asdict(note))
        self._delete(lambda n: n not in (number, former))
        return number

    def discard_after(self, number: int) -> None:
        """Deletes the states after one."""
        self._delete(lambda n: n > number)

    def discard_before(self, number: int) -> None:
        """Deletes the states before one."""
        self._delete(lambda n: n < number)

    def _delete(self, condition: Callable[[int], bool]) -> None:
        # The JSON files first: without it, a state is not there.
        for number, _, path in sorted(self._files(), key=lambda file: file[1] != "json"):
            if condition(number):
                path.unlink(missing_ok=True)

    def _note(self, number: int) -> _Note:
        return record_from_json(_Note, read_json(f"{self.prefix(number)}.json"))

    def _files(self) -> list[tuple[int, str, Path]]:
        """Number, kind ("json", "index" or "data-...") and path of all files of states."""
        there = self._directory.iterdir() if self._directory.is_dir() else ()
        matches = ((path, self._pattern.fullmatch(path.name)) for path in there)
        return [(int(match[1]), match[2], path) for path, match in matches if match]
