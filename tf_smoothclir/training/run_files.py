"""The files of a run that are read again, as they were written: a manifest, checked on use.

It is `written.json` in the run directory. A file is noted before it gets its name, and its former
content stays noted until the next one, so a kill between the two steps leaves a run that is whole.
States and best weights have notes of their own; see `saved_states`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path

from tf_smoothclir.training.saved_states import BEST, SavedStates
from tf_smoothclir.utils.digests import files_below
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.files import flush_to_disk, read_json, scratch_directory, write_json
from tf_smoothclir.utils.records import record_from_json
from tf_smoothclir.utils.sealed import SEAL, FileNote, damage_to

_REMEDY = (
    "Restore it from a copy, or train again with --overwrite; what evaluates or exports reads a run"
    " that you changed on purpose with --noverify"
)


@dataclasses.dataclass(frozen=True)
class _Written:
    """The manifest: relative path -> what the file is, and what it was before."""

    files: dict[str, tuple[FileNote, ...]]


@contextlib.contextmanager
def writing(run: Path, path: Path) -> Iterator[Path]:
    """Yields the path at which to write a file or directory, which is then noted and renamed."""
    with scratch_directory(run, path.name) as scratch:
        temporary = scratch / path.name
        yield temporary
        written = files_below(scratch)
        there = _read(run).files if (run / SEAL).exists() else {}
        notes = {name: (FileNote.of(scratch / name), *there.get(name, ())[:1]) for name in written}
        for part in (temporary, *temporary.rglob("*")):
            flush_to_disk(part)
        write_json(run / SEAL, dataclasses.asdict(_Written({**there, **notes})))
        os.replace(temporary, path)
        flush_to_disk(run)


def check_run(run: Path, *, finished: bool, best: bool) -> None:
    """Checks that the files of a run are those that training wrote.

    Parts that are deleted as a whole are not missed here, except files of a finished run.
    """
    for name, notes in _read(run).files.items():
        part = run / name.split("/")[0]
        if part.exists() or (finished and part.suffix):
            damages = [damage_to(run, {name: note}) for note in notes]
            if all(damages):
                raise input_error(run / name, f"the run is damaged: {damages[0]}", _REMEDY)
    states = SavedStates(run / "checkpoints", BEST)
    damage = states.damage(states.latest()) if best and states.latest() else ""
    if damage:
        raise input_error(run / "checkpoints", f"the best weights are damaged: {damage}", _REMEDY)


def _read(run: Path) -> _Written:
    try:
        return record_from_json(_Written, read_json(run / SEAL))
    except (OSError, ValueError, RecursionError) as error:
        reason = f"the list of the files of the run cannot be read ({error})"
        raise input_error(run / SEAL, reason, _REMEDY) from error
