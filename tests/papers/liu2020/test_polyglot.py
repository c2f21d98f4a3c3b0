"""Polyglot pickles: real ones are converted, hostile or damaged ones are refused and never run."""

import pickle
import struct

import numpy as np
import pytest

from tests.cases import cases
from tf_smoothclir.papers.liu2020 import polyglot
from tf_smoothclir.text.embeddings import load_embeddings
from tf_smoothclir.utils.errors import InputError

WORDS = ["<UNK>", "<S>", "</S>", "<PAD>", "été", "Ünï", "中文", "Ã©"]
ROWS = np.arange(24, dtype="f4").reshape(8, 3) / 8


# The opcodes that Python 2 writes for its two kinds of string; Python 3 writes neither BINSTRING.
def py2_str(data: bytes) -> bytes:
    return b"U" + bytes([len(data)]) + data  # SHORT_BINSTRING


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


UNICODE = [py2_unicode(word) for word in WORDS]
POLYGLOT = py2_polyglot(UNICODE, py2_array(ROWS))


@pytest.fixture
def convert(tmp_path):
    """`convert(bytes)` converts; returns numbers of words and dimensions."""

    def write_and_convert(data, *words):
        (tmp_path / "in.pkl").write_bytes(data)
        return polyglot.convert_polyglot(tmp_path / "in.pkl", tmp_path / "out.vec", *words)

    return write_and_convert


PICKLES = {
    "unicode": POLYGLOT,
    "str": py2_polyglot([py2_str(word.encode()) for word in WORDS], py2_array(ROWS)),
    "fortran": py2_polyglot(UNICODE, py2_array(ROWS, fortran=True)),
    "big-endian": py2_polyglot(UNICODE, py2_array(ROWS.astype(">f4"), order=b">")),
    "float64": py2_polyglot(UNICODE, py2_array(ROWS.astype("f8"), dtype=b"f8")),
    **{f"today {n}": pickle.dumps((tuple(WORDS), ROWS), protocol=n) for n in (2, 3, 4)},
}


@cases("kind", *PICKLES)
def test_words_and_rows_of_every_kind_of_pickle(kind, convert, tmp_path):
    assert convert(PICKLES[kind], tmp_path / "words.txt") == (5, 3)
    # "Ã©" only looks like UTF-8 read as latin1.
    vocabulary = ["[PAD]", "[UNK]", "été", "ünï", "中文", "Ã©", "<s>", "<pad>"]
    matrix, found, _, _ = load_embeddings(tmp_path / "out.vec", vocabulary, dim=3, seed=0)
    np.testing.assert_array_equal(matrix[1:6], ROWS[[0, 4, 5, 6, 7]])  # <UNK> is [UNK]
    assert found == 4  # "<S>" and "<PAD>" are gone
    assert (tmp_path / "words.txt").read_text("utf-8").split("\n") == ["[UNK]", *WORDS[4:], ""]


@pytest.fixture
def refused(convert, tmp_path):
    """`refused(bytes, message)` checks that nothing was run or written."""

    def check(data, message):
        with pytest.raises(InputError, match=message) as error:
            convert(data)
        assert len(str(error.value)) < 1000
        assert list(tmp_path.iterdir()) == [tmp_path / "in.pkl"]

    return check


def test_command_in_a_pickle_is_refused_by_name_and_not_run(refused, tmp_path):
    run = tmp_path / "run"
    call = b"\x80\x02cos\nsystem\n" + py2_unicode(f"touch {run}") + b"\x85R."
    refused(call, r"in\.pkl: the pickle refers to os\.system, which is refused and not run")
    stack_global = b"\x80\x04" + py2_unicode("builtins") + py2_unicode("eval") + b"\x93."
    refused(stack_global, r"refers to builtins\.eval, which is refused and not run")
    pickle.loads(call)  # an ordinary unpickler runs it
    assert run.exists()


def nested(levels):
    """Opcodes of a tuple of two equal tuples of two equal tuples ..."""
    return b"(t" + b"".join(b"2\x86" for _ in range(levels))


NO_WORDS = "is not a pickle of words and embeddings"
CONTENTS = [
    (WORDS[:-1], ROWS, r"the embeddings \(8, 3\) do not have one row per word"),
    *(([*WORDS[:-1], word], ROWS, "word 8 is not text") for word in (7, b"\xff", "\ud800")),
    (WORDS, np.where(np.isclose(ROWS, ROWS[5, 1]), np.nan, ROWS), r"word 6 is not finite"),
    (WORDS, np.array([["x"]], object), r"numbers of type O"),
    (WORDS, ROWS.tolist(), NO_WORDS),
]
HOSTILE = [
    *((pickle.dumps((words, rows), protocol=3), message) for words, rows, message in CONTENTS),
    (py2_polyglot(UNICODE, py2_array(ROWS, shape=(1 << 30, 1 << 30))), "96 bytes for shape"),
    (py2_polyglot(UNICODE, py2_array(ROWS, shape=(-1, -24))), r"shape \(-1, -24\)"),
    (py2_polyglot(UNICODE, py2_array(ROWS, shape=(24,))), "do not have one row per word"),
    (b"\x80\x02cnumpy\nload\n.", "to numpy.load"),
    # LONG_BINPUT to the last index: the C unpickler would allocate a memo of 64 GB for it.
    (b"\x80\x02Nr\xff\xff\xff\xff.", NO_WORDS),
    # Hashing or quoting 2^60 tuples would take for ever: a key, an encoding, an entry of a set.
    (b"\x80\x02}" + nested(60) + b"K\x01s.", NO_WORDS),
    (b"\x80\x02c_codecs\nencode\nX\x01\0\0\0a" + nested(60) + b"\x86R.", NO_WORDS),
    (b"\x80\x04\x8f(" + nested(60) + b"\x90.", NO_WORDS),
]


@cases("data, message", *HOSTILE)
def test_hostile_pickles_are_refused_and_cannot_hang_the_converter(data, message, refused):
    refused(data, message)


def test_size_caps(refused, monkeypatch):
    monkeypatch.setattr(polyglot, "MAX_ARRAY_BYTES", ROWS.nbytes - 1)
    refused(POLYGLOT, rf"{ROWS.nbytes} bytes for shape \(8, 3\), at most {ROWS.nbytes - 1}")
    monkeypatch.setattr(polyglot, "MAX_FILE_BYTES", len(POLYGLOT) - 1)
    refused(POLYGLOT, rf"has {len(POLYGLOT)} bytes, more than {len(POLYGLOT) - 1}")


def test_file_cut_anywhere_is_refused(refused):
    for size in range(len(POLYGLOT)):
        # Cut inside a name, a global becomes another one.
        refused(POLYGLOT[:size], r"in\.pkl: (this is not a pickle|the pickle refers to )")


def test_files_that_cannot_be_read_or_written_are_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.pkl: the file cannot be read"):
        polyglot.convert_polyglot(tmp_path / "nowhere.pkl", tmp_path / "out.vec")
    (tmp_path / "in.pkl").write_bytes(POLYGLOT)
    with pytest.raises(InputError, match="nowhere: the directory cannot be written to"):
        polyglot.convert_polyglot(tmp_path / "in.pkl", tmp_path / "nowhere" / "out.vec")
