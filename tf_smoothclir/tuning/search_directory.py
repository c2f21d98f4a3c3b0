"""The directory of a search: what it holds, and the record of what is searched."""

from __future__ import annotations

import dataclasses
import time
from contextlib import AbstractContextManager
from pathlib import Path

from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.settings.base import value_text
from tf_smoothclir.settings.run import RunSettings, differences
from tf_smoothclir.utils.errors import InputError, input_error
from tf_smoothclir.utils.files import delete_in, locked, names_in, read_json, write_json

TRIALS, LOGS = "trials", "logs"
ORACLE_STATE = "oracle.json"
HEAT_MAP = "heatmap.png"
_RECORD, _LOCK = "tuning.json", ".lock"
# In the order in which --overwrite deletes them.
_PARTS = (
    "best.flags",
    "best.json",
    "trials.csv",
    "trials.md",
    HEAT_MAP,
    ORACLE_STATE,
    f"{ORACLE_STATE}.damaged",
    TRIALS,
    LOGS,
    _RECORD,
)
_SECONDS_BETWEEN_LOOKS = 0.5


@dataclasses.dataclass(frozen=True)
class Search:
    """How to search.

    Attributes:
        search: Name of an oracle, a key of `tune.ORACLES`.
        tune: Names of the settings to search.
        max_trials: Maximum number of trials. A larger one continues a search that had fewer.
        folds: Folds of cross-validation; 0 or 1 for the set's own validation split.
    """

    search: str = "grid"
    tune: tuple[str, ...] = ("thresholds",)
    max_trials: int = 36
    folds: int = 0


@dataclasses.dataclass(frozen=True)
class SearchRecord:
    """Everything that decides the trials; the content of `tuning.json`.

    Attributes:
        search: How to search.
        settings: The fixed settings.
        data: Fingerprint of the set's content.
    """

    search: Search
    settings: RunSettings
    data: str

    @classmethod
    def of(cls, settings: RunSettings, search: Search) -> SearchRecord:
        """The record of a search of the set that the settings name."""
        return cls(search, settings, source_of(settings.data).fingerprint())

    @classmethod
    def read(cls, path: Path) -> SearchRecord:
        """Reads a `tuning.json`."""
        content = read_json(path)
        search = Search(**{**content["search"], "tune": tuple(content["search"]["tune"])})
        return cls(search, RunSettings.from_dict(content["settings"]), content["data"])

    def write(self, path: Path) -> None:
        """Writes a `tuning.json`."""
        write_json(path, dataclasses.asdict(self))

    def check_same(self, other: SearchRecord, output_dir: Path) -> None:
        """Checks that this search may continue another one."""
        found = [
            f"--{name}: {value_text(there)} there, {value_text(here)} here"
            for name, here in vars(self.search).items()
            if (there := getattr(other.search, name)) != here and name != "max_trials"
        ]
        found += differences(other.settings, self.settings)
        if other.data != self.data:
            found.append("the content of the data")
        if found:
            raise InputError(
                f"--output_dir={output_dir}: it holds a search with other settings"
                f" ({'; '.join(found)}). Give the same flags to continue it, choose another"
                " directory, or give --overwrite."
            )


def only_search(output_dir: Path) -> AbstractContextManager:
    """Keeps other searches out of the directory."""
    return locked(
        output_dir / _LOCK,
        f"--output_dir={output_dir}",
        "another smoothclir-tune is running there",
        "Wait for it, or choose another directory; --workers=2 runs two trials at a time",
    )


def open_search(output_dir: Path, record: SearchRecord, overwrite: bool) -> None:
    """Records a new search, or checks that the directory holds the same one."""
    path = output_dir / _RECORD
    if overwrite and path.is_file():
        delete_in(output_dir, _PARTS)
    if path.is_file():
        record.check_same(SearchRecord.read(path), output_dir)
    elif others := names_in(output_dir) - {_LOCK}:
        raise input_error(
            f"--output_dir={output_dir}",
            f"it holds no search, but {', '.join(sorted(others)[:3])}",
            "Choose another directory",
        )
    record.write(path)


def check_joins(output_dir: Path, record: SearchRecord, seconds_to_wait: float) -> None:
    """Checks that a tuner worker has the same search as its chief, which may start a bit later."""
    path, end = output_dir / _RECORD, time.monotonic() + seconds_to_wait
    while not path.is_file():
        if time.monotonic() > end:
            raise input_error(
                f"--output_dir={output_dir}",
                "there is no search of a chief",
                "Let the chief and its workers share the directory",
            )
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    record.check_same(SearchRecord.read(path), output_dir)
