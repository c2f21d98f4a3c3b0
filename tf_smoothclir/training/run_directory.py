"""The run directory: all files of one training run."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

from tf_smoothclir.settings.run import RunSettings, differences
from tf_smoothclir.storage.files import delete_in, locked, make_directory, names_in, write_text
from tf_smoothclir.storage.folder import MANIFEST, Folder, adding, damage_to
from tf_smoothclir.training.run_config import RunConfig, RunData
from tf_smoothclir.training.saved_states import BEST, STATE, SavedStates
from tf_smoothclir.utils.errors import InputError, input_error
from tf_smoothclir.utils.paths import local_path

_LOCK = ".training.lock"
_RUN = "run"  # the kind of its folder
_REMEDY = (
    "Restore it from a copy, or train again with --overwrite; what evaluates or exports reads a run"
    " that you changed on purpose with --noverify"
)
_DATA = "data"
TRAINED_QUERIES = "trained_queries.digests"  # of the initial run's queries too
_OF_PLUGINS = "plugin-"  # the beginning of their files' names


class RunDirectory:
    """Paths below `--output_dir`, and whether a run there is new, unfinished or finished."""

    def __init__(self, path: Path):
        self.path = Path(path)
        self.flags = self.path / "flags.txt"
        self.config = self.path / "config.json"
        self.vocabulary = self.path / "vocabulary"
        self.checkpoints = self.path / "checkpoints"
        self.lexical = self.path / "lexical"
        self.pseudo_queries = self.path / "pseudo_queries"
        self.reranker = self.path / "reranker"
        self.fusion = self.path / "hybrid.json"
        self.cut_points = self.path / "grades.json"
        self.logs = self.path / "logs"
        self.plots = self.path / "plots"
        self.evaluation = self.path / "evaluation"  # of what ranks; of each part, in "components"
        self.diverged_batch = self.path / "diverged_batch.tsv"
        self.data = self.path / _DATA  # a set that was given in memory
        self.trained_queries = self.path / TRAINED_QUERIES
        self.report = self.path / "report.md"
        self.metrics = self.path / "metrics.json"

    def _parts(self) -> list[str]:
        """The names of all parts that may be there, in the order in which they are deleted."""
        # Stopped anywhere, this leaves a directory that still is a run, but not a finished one.
        of_plugins = sorted(self.path.glob(f"{_OF_PLUGINS}*"))
        learned = [self.cut_points, self.reranker, self.fusion, self.lexical, self.pseudo_queries]
        trained = [self.checkpoints, self.vocabulary, self.logs, self.plots, self.evaluation]
        about = [self.diverged_batch, self.report, self.flags, self.trained_queries]
        about += [self.path / MANIFEST, self.config]
        parts = [self.metrics, *of_plugins, *learned, *trained, *about]
        return [path.name for path in parts]

    def of_plugins(self, name: str) -> Path:
        """Path of a file that a plug-in keeps in the run; write it by `writing`."""
        return self.path / f"{_OF_PLUGINS}{name}"

    @property
    def finished(self) -> bool:
        """Whether training and evaluation are complete; `metrics.json` is written last."""
        return self.metrics.is_file()

    @property
    def begun(self) -> bool:
        """Whether there is a checkpoint, which would be lost if the run were replaced."""
        return bool(SavedStates(self.checkpoints, STATE).latest())

    @property
    def knows_data(self) -> bool:
        """Whether `remember_data` was called, so that the vocabulary belongs to its data."""
        return bool(RunConfig.read(self.config).data.fingerprint)

    @classmethod
    def create(
        cls,
        path: str | Path,
        settings: RunSettings,
        *,
        overwrite: bool = False,
        check: Callable[[], object] = bool,
    ) -> Self:
        """Creates a run directory, or finds the unfinished or finished run with these settings."""
        # A run with other settings is replaced if it has neither checkpoints nor metrics.
        # `check` may raise an error before anything is written or deleted.
        run = cls(make_directory(path, "--output_dir"))
        if run.config.is_file():
            if not overwrite:  # damaged weights are replaced by those before
                check_run(run.path, finished=run.finished, best=False)
            differs = [] if overwrite else differences(run.settings_asked_for(), settings)
            if not differs and not overwrite:
                if not run.finished:
                    sweep(run)
                return run
            if (run.begun or run.finished) and not overwrite:
                raise input_error(
                    f"--output_dir={run.path}",
                    f"it holds a run with other settings ({'; '.join(differs)})",
                    "Give the same flags to continue it, choose another directory, or give"
                    " --overwrite",
                )
        else:
            _check_free(run, settings, overwrite)
        check()
        if run.config.is_file():
            run.delete()
        sweep(run)  # of a run that was killed before it wrote its config.json
        write_text(run.flags, _flag_text(settings))
        run.write_config(RunConfig.of(settings, run.path))
        return run

    @classmethod
    @contextlib.contextmanager
    def only_one(cls, path: str | Path) -> Iterator[None]:
        """Locks `--output_dir` against other processes; makes the directory if it is missing."""
        # Where nothing is written, such as of a set that cannot be read, nothing is left behind.
        is_new = not Path(local_path(path)).exists()
        directory = make_directory(path, "--output_dir")
        reason, remedy = (
            "another process is training there",
            "Wait until it ends, or choose another",
        )
        with locked(directory / _LOCK, f"--output_dir={path}", reason, f"{remedy} directory"):
            try:
                yield
            finally:
                if names_in(directory) == {_LOCK}:
                    (directory / _LOCK).unlink()
                    if is_new:
                        directory.rmdir()

    @classmethod
    def load(cls, path: str | Path, flag: str = "--run_dir", *, verify: bool = True) -> Self:
        """Opens the run in `path`, finished or not."""
        run = cls(Path(path))
        if not run.config.is_file():
            there = run.path.is_dir()
            raise input_error(
                f"{flag}={path}",
                f"there is no {'run (no config.json)' if there else 'such directory'}",
                "Give the --output_dir of smoothclir-train",
            )
        if verify:
            check_run(run.path, finished=run.finished, best=True)
        return run

    def writing(self, path: Path) -> contextlib.AbstractContextManager[Path]:
        """Yields the path at which to write one of the parts; `load` checks it from then on."""
        return adding(self.path, _RUN, path)

    def write_config(self, config: RunConfig) -> None:
        """Writes config.json."""
        with self.writing(self.config) as path:
            config.write(path)

    def settings_asked_for(self) -> RunSettings:
        """The settings that the run was begun with."""
        return RunConfig.read(self.config).run_settings(self.config)

    def settings(self) -> RunSettings:
        """The settings that the run was made with; what counts for nothing is not among them."""
        ranks_by = RunConfig.read(self.config).ranks_by
        asked = self.settings_asked_for()
        return asked.ranking_by(ranks_by) if ranks_by else asked

    def rank_by(self, retriever: str) -> None:
        """Records which parts rank alone, and deletes what was trained step by step for nothing."""
        config = RunConfig.read(self.config)
        self.write_config(dataclasses.replace(config, ranks_by=retriever))
        if not self.settings().retrieval.with_task:
            delete_in(self.path, [self.checkpoints.name])

    def delete(self) -> None:
        """Deletes all parts; what else is in the directory stays."""
        delete_in(self.path, self._parts())

    def incomplete(self, reason: str) -> InputError:
        """The error for a run that lacks a model, such as "has not ... yet"."""
        return input_error(
            self.path,
            f"the run {reason}",
            f"Continue it: smoothclir-train --flagfile={self.flags} --output_dir={self.path}",
        )

    def was_trained_on(self, fingerprint: str) -> bool:
        """Whether a retrieval set, by its fingerprint, is that of the run."""
        return RunConfig.read(self.config).data.fingerprint in (fingerprint, "")

    def check_data(self, fingerprint: str) -> None:
        """Checks that a retrieval set is that of the run, wherever its files are."""
        if not self.was_trained_on(fingerprint):
            reason, remedy = "it holds a finished run on other data", "Choose another directory"
            raise input_error(f"--output_dir={self.path}", reason, f"{remedy}, or give --overwrite")

    def vocabulary_tokens(self, role: str) -> list[str]:
        """The vocabulary of the "query" or "document" side; the position is the id."""
        from tf_smoothclir.text.vocabulary import read_vocabulary  # loading it takes seconds

        return read_vocabulary(self.vocabulary / f"{role}.txt")

    def check_joins(self, settings: RunSettings, distribution: str) -> None:
        """Checks that a process may take part in the run that the chief has begun or found."""
        differs = differences(self.settings_asked_for(), settings)
        if (there := RunConfig.read(self.config).data.distribution) != distribution:
            differs.append(f"{there} there, {distribution} here")
        if differs:
            raise input_error(
                f"--output_dir={self.path}",
                f"the chief has other settings ({'; '.join(differs)})",
                "Give all processes the same flags",
            )

    def remember_data(self, data: RunData) -> None:
        """Records which data the run reads."""
        config = RunConfig.read(self.config)
        there = config.data
        if there.fingerprint and there != data:
            otherwise = ""
            if there.distribution != data.distribution:
                otherwise = f", or otherwise distributed ({there.distribution or 'not'} there)"
            raise input_error(
                f"--output_dir={self.path}",
                f"the run there was begun on other content of {there.name}{otherwise}",
                "Choose another directory, or give --overwrite to train again",
            )
        self.write_config(dataclasses.replace(config, data=data))


def check_run(run: Path, *, finished: bool, best: bool) -> None:
    """Checks that files are as written; whole parts are missed only in a finished run."""
    for name, note in Folder.read(run, _RUN, remedy=_REMEDY).files.items():
        part = run / name.split("/")[0]
        is_expected = part.exists() or (finished and part.suffix)
        if is_expected and (damage := damage_to(run, {name: note})):
            raise input_error(run / name, f"the run is damaged: {damage}", _REMEDY)
    states = SavedStates(run / "checkpoints", BEST)
    if best and (number := states.latest()):
        states.checked(number)


def sweep(run: RunDirectory) -> None:
    """Deletes what killed processes have left in a run; only for the process that trains it."""
    for directory in filter(Path.is_dir, (run.path, run.checkpoints)):
        delete_in(directory)


def _flag_text(settings: RunSettings) -> str:
    return "\n".join(settings.flag_lines()) + "\n"


def _check_free(run: RunDirectory, settings: RunSettings, overwrite: bool) -> None:
    """Checks that a directory without a run holds nothing that a new run would overwrite."""
    # A run that was killed before it wrote config.json may have left flags.txt and
    # temporary files.
    others = names_in(run.path) - {_LOCK, _DATA}
    if run.flags.is_file() and run.flags.read_bytes() == _flag_text(settings).encode():
        others -= {run.flags.name, MANIFEST}
    in_the_way = sorted(others.intersection(run._parts()))
    if in_the_way:
        raise input_error(
            f"--output_dir={run.path}",
            f"it holds no run, but has {', '.join(in_the_way)}, which a run would overwrite",
            "Choose another directory",
        )
    if others and not overwrite:
        raise input_error(
            f"--output_dir={run.path}",
            "it is not empty and holds no run",
            "Choose another directory, or give --overwrite to write into this one",
        )
