"""Lines of files, and tables of them: every defect has a file, a line and a remedy."""

import functools
import gzip
import re

import pytest

from tf_smoothclir.data.sources import line_files, tables
from tf_smoothclir.data.sources.columns import SPLITS, TEXTS
from tf_smoothclir.utils.errors import InputError

ROWS = [["1", "a,b"], ["2", 'c "d"']]


@pytest.fixture
def write(tmp_path):
    def write_bytes(content, name="file"):
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

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
    assert list(line_files.read_lines(write(content))) == list(enumerate(lines, start=1))


texts = functools.partial(tables.read_table, role=TEXTS)
NOT = "Give one JSON object per line"
CUT = gzip.compress(b"a\n", mtime=0)[:-9]
BAD_FILES = [
    ("f", b"", "", "the file is empty", "Give it one record per line"),
    ("f", b"\xef\xbb\xbf\n", "", "the file is empty", "Give it one record per line"),
    ("f", b"\na\n", ":1", "the line is blank", "Remove it"),
    ("f", b"a\n \t\r\n\nb\n", ":2", "the line is blank", "Remove it"),
    ("f", b"ab\ncd\xe9f\n", ":2", "byte 0xe9 at offset 5 of the file", "Convert the file"),
    ("f", b"\xef\xbb\xbfa\xff\n", ":1", "byte 0xff at offset 4 of", "Convert the file"),
    ("f.gz", b"a\n", "", "cannot be read: Not a gzipped file", "Check the path"),
    ("f.gz", CUT, "", "cannot be read: Compressed file ended", "Check the path"),
    ("f.tsv", b"id\tdocument\n1\ta\tb\n", ":2", "3 tab-separated columns instead of 2", "Put one"),
    ("f.tsv", b"#ID\tCorpus-ID\n", ":1", "there is no column 'text'; there are: #ID, C", "Rename"),
    ("f.tsv", b"u\ttext\tx\n1\ta\t2\n", ":1", "there is no column 'id'; there are: u", "Rename"),
    ("f.tsv", b"1\ta\t2\n", ":1", "3 tab-separated columns instead of 2 (id, text)", "Put one"),
    ("f.tsv", b"1\ta\n2\n", ":2", "1 tab-separated columns instead of 2 (id, text)", "Put one tab"),
    ("f.csv", b"", "", "the file is empty", "Give it one record per line"),
    ("f.csv", b"id,text\n", "", "the file is empty", "Give it one record per line"),
    ("f.csv", b"id,own\n1,a\n", ":1", "there is no column 'text'; there are: id, own", "Rename"),
    ("f.csv", b"id,text\n1,a\n2,a,b\n", ":3", "3 values instead of 2, as in the", "Put texts"),
    ("f.csv", b'id,text\n1,"a\nb"c\n', ":2", "this is no CSV (',' expected after", "Put texts"),
    ("f.csv", b'id,text\n1,a\n2,"b\n', ":3", "this is no CSV (unexpected end of", "Put texts"),
    ("f.jsonl", b'{"id": 1, "text": "a"}\n{"a": \n', ":2", "the line is not JSON (Expecting", NOT),
    ("f.jsonl", b"[1]\n", ":1", "a JSON list instead of an object", "Give one object per line"),
    ("f.jsonl", b'{"a": "\\ud800"}\n', ":1", "the line is not JSON ('utf-8' codec", NOT),
    ("f.jsonl", b"[" * 100_000 + b"\n", ":1", "the line is not JSON (", NOT),
]


@pytest.mark.parametrize(("name", "content", "line", "reason", "remedy"), BAD_FILES)
def test_a_bad_file_is_an_error(write, name, content, line, reason, remedy):
    path = write(content, name)
    expected = f"{re.escape(f'{path}{line}: {reason}')}.*{re.escape(f'. {remedy}')}"
    with pytest.raises(InputError, match=f"^{expected}"):
        list((texts if "." in name.removesuffix(".gz") else line_files.read_lines)(path))


def test_records_are_streamed_and_a_missing_file_is_an_error(write, tmp_path):
    assert next(texts(write(b"1\ta\n2\n", "f.tsv")))[0] == 1  # before a bad line
    (row,) = texts(write(b'{"id": 1, "text": "\\ud83d\\ude00"}\n', "f.jsonl"))
    assert row == (1, [1, "😀", ..., ...])
    expected = f"{tmp_path / 'absent'}: cannot be read: No such file or directory. Check the path."
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
        list(line_files.read_lines(tmp_path / "absent"))


@pytest.mark.parametrize(
    ("name", "content", "lines"),
    [
        ("f.tsv", '1\ta,b\n2\tc "d"\n', (1, 2)),
        ("f.tsv", 'title\tText\tyear\t"_ID"\n\ta,b\t7\t1\n\tc "d"\t7\t2\n', (2, 3)),
        ("f.csv", 'text,id\n"a,b",1\n"c ""d""",2\n', (2, 3)),
        ("f.csv", '\ufeffDoc-Id;Text\r\n1;a,b\r\n2;"c ""d"""\r\n', (2, 3)),
        ("f.csv", 'id,text,x\n1,"a,b","\n\n"\n2,"c ""d""",\n\n', (2, 5)),
        ("f.jsonl", '{"id": "1", "text": "a,b"}\n{"text": "c \\"d\\"", "_id": "2"}\n', (1, 2)),
        ("f.CSV.GZ", 'id,own\n1,"a,b"\n2,"c ""d"""\n', (2, 3)),
    ],
)
def test_every_kind_of_table_has_the_same_rows(write, name, content, lines):
    columns, content = {"text": "OWN"} if "own" in content else {}, content.encode()
    path = write(gzip.compress(content, mtime=0) if name.endswith("GZ") else content, name)
    rows = list(tables.read_table(path, TEXTS, columns))
    assert [(number, values[:2]) for number, values in rows] == list(zip(lines, ROWS))


def test_a_first_line_is_a_record_where_it_could_be_one(write):
    path = write(b"query\ttrain\nq\ttest\n", "f.tsv")
    assert list(tables.read_table(path, SPLITS)) == [(1, ["query", "train"]), (2, ["q", "test"])]
