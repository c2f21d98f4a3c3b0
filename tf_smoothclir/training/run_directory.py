"""The run directory: everything about one training run, in files that people can read."""

from __future__ import annotations

import contextlib
import dataclasses
import platform
from importlib import metadata
from pathlib import Path

from tf_smoothclir.settings.run import RunSettings, differences
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.files import (
    delete_in,
    locked,
    make_directory,
    names_in,
    read_json,
    write_json,
    write_text,
)

# In the order in which --overwrite deletes them: stopped at any place, it leaves what is neither
# finished nor no run.
_PARTS = (
    "metrics.json",
    "checkpoints",
    "vocabulary",
    "logs",
    "plots",
    "evaluation",
    "diverged_batch.tsv",
    "report.md",
    "flags.txt",
    "config.json",
)
_LOCK = ".training.lock"


class RunDirectory:
    """Paths below `--output_dir`, and whether a run there is new, unfinished or finished."""

    def __init__(self, path: Path):
        """Names the parts of the run in `path`; see `create` and `load`."""
        self.path = Path(path)
        self.flags = self.path / "flags.txt"
        self.config = self.path / "config.json"
        self.vocabulary = self.path / "vocabulary"
        self.checkpoints = self.path / "checkpoints"
        self.logs = self.path / "logs"
        self.plots = self.path / "plots"
        self.evaluation = self.path / "evaluation"
        self.diverged_batch = self.path / "diverged_batch.tsv"
        self.report = self.path / "report.md"
        self.metrics = self.path / "metrics.json"

    @property
    def finished(self) -> bool:
        """Whether training and evaluation are complete; `metrics.json` is written last."""
        return self.metrics.is_file()

    @property
    def begun(self) -> bool:
        """Whether there is a checkpoint, so something to lose."""
        return (self.checkpoints / "checkpoint").is_file()

    @property
    def knows_data(self) -> bool:
        """Whether `remember_data` was called, so that the vocabulary is that of its data."""
        return "data" in read_json(self.config)

    @classmethod
    def create(
        cls, path: str | Path, settings: RunSettings, *, overwrite: bool = False
    ) -> RunDirectory:
        """Makes a run directory, or finds the unfinished or finished run of the same settings.

        A run that has neither checkpoint nor figures is begun anew where the settings are others.

        Args:
            path: `--output_dir`.
            settings: What the run is made with.
            overwrite: Deletes the run that is there; files that are no part of a run stay.

        Raises:
            InputError: The directory cannot be written to, holds something else, or holds a run
                with other settings.
        """
        run = cls(make_directory(path, "--output_dir"))
        if run.config.is_file():
            differs = [] if overwrite else differences(run.settings(), settings)
            if not differs and not overwrite:
                return run
            if (run.begun or run.finished) and not overwrite:
                raise input_error(
                    f"--output_dir={run.path}",
                    f"it holds a run with other settings ({'; '.join(differs)})",
                    "Give the same flags to continue it, choose another directory, or give"
                    " --overwrite",
                )
            delete_in(run.path, _PARTS)
        flag_text = "\n".join(settings.flag_lines()) + "\n"
        _check_free(run, flag_text, overwrite)
        write_text(run.flags, flag_text)
        write_json(run.config, {"settings": dataclasses.asdict(settings), "versions": versions()})
        return run

    @classmethod
    def only_one(cls, path: str | Path) -> contextlib.AbstractContextManager:
        """Keeps other processes from training in `--output_dir`, which is made where it is missing.

        Raises:
            InputError: Another one does so, or the directory cannot be written to.
        """
        return locked(
            make_directory(path, "--output_dir") / _LOCK,
            f"--output_dir={path}",
            "another process is training there",
            "Wait until it has ended, or choose another directory",
        )

    @classmethod
    def load(cls, path: str | Path) -> RunDirectory:
        """Opens the run in `path`, finished or not.

        Raises:
            InputError: There is none.
        """
        run = cls(Path(path))
        if not run.config.is_file():
            raise input_error(
                f"--run_dir={path}",
                "there is no run (no config.json)",
                "Give the --output_dir of smoothclir-train",
            )
        return run

    def settings(self) -> RunSettings:
        """Returns the settings that the run was made with.

        Raises:
            InputError: This version of the package no longer takes one of them.
        """
        try:
            return RunSettings.from_dict(read_json(self.config)["settings"])
        except ValueError as error:
            raise input_error(
                self.config,
                str(error).rstrip("."),
                "This version cannot read the run: use the one that wrote it, or train again",
            ) from error

    def vocabulary_tokens(self, role: str) -> list[str]:
        """Returns the vocabulary of the "query" or "document" side; the position is the id."""
        from tf_smoothclir.text.vocabulary import read_vocabulary  # takes seconds to load

        return read_vocabulary(self.vocabulary / f"{role}.txt")

    def check_joins(self, settings: RunSettings, shards: str) -> None:
        """Checks that a worker may take part in the run that the chief has begun or found.

        Args:
            settings: Of the worker.
            shards: Fingerprint of the shards that it reads.

        Raises:
            InputError: The chief has other ones.
        """
        differs = differences(self.settings(), settings)
        if read_json(self.config)["data"]["shards"] != shards:
            differs.append("--shards_dir: other content")
        if differs:
            raise input_error(
                f"--output_dir={self.path}",
                f"the chief has other settings ({'; '.join(differs)})",
                "Give all workers the same flags",
            )

    def remember_data(
        self, name: str, fingerprint: str, shards: str | None = None, workers: int = 1
    ) -> None:
        """Notes which data the run reads.

        Args:
            name: Of the retrieval set.
            fingerprint: Of its content.
            shards: Fingerprint of the shards that training reads instead, if it does.
            workers: How many share the shards.

        Raises:
            InputError: A run that is to be continued has read other data.
        """
        config = read_json(self.config)
        data = {"name": name, "fingerprint": fingerprint}
        if shards:
            data |= {"shards": shards, "workers": workers}
        if config.setdefault("data", data) != data:
            raise input_error(
                f"--output_dir={self.path}",
                f"the run there was begun on other content of {config['data']['name']}"
                f"{_other_workers(config['data'], data)}",
                "Choose another directory, or give --overwrite to begin anew",
            )
        write_json(self.config, config)


def _other_workers(there: dict, here: dict) -> str:
    if there.get("workers") == here.get("workers"):
        return ""
    return f", or by another number of workers ({there.get('workers')} there)"


def _check_free(run: RunDirectory, flag_text: str, overwrite: bool) -> None:
    """Checks that a run may be begun where there is none, and that it would meet nothing foreign.

    A run that was killed before it had a config.json may have left flags.txt and temporary files.
    """
    others = names_in(run.path) - {_LOCK}
    if run.flags.is_file() and run.flags.read_bytes() == flag_text.encode():
        others.remove(run.flags.name)
    in_the_way = sorted(others.intersection(_PARTS))
    if in_the_way:
        raise input_error(
            f"--output_dir={run.path}",
            f"the directory holds no run, but has {', '.join(in_the_way)}, as a run would",
            "Choose another one",
        )
    if others and not overwrite:
        raise input_error(
            f"--output_dir={run.path}",
            "the directory is not empty and holds no run",
            "Choose another one, or give --overwrite to write into it",
        )


def versions() -> dict[str, str]:
    """Returns what a run is made with, for its records."""
    return {
        "tf_smoothclir": metadata.version("tf_smoothclir"),
        "tensorflow": metadata.version("tensorflow"),
        "python": platform.python_version(),
    }
