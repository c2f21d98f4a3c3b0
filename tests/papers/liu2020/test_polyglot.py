"""Polyglot pickles: real ones are converted, hostile or damaged ones are refused and never run."""

import pathlib
import pickle
import struct
import subprocess
import sys

import numpy as np
import pytest

from tf_smoothclir.papers.liu2020 import polyglot
from tf_smoothclir.papers.liu2020.polyglot import convert_polyglot
from tf_smoothclir.text.embeddings import load_embeddings
from tf_smoothclir.utils.errors import InputError

CHECKOUT = pathlib.Path(__file__).parents[3]
WORDS = ["<UNK>", "<S>", "</S>", "<PAD>", "été", "Ünï", "中文", "Ã©"]
ROWS = np.arange(24, dtype="f4").reshape(8, 3) / 8


# The opcodes that Python 2 writes for its two kinds of string; Python 3 writes neither BINSTRING.


def py2_str(data: bytes) -> bytes:
    if len(data) < 256:
        return b"U" + bytes([len(data)]) + data  # SHORT_BINSTRING
    return b"T" + struct.pack("<i", len(data)) + data  # BINSTRING


def py2_unicode(text: str) -> bytes:
    data = text.encode("utf-8")
    return b"X" + struct.pack("<I", len(data)) + data


def py2_array(array, dtype=b"f4", order=b"<", shape=None, fortran=False) -> bytes:
    shape = array.shape if shape is None else shape
    integers = b"".join(b"J" + struct.pack("<i", length) for length in shape)
    raw = array.tobytes(order="F" if fortran else "C")
    return (
        b"cnumpy.core.multiarray\n_reconstruct\n"
        + (b"cnumpy\nndarray\n" + b"K\x00\x85" + py2_str(b"b") + b"\x87R")
        + (b"(K\x01" + b"(" + integers + b"t")
        + (b"cnumpy\ndtype\n" + py2_str(dtype) + b"K\x00K\x01\x87R")
        + (b"(K\x03" + py2_str(order) + b"NNN" + b"J\xff\xff\xff\xff" * 2 + b"K\x00tb")
        + ((b"\x88" if fortran else b"\x89") + py2_str(raw) + b"tb")
    )


def py2_polyglot(words, array) -> bytes:
    """A protocol 2 pickle of (words, embeddings), both already pickled."""
    return b"\x80\x02(" + b"".join(words) + b"t" + array + b"\x86."


def write(path, data: bytes):
    path.write_bytes(data)
    return path


def read_back(path):
    vocabulary = ["[PAD]", "[UNK]", "été", "ünï", "中文", "<s>", "<pad>"]
    return load_embeddings(path, vocabulary, dim=3, seed=0)


def test_the_hand_made_bytes_are_what_pickle_and_numpy_read():
    data = py2_polyglot([py2_unicode(word) for word in WORDS], py2_array(ROWS))
    words, rows = pickle.loads(data, encoding="latin1")
    assert list(words) == WORDS
    np.testing.assert_array_equal(rows, ROWS)


@pytest.mark.parametrize(
    "string", [py2_unicode, lambda word: py2_str(word.encode())], ids=["unicode", "str"]
)
def test_round_trip_of_either_python_2_string(string, tmp_path):
    data = py2_polyglot([string(word) for word in WORDS], py2_array(ROWS))
    assert convert_polyglot(write(tmp_path / "in.pkl", data), tmp_path / "out.vec") == (5, 3)
    matrix, found, _, _ = read_back(tmp_path / "out.vec")
    np.testing.assert_array_equal(matrix[1:5], ROWS[[0, 4, 5, 6]])  # <UNK> is [UNK]
    assert found == 3  # "<S>" and "<PAD>" are gone
    # Letters that only look like UTF-8 read as latin1 stay as they are.
    again = load_embeddings(tmp_path / "out.vec", ["[PAD]", "[UNK]", "Ã©"], dim=3, seed=0)
    np.testing.assert_array_equal(again.matrix[2], ROWS[7])


def test_the_words_alone_are_written_for_a_vocabulary(tmp_path):
    data = py2_polyglot([py2_unicode(word) for word in WORDS], py2_array(ROWS))
    written = tmp_path / "words.txt"
    convert_polyglot(write(tmp_path / "in.pkl", data), tmp_path / "out.vec", written)
    kept = [word for word in WORDS if word not in ("<UNK>", "<S>", "</S>", "<PAD>")]
    assert written.read_text("utf-8").split("\n") == ["[UNK]", *kept, ""]


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_pickles_written_by_todays_python_and_numpy(protocol, tmp_path):
    path = write(tmp_path / "in.pkl", pickle.dumps((tuple(WORDS), ROWS), protocol=protocol))
    assert convert_polyglot(path, tmp_path / "out.vec") == (5, 3)
    np.testing.assert_array_equal(read_back(tmp_path / "out.vec").matrix[2], ROWS[4])


@pytest.mark.parametrize(
    "array",
    [
        py2_array(ROWS, fortran=True),
        py2_array(ROWS.astype(">f4"), order=b">"),
        py2_array(ROWS.astype("f8"), dtype=b"f8"),
    ],
    ids=["fortran", "big-endian", "float64"],
)
def test_layouts_of_the_array(array, tmp_path):
    data = py2_polyglot([py2_unicode(word) for word in WORDS], array)
    convert_polyglot(write(tmp_path / "in.pkl", data), tmp_path / "out.vec")
    np.testing.assert_array_equal(read_back(tmp_path / "out.vec").matrix[1:5], ROWS[[0, 4, 5, 6]])


# ---- hostile files ------------------------------------------------------------------------------


def refused(tmp_path, data: bytes, message: str):
    path = write(tmp_path / "in.pkl", data)
    with pytest.raises(InputError, match=message):
        convert_polyglot(path, tmp_path / "out.vec")
    assert list(tmp_path.iterdir()) == [path]  # no output, no half of one, nothing was run


@pytest.mark.parametrize(
    ("module", "name"),
    [("os", "system"), ("posix", "system"), ("subprocess", "check_output"), ("builtins", "eval")],
)
def test_command_in_a_pickle_is_refused_by_name_and_not_run(module, name, tmp_path):
    command = f"touch {tmp_path / 'run'}".encode()
    if name == "eval":
        command = f"open({str(tmp_path / 'run')!r}, 'w')".encode()
    call = f"c{module}\n{name}\n".encode() + py2_unicode(command.decode()) + b"\x85R"
    refused(tmp_path, b"\x80\x02" + call + b".", rf"in\.pkl: the pickle refers to {module}\.{name}")
    stack_global = b"\x80\x04" + py2_unicode(module) + py2_unicode(name) + b"\x93."
    refused(tmp_path, stack_global, rf"refers to {module}\.{name}, which is refused and not run")


def test_the_command_would_run_in_an_ordinary_unpickler(tmp_path):
    marker = tmp_path / "run"
    data = b"\x80\x02cos\nsystem\n" + py2_unicode(f"touch {marker}") + b"\x85R."
    pickle.loads(data)
    assert marker.exists()


@pytest.mark.parametrize("name", ["load", "core.multiarray.fromfile", "ndarray.tofile", "memmap"])
def test_other_numpy_functions_are_refused(name, tmp_path):
    module, _, last = f"numpy.{name}".rpartition(".")
    refused(tmp_path, f"\x80\x02c{module}\n{last}\n.".encode("latin1"), rf"refers to {module}\.")


def test_object_arrays_are_refused(tmp_path):
    array = pickle.dumps((("a",), np.array([["x"]], object)), protocol=2)
    refused(tmp_path, array, "numbers of type O")


def test_memo_index_that_reserves_gigabytes_is_harmless(tmp_path):
    # LONG_BINPUT to the last index: the C unpickler would allocate a memo of 64 GB for it.
    refused(tmp_path, b"\x80\x02Nr\xff\xff\xff\xff.", "is not a pickle of words and embeddings")


@pytest.mark.parametrize("shape", [(1 << 30, 1 << 30), (-1, -24), (4, 3), (8, 4), (24,), (8, 3, 1)])
def test_shape_that_does_not_match_the_data_is_refused(shape, tmp_path):
    words = [py2_unicode(word) for word in WORDS]
    data = py2_polyglot(words, py2_array(ROWS, shape=shape))
    refused(tmp_path, data, r"bytes for shape|is not a pickle|do not have one row per word")


def test_size_caps(tmp_path, monkeypatch):
    data = py2_polyglot([py2_unicode(word) for word in WORDS], py2_array(ROWS))
    monkeypatch.setattr(polyglot, "MAX_ARRAY_BYTES", ROWS.nbytes - 1)
    refused(tmp_path, data, rf"{ROWS.nbytes} bytes for shape \(8, 3\), at most {ROWS.nbytes - 1}")
    monkeypatch.setattr(polyglot, "MAX_FILE_BYTES", len(data) - 1)
    refused(tmp_path, data, rf"has {len(data)} bytes, more than {len(data) - 1}")


# ---- damaged files ------------------------------------------------------------------------------


def test_file_cut_anywhere_is_refused(tmp_path):
    data = py2_polyglot([py2_unicode(word) for word in WORDS], py2_array(ROWS))
    for size in range(len(data)):
        # Cut inside a name, a global becomes another one.
        refused(tmp_path, data[:size], r"in\.pkl: (this is not a pickle|the pickle refers to )")


@pytest.mark.parametrize(
    ("words", "rows", "message"),
    [
        (WORDS[:-1], ROWS, r"the embeddings \(8, 3\) do not have one row per word"),
        ([*WORDS[:-1], 7], ROWS, r"word 8 is not text"),
        ([*WORDS[:-1], b"\xff"], ROWS, r"word 8 is not text"),
        ([*WORDS[:-1], "\ud800"], ROWS, r"word 8 is not text"),
        (WORDS, np.where(np.isclose(ROWS, ROWS[5, 1]), np.nan, ROWS), r"word 6 is not finite"),
        (WORDS, ROWS.astype("i4"), r"numbers of type i4"),
        (WORDS, ROWS.tolist(), r"is not a pickle of words and embeddings"),
    ],
)
def test_content_that_is_not_words_with_finite_rows_is_refused(words, rows, message, tmp_path):
    refused(tmp_path, pickle.dumps((words, rows), protocol=3), message)


def test_a_word_without_characters_is_kept_like_any_other(tmp_path):
    path = write(tmp_path / "in.pkl", pickle.dumps(([*WORDS[:-1], ""], ROWS), protocol=3))
    words, _ = convert_polyglot(path, tmp_path / "out.vec")
    assert (
        words
        == convert_polyglot(
            write(tmp_path / "in.pkl", pickle.dumps((WORDS, ROWS), protocol=3)),
            tmp_path / "all.vec",
        )[0]
    )


def test_missing_input_and_output_directory_are_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.pkl: the file cannot be read"):
        convert_polyglot(tmp_path / "nowhere.pkl", tmp_path / "out.vec")
    path = write(tmp_path / "in.pkl", pickle.dumps((WORDS, ROWS), protocol=2))
    with pytest.raises(InputError, match=r"out\.vec: the file cannot be written"):
        convert_polyglot(path, tmp_path / "nowhere" / "out.vec")


def test_command_line(tmp_path):
    path = write(tmp_path / "in.pkl", pickle.dumps((WORDS, ROWS), protocol=2))
    output = tmp_path / "out.vec"

    def run(source):
        command = [sys.executable, "-m", "tf_smoothclir.papers.liu2020.convert_polyglot"]
        command += [f"--input={source}", f"--output={output}"]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=CHECKOUT)

    done = run(path)
    assert done.returncode == 0, done.stderr
    assert "5 words of dimension 3" in done.stdout
    assert read_back(output).found == 3
    failed = run(tmp_path / "nowhere.pkl")
    assert failed.returncode == 1
    assert "nowhere.pkl: the file cannot be read" in failed.stderr
    assert "Traceback" not in failed.stderr


def nested(levels):
    """Opcodes of a tuple of two equal tuples of two equal tuples ..."""
    return b"(t" + b"".join(b"2\x86" for _ in range(levels))


BOMBS = {
    "hashed": b"\x80\x02}" + nested(60) + b"K\x01s.",
    "quoted encoding": b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00a" + nested(60) + b"\x86R.",
    "set": b"\x80\x04\x8f(" + nested(60) + b"\x90.",
}


@pytest.mark.parametrize("content", BOMBS.values(), ids=BOMBS.keys())
def test_a_small_pickle_cannot_hang_the_converter(content, tmp_path):
    """Quoting or hashing 2^60 tuples would take for ever."""
    assert len(content) < 200
    (tmp_path / "in.pkl").write_bytes(content)
    with pytest.raises(InputError, match="not a pickle of words") as error:
        convert_polyglot(tmp_path / "in.pkl", tmp_path / "out.vec")
    assert len(str(error.value)) < 1000
