"""The directory of a search: what it holds, and the record of what is searched."""

from __future__ import annotations

import dataclasses
from contextlib import AbstractContextManager
from pathlib import Path

from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.settings.base import value_text
from tf_smoothclir.settings.run import RunSettings, differences
from tf_smoothclir.settings.search import Search
from tf_smoothclir.storage.files import delete_in, locked, names_in, read_record, write_json
from tf_smoothclir.utils.errors import InputError, input_error

TRIALS, LOGS = "trials", "logs"
ORACLE_STATE = "oracle.json"
HEAT_MAP = "heatmap.png"
DATA = "data"  # a set that was given in memory
_RECORD, _LOCK = "tuning.json", ".lock"
# In the order in which --overwrite deletes them.
_PARTS = (
    "best.flags",
    "best.json",
    "trials.csv",
    "trials.md",
    HEAT_MAP,
    ORACLE_STATE,
    TRIALS,
    LOGS,
    _RECORD,
)


def only_search(output_dir: Path) -> AbstractContextManager:
    """Keeps other searches out of the directory."""
    return locked(
        output_dir / _LOCK,
        f"--output_dir={output_dir}",
        "another search is running there",
        "Wait for it, or choose another directory; --workers=2 runs two trials at a time",
    )


@dataclasses.dataclass(frozen=True)
class _Record:
    """What a search is of; `data` is the fingerprint of the set."""

    search: dict
    settings: dict
    data: str


def open_search(
    output_dir: Path, settings: RunSettings, search: Search, overwrite: bool = False
) -> None:
    """Records a new search in `tuning.json`, or checks that the directory holds the same one."""
    path, fingerprint = output_dir / _RECORD, source_of(settings.data).fingerprint()
    if overwrite and path.is_file():
        delete_in(output_dir, _PARTS)
    if path.is_file():
        there = read_record(path, _Record, "Restore the file, or give --overwrite")
        before = Search(**there.search).values()
        changed = [
            f"--{name}: {value_text(before[name])} there, {value_text(value)} here"
            for name, value in search.values().items()
            if value != before[name] and name != "max_trials"
        ]
        changed += differences(RunSettings.from_dict(there.settings), settings)
        changed += ["the content of the data"] if there.data != fingerprint else []
        if changed:
            raise InputError(
                f"--output_dir={output_dir}: it holds a search with other settings"
                f" ({'; '.join(changed)}). Give the same flags to continue it, choose another"
                " directory, or give --overwrite."
            )
    elif others := names_in(output_dir) - {_LOCK, DATA}:
        reason = f"it holds no search, but {', '.join(sorted(others)[:3])}"
        raise input_error(f"--output_dir={output_dir}", reason, "Choose another directory")
    record = _Record(search.values(), settings.to_dict(), fingerprint)
    write_json(path, dataclasses.asdict(record))
