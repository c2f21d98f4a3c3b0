"""WikiCLIR as published files and as the dataset of TFDS; sets of ir_datasets, registered here."""

import dataclasses
import gzip
import hashlib
import shutil
import sys
import tarfile
import uuid
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import tensorflow_datasets as tfds

from tests.cases import cases
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources import opening, tfds_source
from tf_smoothclir.data.sources import wiki_clir_builder as wiki_clir
from tf_smoothclir.data.sources.ir_datasets_source import IrDatasetsSource
from tf_smoothclir.data.sources.languages import PUBLISHED_FOLDERS
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS, Judgment
from tf_smoothclir.data.sources.wikiclir_files import WikiClirDirectory, document_languages
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError

QUERIES = "7\tWater\ta liquid\n8\tMoon\ta satellite\n9\tSun\ta star\n"
FRENCH = "1\tEau\t un liquide\n2\tLune\tun satellite\n"
SIMPLE = "5\tSun\tit shines\n"
JUDGED = "7\t1\t2\n8\t2\t2\n8\t1\t1\n"
FLAT = {"wiki_en.queries": QUERIES, "wiki_fr.documents": FRENCH, "en2fr.rel": JUDGED}
SPLIT = {**FLAT, "splits.tsv": "8\ttest\n7\ttrain\n9\tvalidation\n"}
PUBLISHED = {
    "english/wiki_en.queries": QUERIES,
    "french/wiki_fr.documents": FRENCH,
    "french/en2fr.rel": "9\t1\t2\n8\t2\t2\n",
    "simple_english/wiki_simple.documents": SIMPLE,
    "simple_english/en2simple.rel": "9\t5\t2\n",
}
TEXTS = [(*line.split("\t"), "en") for line in QUERIES.splitlines()]
WITH_GERMAN = {**FLAT, "wiki_de.documents": FRENCH}
MISSING = [
    (PUBLISHED, "de", "--document_language=de: DIR has no documents in de;.*: fr, simple. Gi.*=fr"),
    (PUBLISHED, "fr it", "--query_language=it: DIR has no queries in it; .*: en. Give .*=en"),
    (WITH_GERMAN, "de", "DIR/en2de.rel: .*no such file; next to it: en2fr.rel. Put the judg"),
]
LOCAL = Path(__file__).parent / "fake_examples" / "wiki_clir"


def test_one_directory(make):
    source = WikiClirDirectory(make(FLAT), "fr")
    assert list(source.queries()) == TEXTS  # 9 has no judgment, and is kept all the same
    documents = [("1", "Eau", " un liquide", "fr"), ("2", "Lune", "un satellite", "fr")]
    assert list(source.documents()) == documents
    judged = [("7", "1", 2), ("8", "2", 2), ("8", "1", 1)]
    assert [judgment[:3] for judgment in source.judgments()] == judged
    assert source.splits() is None
    names = source.name, source.query_language, source.document_language
    assert names == ("toy-en-fr", "en", "fr")


def test_compressed_files_are_read_as_they_are(make, read_all):
    plain = read_all(WikiClirDirectory(directory := make(SPLIT)))
    for every in (2, 1):  # some of them, then all
        for one in [one for one in sorted(directory.iterdir())[::every] if one.suffix != ".gz"]:
            one.with_name(f"{one.name}.gz").write_bytes(gzip.compress(one.read_bytes()))
            one.unlink()
        source = WikiClirDirectory(directory)
        assert read_all(source) == plain
        assert source.splits() == {"8": "test", "7": "train", "9": "validation"}
        assert source.place("judgments", 1).endswith(("en2fr.rel:2", "en2fr.rel.gz:2"))


@cases("language, queries, documents", ("fr", ["8", "9"], ["1", "2"]), ("simple", ["9"], ["5"]))
def test_published_folders(make, language, queries, documents):
    source = WikiClirDirectory(make(PUBLISHED), language)
    assert [text.id for text in source.queries()] == queries
    assert [text.id for text in source.documents()] == documents
    assert document_languages(make(PUBLISHED)) == ["fr", "simple"]
    place = f"{make({})}/english/wiki_en.queries"
    assert source.place("queries", 0) == f"{place}:{2 if language == 'fr' else 3}"


def test_splits_of_one_language_and_of_several_in_one_file(make):
    directory = make(SPLIT)
    source = WikiClirDirectory(directory, "fr")
    assert list(source.splits().items()) == [("8", "test"), ("7", "train"), ("9", "validation")]
    assert source.place("splits", 2) == f"{directory}/splits.tsv:3"
    splits = "7\ttrain\n9\ttest\n8\tvalidation\n"
    make({"wiki_sw.documents": SIMPLE, "en2sw.rel": "9\t5\t2\n", "splits.tsv": splits})
    french, swahili = (WikiClirDirectory(directory, language) for language in ("fr", "sw"))
    assert list(swahili.queries()) == TEXTS[2:]
    assert list(french.splits()) == ["7", "8"]
    assert french.place("splits", 1) == f"{directory}/splits.tsv:3"
    assert swahili.splits() == {"9": "test"}
    make({"splits.tsv": splits + "10\ttrain\n"})
    assert "10" in french.splits()  # of no language: whoever loads the set is told


def test_fingerprint_depends_on_the_content_and_on_which_queries_there_are(make, tmp_path):
    directory = make(FLAT)
    source = WikiClirDirectory(directory, "fr")
    before, queries = source.fingerprint(), list(source.queries())
    elsewhere = shutil.copytree(directory, tmp_path / "elsewhere")
    assert WikiClirDirectory(elsewhere, "fr").fingerprint() == before
    make({"en2fr.rel": JUDGED.replace("8\t1\t1", "8\t1\t2")})
    assert WikiClirDirectory(directory, "fr").fingerprint() != before
    # With another language in the directory, unjudged queries are left out.
    source = WikiClirDirectory(make({**FLAT, "wiki_sw.documents": SIMPLE}), "fr")
    assert list(source.queries()) != queries
    assert source.fingerprint() != before


@cases("files, languages, message", *MISSING)
def test_a_missing_file_is_an_error_that_lists_the_others(make, files, languages, message):
    directory = make(files)
    with pytest.raises(InputError, match=f"^{message.replace('DIR', str(directory))}"):
        WikiClirDirectory(directory, *languages.split())
    with pytest.raises(InputError, match=r"absent: there is no such file or directory\. Check t"):
        WikiClirDirectory(directory / "absent", *languages.split())


def archive(make, *blemishes):
    """A set of 200 pages, each linked with the next one."""
    pages = range(1000, 1200)
    relations = [f"{page}\t{page}\t2" for page in pages]
    relations += [f"{page}\t{page + 1}\t1" for page in pages[:-1]]
    files = {
        "english/wiki_en.queries": "".join(f"{p}\tpage {p}\ttext {p}\n" for p in pages),
        "french/wiki_fr.documents": "".join(f"{p}\tpage {p}\t texte {p}\n" for p in pages),
        "french/en2fr.rel": "\n".join([*relations, *blemishes]) + "\n",
    }
    return make(files)


def test_an_archive_with_blemishes_is_read_without_them_and_they_are_counted(make, caplog):
    blemishes = ("1000\t1000\t1", "77\t1000\t2", "1001\t88\t1")  # of 402: under one percent
    settings = DataSettings(data_dir=str(archive(make, *blemishes)), document_language="fr")
    loaded = RetrievalSet.load(opening.source_of(settings))
    assert len(loaded.query_ids) == len(loaded.document_ids) == 200
    assert np.bincount(loaded.grades).tolist() == [0, 199, 200]
    mates = loaded.document_rows[loaded.grades == 2]
    np.testing.assert_array_equal(mates, loaded.query_rows[loaded.grades == 2])  # 2 beats 1
    (warning,) = [record.getMessage() for record in caplog.records]
    number = "1 repeat another one, 2 name a query or document that is not there"
    figures = "Figures count judged documents of the collection alone; trec_eval"
    assert warning.startswith(f"toy-en-fr: skipped 3 of 402 judgments (0.7%): {number}. {figures}")
    assert "french/en2fr.rel:401: the judged query '77' is not among the 200 queries" in warning
    message = "rel:401: .*=0.007 allows fewer than 3 of 402 judgments .*: 1 repeat another one"
    with pytest.raises(InputError, match=message):
        RetrievalSet.load(opening.source_of(dataclasses.replace(settings, max_skipped=0.007)))


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    directory = str(tmp_path_factory.mktemp("tfds"))
    no_network = mock.Mock(side_effect=AssertionError("network"))
    with mock.patch.object(tfds.download.DownloadManager, "download", no_network):
        tfds.load("wiki_clir/fr", data_dir=directory, builder_kwargs={"directory": str(LOCAL)})
    return directory


def test_the_source_has_what_the_files_have_in_batches_that_end_anywhere(data_dir, monkeypatch):
    settings = DataSettings(tfds_name="wiki_clir/fr", tfds_data_dir=data_dir)
    source, files = opening.source_of(settings), WikiClirDirectory(LOCAL, "fr")
    whole = {stream: list(getattr(source, stream)()) for stream in ("queries", "documents")}
    for stream, records in whole.items():
        assert sorted(records) == sorted(getattr(files, stream)())
    assert source.splits() == files.splits()
    assert list(wiki_clir.WikiClir.builder_configs) == list(PUBLISHED_FOLDERS)
    assert (source.query_language, source.document_language) == ("en", "fr")
    assert source.place("queries", 2) == "wiki_clir/fr: record 3 of the queries"
    monkeypatch.setattr("tf_smoothclir.data.sources.tfds_source._BATCH", 3)
    assert sorted(source.judgments()) == sorted(files.judgments())
    assert list(source.queries()) == whole["queries"]


@pytest.fixture
def local_copy(tmp_path):
    return shutil.copytree(LOCAL, tmp_path / "copy")


def prepared(local_copy, data_dir):
    options = {"data_dir": str(data_dir), "directory": str(local_copy)}
    wiki_clir.WikiClir(config="fr", **options).download_and_prepare()
    return tfds_source.TfdsSource("wiki_clir/fr", str(data_dir))


def test_fingerprints_follow_the_content_and_splits_are_drawn(data_dir, local_copy, tmp_path):
    before = tfds_source.TfdsSource("wiki_clir/fr", data_dir).fingerprint()
    documents = local_copy / "wiki_fr.documents"
    documents.write_text(documents.read_text("utf-8").replace("chaud", "froid"), "utf-8")
    assert prepared(local_copy, tmp_path / "other").fingerprint() != before
    (local_copy / "splits.tsv").unlink()
    source = prepared(local_copy, tmp_path / "without splits")
    expected = RetrievalSet.load(WikiClirDirectory(local_copy, "fr"))
    assert source.splits() == dict(zip(expected.query_ids, np.array(SPLITS)[expected.splits]))
    with open(local_copy / "wiki_en.queries", "a") as file:
        print("50", "Storm", "nobody judged it, so it needs no split", sep="\t", file=file)
    (local_copy / "splits.tsv").write_text("".join(f"{id_}\ttrain\n" for id_ in expected.query_ids))
    source = prepared(local_copy, tmp_path / "train alone")
    assert source.splits() == dict.fromkeys(expected.query_ids, "train")


def test_a_bad_line_stops_the_preparation_with_its_place(local_copy, tmp_path):
    judgments = local_copy / "en2fr.rel"
    judgments.write_text(judgments.read_text("utf-8") + "40\t999\t1\n", "utf-8")
    with pytest.raises(InputError, match=r"en2fr.rel:13: the judged document '999' is not among"):
        prepared(local_copy, tmp_path / "data")


@cases(
    "name, message",
    ("wiki_clir/tl", "'wiki_clir/tl': it is not prepared in .*/tl.*Prepare it in Python"),
    ("wiki_clir/xx", "'wiki_clir/xx': .*xx not found.* Give dataset and config"),
    ("no_such_set/fr", "'no_such_set/fr': Dataset no_such_set not found. Give dataset and"),
    ("wiki_clir", "'wiki_clir': the name has no config.*Give dataset and config, such as"),
)
def test_a_dataset_that_cannot_be_read_is_an_error(data_dir, name, message):
    with pytest.raises(InputError, match=f"^TFDS dataset {message}"):
        tfds_source.TfdsSource(name, data_dir)


def test_the_published_archive_is_checked_and_extracted(data_dir, tmp_path, monkeypatch):
    archive = tmp_path / "wiki-clir.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for file in LOCAL.iterdir():
            folder = "english" if file.name == "wiki_en.queries" else "french"
            tar.add(file, f"wiki-clir/{folder}/{file.name}")
    download = mock.Mock(return_value=archive)
    monkeypatch.setattr(tfds.download.DownloadManager, "download", download)
    message = r"gz: the file has \d+ bytes and MD5 \w+, but the published archive has 7036445773"
    with pytest.raises(InputError, match=message):
        tfds.load("wiki_clir/fr", data_dir=str(tmp_path / "data"))
    content = archive.read_bytes()
    monkeypatch.setattr(wiki_clir, "ARCHIVE_BYTES", len(content))
    monkeypatch.setattr(wiki_clir, "ARCHIVE_MD5", hashlib.md5(content).hexdigest())
    tfds.load("wiki_clir/fr", data_dir=str(tmp_path / "data"))
    download.assert_called_with(wiki_clir.ARCHIVE_URL)
    source = tfds_source.TfdsSource("wiki_clir/fr", str(tmp_path / "data"))
    assert source.fingerprint() == tfds_source.TfdsSource("wiki_clir/fr", data_dir).fingerprint()


@pytest.fixture
def register(tmp_path):
    package = pytest.importorskip("ir_datasets")
    name = f"own-{uuid.uuid4().hex}"

    def file(kind, lines):
        path = tmp_path / f"{kind}-{uuid.uuid4().hex}.tsv"
        path.write_text("".join(lines), encoding="utf-8")
        return str(path) if lines else None

    def register_set(part="", *, documents=3, queries=(), judgments=()):
        made = package.create_dataset(
            docs_tsv=file("docs", [f"d{i}\tune pierre {i}\n" for i in range(documents)]),
            queries_tsv=file("queries", [f"{id_}\twater\n" for id_ in queries]),
            qrels_trec=file("qrels", [f"{q} 0 {d} {g}\n" for q, d, g in judgments]),
        )
        package.registry.register(f"{name}{part}", made)
        return name

    return register_set


def test_a_set_with_its_own_judgments(register):
    name = register(queries=["q1", "q2"], judgments=[("q1", "d1", 2), ("q1", "d2", -1)])
    source = source_of(DataSettings(ir_dataset=name, document_language="de", max_skipped=0.6))
    assert isinstance(source, IrDatasetsSource)
    assert source.max_skipped == 0.6
    assert list(source.queries()) == [("q1", "", "water", ""), ("q2", "", "water", "")]
    assert next(source.documents()) == ("d0", "", "une pierre 0", "de")
    assert list(source.judgments()) == [Judgment("q1", "d1", 2), Judgment("q1", "d2", 0)]
    assert source.splits() is None
    assert (source.query_language, source.document_language) == ("", "de")
    for stream in ("queries", "judgments"):
        assert source.place(stream, 1) == f"{name}: record 2 of the {stream}"


def test_parts_are_splits(register):
    name = register()
    for part, query in (("train", "q1"), ("dev", "q2"), ("test", "q3")):
        register(f"/{part}", queries=["q1", "q2", "q3"], judgments=[(query, "d1", 1)])
    source = IrDatasetsSource(name)
    assert source.splits() == {"q1": "train", "q2": "validation", "q3": "test"}
    assert [query.id for query in source.queries()] == ["q1", "q2", "q3"]  # each once
    assert RetrievalSet.load(source).queries_in("test").tolist() == [2]


def test_fingerprint_follows_the_content(register):
    changes = [{}, {"judgments": [("q1", "d1", 2)]}, {"documents": 4}, {"queries": ["q1", "q2"]}]
    same = {"queries": ["q1"], "judgments": [("q1", "d1", 1)]}
    names = [register(f"-{n}", **{**same, **each}) + f"-{n}" for n, each in enumerate(changes)]
    prints = [IrDatasetsSource(name).fingerprint() for name in names]
    assert len(set(prints)) == 4
    assert prints[0] == IrDatasetsSource(names[0]).fingerprint()


def test_sets_that_cannot_be_used_and_a_missing_package_are_named(register, monkeypatch):
    with pytest.raises(InputError, match="no documents, or no queries with judgments"):
        IrDatasetsSource(register())
    with pytest.raises(InputError, match=r"there is no such set. Did you mean .*mr-tydi/sw"):
        IrDatasetsSource("mr-tidy/sw")
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(InputError, match=r"needs the package ir_datasets .*pip install '.\[ir_"):
        source_of(DataSettings(ir_dataset="mr-tydi/sw"))
