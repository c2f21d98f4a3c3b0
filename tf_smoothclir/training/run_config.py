"""The config.json of a run: what it is made with, and from which data."""

import dataclasses
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any, Self

from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.storage.files import read_record, write_json
from tf_smoothclir.utils.errors import InputError, input_error
from tf_smoothclir.utils.paths import local_path

_REMEDY = "This version cannot read the run: use the version that wrote it, or train again"
_RUN = "{run}"  # the run's own directory, at the beginning of a path; it may be moved


@dataclasses.dataclass(frozen=True)
class RunData:
    """The data that a run reads."""

    name: str = ""
    # Fingerprint of its content; empty as long as the set has not been checked.
    fingerprint: str = ""
    distribution: str = ""  # `SingleProcess.fingerprint` of the processes that train


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """The content of config.json."""

    settings: dict[str, Any]  # the settings by group, as `RunSettings.from_dict` takes them
    versions: dict[str, str]
    data: RunData = RunData()
    # What ranks alone, where the other parts of the retriever of the settings count for nothing.
    ranks_by: str = ""

    @classmethod
    def of(cls, settings: RunSettings, run: Path) -> Self:
        """The content for a new run, whose data may be inside it."""
        content, data_dir = settings.to_dict(), settings.data.data_dir
        inside = os.path.relpath(local_path(data_dir), run) if data_dir else os.pardir
        if inside.split(os.sep)[0] != os.pardir:
            content["data"]["data_dir"] = os.path.join(_RUN, inside)
        return cls(content, software_versions())

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads a config.json."""
        return read_record(path, cls, _REMEDY)

    def write(self, path: Path) -> None:
        """Writes a config.json, atomically."""
        content = {"settings": self.settings, "versions": self.versions}
        if self.data.fingerprint:
            content["data"] = {name: value for name, value in vars(self.data).items() if value}
        if self.ranks_by:
            content["ranks_by"] = self.ranks_by
        write_json(path, content)

    def run_settings(self, path: Path) -> RunSettings:
        """The settings of the run."""
        try:
            settings = RunSettings.from_dict(self.settings)
        except KeyError as error:
            raise _unreadable(path, f"settings.{error.args[0]} is missing") from error
        except InputError:
            raise  # of a plug-in, with a remedy of its own
        except (TypeError, ValueError) as error:
            raise _unreadable(path, error) from error
        place, *inside = settings.data.data_dir.split(os.sep)
        if place != _RUN:
            return settings
        data_dir = os.path.abspath(path.parent.joinpath(*inside))
        data = dataclasses.replace(settings.data, data_dir=data_dir)
        return dataclasses.replace(settings, data=data)


def _unreadable(path: Path, reason: object) -> InputError:
    return input_error(path, str(reason).rstrip("."), _REMEDY)


def software_versions() -> dict[str, str]:
    """The versions of this package, TensorFlow and Python, for the record."""
    return {
        "tf_smoothclir": metadata.version("tf_smoothclir"),
        "tensorflow": metadata.version("tensorflow"),
        "python": platform.python_version(),
    }
