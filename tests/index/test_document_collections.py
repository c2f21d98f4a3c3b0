"""All kinds of collections give the same documents; errors name file, line and reason."""

import json

import numpy as np
import pytest

from tests.data.sources.test_wiki_clir_builder import LOCAL as WIKI_CLIR
from tests.training.tiny_set import DOCUMENTS, write_tiny_set
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.data.sources.wiki_clir_builder import WikiClir
from tf_smoothclir.data.sources.wikiclir_files import WikiClirDirectory
from tf_smoothclir.index.document_collections import open_collection, open_files, read_ids
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError

TEXTS = [Text("1", "", "Ein Apfel"), Text("zwei", "", "日本\u2028語"), Text("3", "", "")]


def arrow():
    """pyarrow and its reader of Parquet; skips where there is none that fits the NumPy here."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        pytest.skip(f"no pyarrow, an extra of the package: {error}")
    return pyarrow, parquet


def write_tsv(path, texts):
    path.write_text("".join(f"{t.id}\t{t.text}\n" for t in texts), encoding="utf-8")


def write_documents(path, texts):
    lines = (f"{t.id}\t{t.title}\t{t.text}\n" for t in texts)
    path.write_text("".join(lines), encoding="utf-8")


def write_jsonl(path, texts):
    lines = (json.dumps(t._asdict(), ensure_ascii=False) + "\n" for t in texts)
    path.write_text("".join(lines), encoding="utf-8")


def write_parquet(path, texts):
    write_columns(path, {name: [getattr(t, name) for t in texts] for name in Text._fields})


def write_columns(path, columns):
    pyarrow, parquet = arrow()

    parquet.write_table(pyarrow.table(columns), path)


WRITERS = {
    "tsv": write_tsv,
    "documents": write_documents,
    "jsonl": write_jsonl,
    "parquet": write_parquet,
}


@pytest.mark.parametrize("suffix", WRITERS)
def test_every_kind_of_file_gives_the_same_documents(tmp_path, suffix):
    path = tmp_path / f"some.{suffix}"
    WRITERS[suffix](path, TEXTS)
    collection = open_files(path, "--collection")
    assert list(collection.documents()) == TEXTS
    assert list(collection.documents()) == TEXTS  # again and again
    assert collection.place(1) == f"{path}:2"


@pytest.mark.parametrize("suffix", ["documents", "jsonl", "parquet"])
def test_titles_are_read(tmp_path, suffix):
    texts = [Text("1", "Titel", "Text")]
    WRITERS[suffix](tmp_path / f"some.{suffix}", texts)
    assert list(open_files(tmp_path / f"some.{suffix}", "--add").documents()) == texts


@pytest.mark.parametrize("suffix", WRITERS)
def test_files_of_a_directory_are_read_in_order_of_name(tmp_path, suffix):
    for name, texts in (("part-1", TEXTS[1:]), ("part-0", TEXTS[:1])):
        WRITERS[suffix](tmp_path / f"{name}.{suffix}", texts)
    (tmp_path / "_SUCCESS").touch()
    collection = open_files(tmp_path, "--collection")
    assert list(collection.documents()) == TEXTS
    assert collection.place(2) == f"{tmp_path / 'part-1'}.{suffix}:2"
    first = collection.fingerprint()
    assert first == open_files(tmp_path, "--collection").fingerprint()
    WRITERS[suffix](tmp_path / f"part-1.{suffix}", TEXTS[2:])
    assert first != open_files(tmp_path, "--collection").fingerprint()


def test_large_parquet_is_read_across_batches_and_row_groups(tmp_path):
    pyarrow, parquet = arrow()

    table = pyarrow.table({"id": list(range(5000)), "text": [f"text {n}" for n in range(5000)]})
    parquet.write_table(table, tmp_path / "some.parquet", row_group_size=700)
    texts = list(open_files(tmp_path / "some.parquet", "--collection").documents())
    assert texts == [Text(str(n), "", f"text {n}") for n in range(5000)]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": ["1"], "body": ["x"]}, r"no column 'text'; it has: id, body"),
        ({"id": ["1", None], "text": ["x", "y"]}, r":2: 'id' of the row is None"),
        ({"id": ["1", "2"], "text": ["x", None]}, r":2: 'text' of the row is None"),
        ({"id": ["1"], "text": ["x"], "title": [1]}, r":1: 'title' of the row is 1, not a string"),
        ({"id": [True], "text": ["x"]}, r":1: 'id' of the row is True, not a string"),
        ({"id": ["a b"], "text": ["x"]}, r":1: id 'a b' is empty or contains white space"),
        ({"id": [""], "text": ["x"]}, r":1: id '' is empty or contains white space"),
    ],
)
def test_defect_of_a_parquet_file_is_named(tmp_path, columns, message):
    write_columns(tmp_path / "some.parquet", columns)
    with pytest.raises(InputError, match=rf"some\.parquet.*{message}"):
        list(open_files(tmp_path / "some.parquet", "--collection").documents())


@pytest.mark.parametrize("damage", ["cut", "empty", "text"])
def test_damaged_parquet_file_is_named(tmp_path, damage):
    path = tmp_path / "some.parquet"
    write_parquet(path, TEXTS)
    content = path.read_bytes()
    path.write_bytes({"cut": content[: len(content) // 2], "empty": b"", "text": b"1\tx\n"}[damage])
    with pytest.raises(InputError, match=r"some\.parquet.*cannot be read as Parquet"):
        list(open_files(path, "--collection").documents())


def test_parquet_file_without_rows_is_an_error(tmp_path):
    pyarrow, _ = arrow()
    empty = pyarrow.array([], pyarrow.string())
    write_columns(tmp_path / "some.parquet", {"id": empty, "text": empty})
    with pytest.raises(InputError, match=r"some\.parquet: the file is empty"):
        list(open_files(tmp_path / "some.parquet", "--collection").documents())


@pytest.mark.parametrize(
    ("suffix", "content", "message"),
    [
        ("tsv", b"1\ta\n2\n", r":2: 1 tab-separated columns instead of 2"),
        ("tsv", b"1\ta\n\xff\tb\n", r":2: byte 0xff .* is not UTF-8"),
        ("documents", b"1\tt\ta\n2\tb\n", r":2: 2 tab-separated columns instead of 3"),
        ("documents", b"1\tt\ta\n\tt\tb\n", r":2: doc_id '' is empty"),
        ("jsonl", b'{"id": "1", "text": "a"}\n{"id": "2"}\n', r":2: the object has no 'text'"),
        ("jsonl", b'{"id": "1", "text": "a"}\n{\n', r":2: the line is not JSON"),
        ("tsv", b"", r": the file is empty"),
    ],
)
def test_defect_of_a_line_is_named(tmp_path, suffix, content, message):
    (tmp_path / f"some.{suffix}").write_bytes(content)
    with pytest.raises(InputError, match=rf"some\.{suffix}{message}"):
        list(open_files(tmp_path / f"some.{suffix}", "--collection").documents())


@pytest.mark.parametrize("name", ["missing.tsv", "some.csv", "some"])
def test_path_that_is_not_a_collection_is_named_with_its_flag(tmp_path, name):
    if name != "missing.tsv":
        (tmp_path / name).touch()
    with pytest.raises(InputError, match=rf"--add=.*{name}: .*\.parquet"):
        open_files(tmp_path / name, "--add")


@pytest.mark.parametrize("names", [[], ["a.txt"], ["a.tsv", "b.jsonl"]])
def test_directory_needs_files_of_one_kind(tmp_path, names):
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(InputError, match="the directory holds"):
        open_files(tmp_path, "--collection")


def test_retrieval_set_is_a_collection(tmp_path):
    data = write_tiny_set(tmp_path / "data")
    collection = open_collection("", DataSettings(data_dir=str(data)))
    assert len(list(collection.documents())) == DOCUMENTS
    assert collection.place(4).endswith("wiki_fr.documents:5")
    same = open_collection(str(data / "wiki_fr.documents"), DataSettings())
    assert list(same.documents()) == list(collection.documents())


def test_each_id_is_read_once(tmp_path):
    (tmp_path / "ids").write_text("d2\nd1\nd2\n")
    assert read_ids(tmp_path / "ids") == ["d2", "d1"]


@pytest.mark.parametrize(("content", "message"), [("", "empty"), ("d1\na b\n", ":2: id 'a b'")])
def test_file_of_ids_with_a_defect_is_refused(tmp_path, content, message):
    (tmp_path / "ids").write_text(content)
    with pytest.raises(InputError, match=message):
        read_ids(tmp_path / "ids")


@pytest.fixture(scope="module")
def tfds_dir(tmp_path_factory):
    """A TFDS directory with the tiny WikiCLIR of the tests of its builder."""
    path = tmp_path_factory.mktemp("tfds")
    builder = WikiClir(data_dir=path, config="fr", directory=str(WIKI_CLIR))
    builder.download_and_prepare()
    return path


def test_collection_of_tfds_has_the_documents_of_its_files(tfds_dir):
    settings = DataSettings(tfds_name="wiki_clir/fr", tfds_data_dir=str(tfds_dir))
    collection = open_collection("", settings)
    documents = list(collection.documents())
    assert sorted(documents) == sorted(WikiClirDirectory(WIKI_CLIR, "fr").documents())
    assert list(collection.documents()) == documents
    assert collection.place(1) == "wiki_clir/fr: record 2 of the documents"
    assert collection.fingerprint() == open_collection("", settings).fingerprint()


def test_command_indexes_a_collection_of_tfds(commands, tfds_dir, export, tmp_path):
    flags = [f"--export_dir={export}", f"--index_dir={tmp_path}/index", "--verbosity=-1"]
    flags += ["--tfds_name=wiki_clir/fr", f"--tfds_data_dir={tfds_dir}"]
    done = commands.run("export.build_index", *flags)
    assert done.returncode == 0, done.stderr
    index = DocumentIndex(tmp_path / "index")
    assert index.manifest.data.tfds_name == "wiki_clir/fr"
    (results,) = index.search(np.ones((1, index.manifest.vectors.dim), np.float32), 100)
    found = sorted(Text(result.id, result.title, result.text) for result in results)
    assert found == sorted(WikiClirDirectory(WIKI_CLIR, "fr").documents())
