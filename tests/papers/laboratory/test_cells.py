"""Cells in processes of their own: independent of each other, each done once, resumed."""

import errno
import os
import re
from pathlib import Path

import pytest

from tests.papers.laboratory.fakes import study_in
from tests.training.tiny_set import tiny_settings, write_tiny_set
from tf_smoothclir.papers.laboratory import cell_processes, cells
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.training.train import train
from tf_smoothclir.utils.errors import InputError

pytestmark = pytest.mark.slow


class QuickCell:
    """A cell that trains nothing: it notes its process, and fails if its name is "bad"."""

    def __init__(self, directory: Path, name: str):
        self.name, self.path = name, directory / "cells" / name
        self.log = self.path.with_name(f"{name}.log")

    is_of_other_code = False

    @property
    def finished(self):
        return self.path.is_dir()

    def complete(self):
        print(f"{self.name} in process {os.getpid()}")
        if self.name == "bad":
            raise InputError("missing.vec: there is no such file. Give another one.")
        self.path.mkdir()


def test_cells_run_side_by_side_and_a_failing_one_says_why_in_its_log(tmp_path, caplog):
    good, bad, done = (QuickCell(tmp_path, name) for name in ("good", "bad", "done"))
    done.path.mkdir(parents=True)
    good.is_of_other_code = True
    with caplog.at_level("WARNING", "absl"):
        assert cell_processes.run_cells([bad, good, good, done], processes=2) == [bad]
    assert "1 of 3 cells are there of other versions of the code" in caplog.text
    assert good.finished
    assert not done.log.exists()
    pids = [re.findall(r"in process (\d+)", cell.log.read_text()) for cell in (good, bad)]
    assert len({str(os.getpid()), *pids[0], *pids[1]}) == 1 + sum(map(len, pids)) == 3
    assert "error: missing.vec: there is no such file." in bad.log.read_text()
    assert "Traceback" not in bad.log.read_text()


def exit_code(error):
    def complete():
        raise error

    return cell_processes._exit_code(complete)


def test_a_bug_in_a_cell_leaves_its_stack_trace(capfd):
    assert exit_code(ZeroDivisionError("of a bug")) == 1
    assert re.search("Traceback.*ZeroDivisionError: of a bug", capfd.readouterr().err, re.DOTALL)


def test_a_full_disk_ends_all_cells_and_names_the_one(tmp_path):
    """What is chosen among cells would otherwise be chosen without those that found no room."""
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    explained = InputError("out.npz: it cannot be written. Check the path.")
    explained.__cause__ = full
    for code in map(exit_code, (full, explained)):
        with pytest.raises(OSError, match=r"No space left on device: '.*cells/full'"):
            cell_processes._report(QuickCell(tmp_path, "full"), code)


def test_a_cell_continues_after_its_data_have_moved(tmp_path):
    data_dir = write_tiny_set(tmp_path / "tiny")
    settings = tiny_settings(data_dir, tmp_path / "cache", epochs=1)
    cell = cells.TrainingCell(study_in(tmp_path), settings)
    train(settings, cell.path)
    moved = changed(settings, {"data_dir": str(data_dir.rename(tmp_path / "moved"))})
    again = cells.TrainingCell(study_in(tmp_path), moved)
    assert again.path == cell.path
    again.complete()
    assert again.score_counts().sum() > 0
