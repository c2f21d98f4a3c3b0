"""Rows of different lengths on disk, read by NumPy and gathered by TensorFlow."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.full_disk import room_for
from tf_smoothclir.data import tokenized_set
from tf_smoothclir.data.pipeline import gather_rows, mapped_tensors
from tf_smoothclir.data.tokenized_set import RaggedStore, RaggedWriter, copy_mapped

ROWS = [[], [7, 8, 9], [1], [], [2, 2], []]


def write(directory, rows, dtype="<i4", rows_per_call=2):
    with RaggedWriter(directory, "rows", dtype) as writer:
        for begin in range(0, len(rows), rows_per_call):
            part = rows[begin : begin + rows_per_call]
            values = np.array([value for row in part for value in row], dtype)
            writer.add(values, np.array([len(row) for row in part], np.int32))
    return RaggedStore(directory, "rows", dtype)


def gathered(store, rows):
    values, lengths, of_row = gather_rows(*mapped_tensors(store), tf.constant(rows, tf.int64))
    assert lengths.dtype == of_row.dtype == tf.int32
    np.testing.assert_array_equal(of_row, np.repeat(range(len(rows)), lengths))
    return [part.tolist() for part in np.split(values.numpy(), np.cumsum(lengths)[:-1])]


@pytest.mark.parametrize("rows", [[], [[], []]])  # files without a byte cannot be mapped
def test_a_store_without_values_is_read(tmp_path, rows):
    store = write(tmp_path, rows)
    assert (len(store), store.values.shape) == (len(rows), (0,))
    assert gathered(store, list(range(len(rows)))) == (rows or [[]])


@pytest.mark.parametrize("rows_per_call", [1, 4, 6])
def test_rows_are_read_back_however_they_were_added(tmp_path, rows_per_call):
    store = write(tmp_path, ROWS, rows_per_call=rows_per_call)
    assert len(store) == 6
    assert [store[row].tolist() for row in range(6)] == ROWS
    assert store.lengths.tolist() == [0, 3, 1, 0, 2, 0]
    assert gathered(store, [5, 1, 1, 0, 3]) == [[], ROWS[1], ROWS[1], [], []]
    values, lengths, _ = gather_rows(*mapped_tensors(store), tf.zeros([0], tf.int64))
    assert (values.shape, lengths.shape) == ((0,), (0,))
    assert isinstance(store.values.base, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        store.values[0] = 5


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux tells what is mapped")
def test_tensors_are_the_mapped_file_not_a_copy_of_it(tmp_path):
    values, _ = mapped_tensors(write(tmp_path, ROWS))
    address = np.asarray(memoryview(values)).ctypes.data
    mapped = [line for line in Path("/proc/self/maps").read_text().splitlines() if "rows.v" in line]
    begins = [int(line.split("-")[0], 16) for line in mapped]
    assert address in begins


def test_files_are_little_endian_without_a_header(tmp_path):
    write(tmp_path, [[1], [258]])
    assert (tmp_path / "rows.values").read_bytes() == bytes([1, 0, 0, 0, 2, 1, 0, 0])
    offsets = b"".join(offset.to_bytes(8, "little") for offset in (0, 1, 2))
    assert (tmp_path / "rows.offsets").read_bytes() == offsets
    store = write(tmp_path, [list("é".encode()), [0]], "u1")  # bytes as values
    assert gathered(store, [1, 0]) == [[0], [0xC3, 0xA9]]


@pytest.mark.parametrize("piece", [1, 4, 100])
@pytest.mark.parametrize("rows", [ROWS, [[], []], []])
def test_copy_mapped(tmp_path, monkeypatch, rows, piece):
    monkeypatch.setattr(tokenized_set, "_VALUES_PER_PIECE", piece)
    write(tmp_path, rows)
    (tmp_path / "copy").mkdir()
    copy_mapped(tmp_path, tmp_path / "copy", "rows", np.arange(10, dtype=np.int32) ** 2)
    store = RaggedStore(tmp_path / "copy", "rows", "<i4")
    assert [row.tolist() for row in store] == [[value**2 for value in row] for row in rows]


@pytest.mark.parametrize("missing", [1, 4, 20])
def test_a_disk_that_fills_with_the_last_bytes_is_an_error(tmp_path, missing):
    # `ndarray.tofile` lost them without a word.
    rows = [[1, 2, 3, 4, 5]] * 3  # 60 bytes of values and 32 of offsets
    with room_for(60 - missing), pytest.raises(OSError, match="File too large"):
        write(tmp_path, rows)
    with room_for(60):
        write(tmp_path, rows)
