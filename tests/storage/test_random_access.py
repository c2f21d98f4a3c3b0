"""Reading parts of a file."""

import os

import numpy as np
import pytest

from tests.cases import cases
from tf_smoothclir.storage import random_access
from tf_smoothclir.storage.random_access import RandomAccess, StoredMatrix
from tf_smoothclir.utils.errors import InputError


@pytest.fixture(name="file")
def _file(tmp_path):
    np.arange(100, dtype="<i4").tofile(tmp_path / "values")
    return RandomAccess(tmp_path / "values", "<i4")


@cases(
    "parts",
    [],
    [(7, 0)],
    [(0, 100)],
    [(90, 10), (0, 3), (3, 0), (3, 4), (7, 1), (2, 5)],
    ids=["none", "empty", "all", "some, which overlap and follow each other"],
)
@cases("most", 3, 1 << 20)
def test_values_of_parts_come_in_their_order(file, parts, most, monkeypatch):
    read = os.pread  # which may read less than it is asked for
    monkeypatch.setattr(
        random_access.os, "pread", lambda file, size, at: read(file, min(size, most), at)
    )
    begins, lengths = np.array(parts, np.int64).reshape(-1, 2).T
    expected = [place for begin, length in parts for place in range(begin, begin + length)]
    assert file.parts(begins, lengths).tolist() == expected
    for begin, length in parts:
        found = np.frombuffer(file.part(begin, length), "<i4")
        assert found.tolist() == list(range(begin, begin + length))
    assert len(file) == 100


def test_a_file_that_was_cut_is_an_error_that_names_it(file):
    os.truncate(file.path, 4 * 99)
    assert file.parts(np.array([98]), np.array([1])).tolist() == [98]
    with pytest.raises(InputError, match=r"values: it ends too early\. Build the index again"):
        file.parts(np.array([98]), np.array([2]))


def test_the_file_is_closed_with_its_reader(file):
    reader = RandomAccess(file.path, "<i4")
    number = reader._file
    os.fstat(number)
    del reader
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)


def test_rows_of_a_stored_matrix_are_those_of_the_matrix(file):
    expected, stored = np.arange(100).reshape(20, 5), StoredMatrix(file.path, "<i4", 5)
    assert (len(stored), stored.shape) == (20, (20, 5))
    for rows in (slice(18, 30), slice(0, 0), np.array([7, 8, 3, 3]), np.zeros(0, np.int64)):
        assert stored[rows].tolist() == expected[rows].tolist()
