"""The files of a run that are read again, checked on use; states have manifests of their own."""

from __future__ import annotations

import contextlib
from pathlib import Path

from tf_smoothclir.storage.folder import Folder, adding, damage_to
from tf_smoothclir.training.saved_states import BEST, SavedStates
from tf_smoothclir.utils.errors import input_error

_RUN = "run"  # the kind of its folder
_REMEDY = (
    "Restore it from a copy, or train again with --overwrite; what evaluates or exports reads a run"
    " that you changed on purpose with --noverify"
)


def writing(run: Path, path: Path) -> contextlib.AbstractContextManager[Path]:
    """Yields the path at which to write a file or directory, which is then renamed and noted."""
    return adding(run, _RUN, path)


def check_run(run: Path, *, finished: bool, best: bool) -> None:
    """Checks that the files of a run are those that training wrote.

    Parts that are deleted as a whole are not missed here, except files of a finished run.
    """
    for name, note in Folder.read(run, _RUN, remedy=_REMEDY).files.items():
        part = run / name.split("/")[0]
        is_expected = part.exists() or (finished and part.suffix)
        if is_expected and (damage := damage_to(run, {name: note})):
            raise input_error(run / name, f"the run is damaged: {damage}", _REMEDY)
    states = SavedStates(run / "checkpoints", BEST)
    damage = states.damage(states.latest()) if best and states.latest() else ""
    if damage:
        raise input_error(run / "checkpoints", f"the best weights are damaged: {damage}", _REMEDY)
