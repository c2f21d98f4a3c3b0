"""All kinds of collections give the same documents; errors name file, line and reason."""

import gzip
import json
import os

import numpy as np
import pytest

from tests.training.tiny_set import DOCUMENTS, write_tiny_set
from tf_smoothclir.data.sources import tables
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.index.document_collections import open_collection, open_files, read_ids
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError

TEXTS = [Text("1", "Titel", "Ein Apfel"), Text("zwei", "", "日本\u2028語"), Text("3", "", "")]
LINES = {
    "tsv": lambda text: f"{text.id}\t{text.text}",
    **dict.fromkeys(("documents", "queries"), lambda text: "\t".join(text[:3])),
    "jsonl": lambda text: json.dumps(
        {**text._asdict(), "title": text.title or None, "language": None}
    ),
}
KINDS = [*LINES, "parquet", "TSV", "Jsonl", "DOCUMENTS", "Parquet", "documents.gz", "queries"]


def write_parquet(path, columns, **options):
    """Skips the test where there is no pyarrow, an extra of the package, that fits the NumPy."""
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(columns), path, **options)


def write(path, texts):
    kind = path.name.split(".")[1].lower()
    if kind == "parquet":
        columns = {name: [getattr(text, name) or None for text in texts] for name in Text._fields}
        write_parquet(path, {**columns, "text": [text.text for text in texts]})
    else:
        lines = (LINES[kind](text) + "\n" for text in texts)
        with gzip.open(path, "wt") if path.suffix == ".gz" else open(path, "w") as file:
            file.writelines(lines)


def read(path):
    return list(open_files(path, "--collection").documents())


@pytest.mark.parametrize("suffix", KINDS)
def test_a_file_of_any_kind_or_a_directory_of_them_gives_the_same_documents(tmp_path, suffix):
    expected = [TEXTS[0]._replace(title=""), *TEXTS[1:]] if suffix.lower() == "tsv" else TEXTS
    path, directory = tmp_path / f"some.{suffix}", tmp_path / "parts"
    write(path, TEXTS)
    collection = open_files(path, "--collection")
    assert list(collection.documents()) == expected
    assert list(collection.documents()) == expected  # again and again
    assert collection.place("documents", 1) == f"{path}:2"

    directory.mkdir()
    write(directory / f"part-1.{suffix}", TEXTS[1:])
    write(directory / f"part-0.{suffix}", TEXTS[:1])
    (directory / "_SUCCESS").touch()
    collection = open_files(directory, "--collection")
    assert list(collection.documents()) == expected  # in order of name
    assert collection.place("documents", 2) == f"{directory}/part-1.{suffix}:2"
    first = collection.fingerprint()
    assert first == open_files(directory, "--collection").fingerprint()
    write(directory / f"part-1.{suffix}", TEXTS[2:])
    assert first != open_files(directory, "--collection").fingerprint()


def test_few_bytes_of_parquet_do_not_become_gigabytes(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_FREE_BYTES", 1 << 24)
    path, size = tmp_path / "some.parquet", 1 << 20
    columns = {"id": list(range(200)), "text": ["x" * size] * 200}
    write_parquet(path, columns, compression="zstd")
    assert path.stat().st_size < 10_000
    import pyarrow

    texts, allocated = open_files(path, "--collection").documents(), []
    with pytest.raises(InputError, match="its texts are more than 1000 times as large as it"):
        allocated += (pyarrow.total_allocated_bytes() for _ in texts)
    assert 0 < max(allocated) < 16 * size
    write_parquet(path, columns, compression="zstd", use_dictionary=False)
    with pytest.raises(InputError, match="its texts are more than 1000 times as large as it"):
        read(path)


def test_large_parquet_is_read_across_batches_and_row_groups(tmp_path):
    columns = {"id": list(range(5000)), "text": [f"text {n}" for n in range(5000)]}
    write_parquet(tmp_path / "some.parquet", columns, row_group_size=700)
    expected = [Text(str(n), "", f"text {n}") for n in range(5000)]
    assert read(tmp_path / "some.parquet") == expected


@pytest.mark.parametrize(
    ("suffix", "content", "message"),
    [
        ("tsv", b"", ": the file is empty"),
        ("documents", b"1\tt\ta\n2\tb\n", ":2: 2 tab-separated columns instead of 3"),
        ("parquet", b"", ":1: it cannot be read as Parquet"),
        ("parquet", b"1\tx\n", ":1: it cannot be read as Parquet"),
        ("parquet", b"PAR1\x15\x04\x15\x06", ":1: it cannot be read as Parquet"),  # cut
        ("parquet", {"id": [], "text": []}, ": the file is empty"),
        ("parquet", {"id": ["1"], "body": ["x"]}, ": there is no column 'text'; there are: id, bo"),
        ("parquet", {"id": ["1", None], "text": ["x", "y"]}, ":2: id is missing"),
        ("parquet", {"id": ["1"], "text": ["x"], "title": [1]}, ":1: the title of 1 is 1, not"),
        ("parquet", {"id": ["1"], "text": np.array([2**62], "M8[us]")}, ":1: .* as Parquet .* out"),
    ],
)
def test_a_defect_is_named(tmp_path, suffix, content, message):
    path = tmp_path / f"some.{suffix}"
    if suffix == "parquet":
        write_parquet(path, {} if isinstance(content, bytes) else content)
    if isinstance(content, bytes):
        path.write_bytes(content)
    with pytest.raises(InputError, match=rf"some\.{suffix}{message}"):
        read(path)


@pytest.mark.parametrize(
    ("names", "asked", "message"),
    [
        ([], "missing.tsv", r"--collection=.*missing\.tsv: there is no such file.*\.parquet"),
        (["some.xls"], "some.xls", r"some\.xls: the suffix '\.xls' is not .*\.parquet"),
        (["some"], "some", "some: the suffix '' is not"),
        ([], "pipe.tsv", "it is not a regular file, and documents are read more than once"),
        (["a.txt"], "", "the directory holds no files"),
        (["a.tsv", "b.jsonl"], "", r"the directory holds \.jsonl and \.tsv"),
    ],
)
def test_what_is_not_a_collection_is_named_with_its_flag(tmp_path, names, asked, message):
    for name in names:
        (tmp_path / name).touch()
    os.mkfifo(tmp_path / "pipe.tsv")
    with pytest.raises(InputError, match=message):
        read(tmp_path / asked)


def test_retrieval_set_is_a_collection(tmp_path):
    data = write_tiny_set(tmp_path / "data")
    collection = open_collection("", DataSettings(data_dir=str(data)))
    assert len(list(collection.documents())) == DOCUMENTS
    assert collection.place("documents", 4).endswith("wiki_fr.documents:5")
    same = open_collection(str(data / "wiki_fr.documents"), DataSettings())
    assert [text[:3] for text in same.documents()] == [text[:3] for text in collection.documents()]


def test_each_id_is_read_once_and_a_defect_is_named(tmp_path):
    ids = tmp_path / "ids"
    ids.write_text("d2\nd1\nd2\n")
    assert read_ids(ids) == ["d2", "d1"]
    for content, message in (("", "empty"), ("d1\na b\n", ":2: id 'a b'")):
        ids.write_text(content)
        with pytest.raises(InputError, match=message):
            read_ids(ids)
