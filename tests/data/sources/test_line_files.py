import re

import pytest

from tf_smoothclir.data.sources.line_files import pieces_of, read_jsonl, read_lines, read_tsv
from tf_smoothclir.utils.errors import InputError


@pytest.fixture
def write(tmp_path):
    def write_bytes(content):
        (tmp_path / "file").write_bytes(content)
        return tmp_path / "file"

    return write_bytes


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"a\nb\n \t\r\n\n", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\r\r\nb\r", ["a\r", "b"]),  # one end of a line only
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
        (b" a \x00 \n", [" a \x00 "]),
        ("été\u2028\x85x\n".encode(), ["été\u2028\x85x"]),
    ],
)
def test_lines_are_returned_unchanged(write, content, lines):
    assert list(read_lines(write(content))) == list(enumerate(lines, start=1))


def read_two_columns(path):
    return read_tsv(path, ("id", "text"))


BAD_FILES = [
    (read_lines, b"", "", "the file is empty", "Give it one record per line"),
    (read_lines, b"\xef\xbb\xbf\n", "", "the file is empty", "Give it one record per line"),
    (read_lines, b"\na\n", ":1", "the line is blank", "Remove it"),
    (read_lines, b"a\n \t\r\n\nb\n", ":2", "the line is blank", "Remove it"),
    (read_two_columns, b"id\ttext\n1\ta\n", ":1", "the line is a header (id, text)", "Remove"),
    (read_two_columns, b"#ID\tCorpus-ID\n", ":1", "the line is a header (#ID,", "Remove it: "),
    (read_lines, b"ab\ncd\xe9f\n", ":2", "byte 0xe9 at offset 5 of the file", "Convert the file"),
    (read_lines, b"\xef\xbb\xbfa\xff\n", ":1", "byte 0xff at offset 4 of", "Convert the file"),
    (read_two_columns, b"1\ta\n2\n", ":2", "1 tab-separated columns instead of 2", "Put one tab"),
    (read_jsonl, b'{"a": 1}\n{"a": \n', ":2", "the line is not JSON (Expecting value", "Give one"),
    (read_jsonl, b"[1]\n", ":1", "a JSON list instead of an object", "Give one object per line"),
    (read_jsonl, b'{"a": "\\ud800"}\n', ":1", "the line is not JSON ('utf-8' codec", "Give one"),
    (read_jsonl, b"[" * 100_000 + b"\n", ":1", "the line is not JSON (", "Give one JSON object"),
]


@pytest.mark.parametrize(("read", "content", "line", "reason", "remedy"), BAD_FILES)
def test_a_bad_file_is_an_error(write, read, content, line, reason, remedy):
    path = write(content)
    expected = f"{re.escape(f'{path}{line}: {reason}')}.*{re.escape(f'. {remedy}')}"
    with pytest.raises(InputError, match=f"^{expected}"):
        list(read(path))


def test_records_are_streamed_and_a_missing_file_is_an_error(write, tmp_path):
    assert next(read_two_columns(write(b"1\ta\n2\n"))) == (1, ["1", "a"])  # before a bad line
    assert list(read_jsonl(write(b'{"a": "\\ud83d\\ude00"}\n'))) == [(1, {"a": "😀"})]
    expected = f"{tmp_path / 'absent'}: cannot be read: No such file or directory. Check the path."
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
        list(read_lines(tmp_path / "absent"))


@pytest.mark.parametrize("size", [1, 3, 8, 13, 1000])
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_pieces_of_a_file_are_the_file(write, size, end):
    path = write(("\ufeffone\ntwo two\r\nä\n" + "long " * 9 + "\nlast" + end).encode())
    pieces = list(pieces_of(path, size))
    assert [line for piece in pieces for line in read_lines(path, piece)] == list(read_lines(path))
    assert [piece.begin for piece in pieces[1:]] == [piece.end for piece in pieces[:-1]]
    assert len(pieces) == (5 if size < 5 else 1 if size == 1000 else len(pieces))


def test_an_error_in_a_piece_names_the_line_of_the_file(write):
    for content, message in (
        (b"one\n\nthree\n", "file:2: the line is blank"),  # at the end of a piece
        (b"one\ntwo\nthree\n\xff\n", r"file:4: byte 0xff at offset 14"),
    ):
        path = write(content)
        with pytest.raises(InputError, match=message):
            [line for piece in pieces_of(path, 1) for line in read_lines(path, piece)]
