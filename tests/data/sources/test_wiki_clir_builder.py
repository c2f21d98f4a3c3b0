from __future__ import annotations

import hashlib
import shutil
import tarfile
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import tensorflow_datasets as tfds

from tests.beam import LOCAL_RUNNER, needs_beam, without_beam
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources import wiki_clir_builder as wiki_clir
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS, Judgment
from tf_smoothclir.data.sources.tfds_source import TfdsSource
from tf_smoothclir.data.sources.wikiclir_files import PUBLISHED_FOLDERS, WikiClirDirectory
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError

LOCAL = Path(__file__).parent / "fake_examples" / "wiki_clir"


class WikiClirTest(tfds.testing.DatasetBuilderTestCase):
    """TFDS's own checks of a builder."""

    DATASET_CLASS = wiki_clir.WikiClir
    EXAMPLE_DIR = LOCAL
    BUILDER_CONFIG_NAMES_TO_TEST = ("fr",)
    SPLITS = {"train": 4, "validation": 2, "test": 1, "documents": 8}  # noqa: RUF012

    def _make_builder(self, config="fr"):
        return wiki_clir.WikiClir(data_dir=self.tmp_dir, config=config, directory=str(LOCAL))


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    directory = str(tmp_path_factory.mktemp("tfds"))
    with mock.patch.object(
        tfds.download.DownloadManager, "download", side_effect=AssertionError("network")
    ):
        tfds.load("wiki_clir/fr", data_dir=directory, builder_kwargs={"directory": str(LOCAL)})
    return directory


def test_there_is_a_config_for_each_published_language():
    assert list(wiki_clir.WikiClir.builder_configs) == list(PUBLISHED_FOLDERS)
    assert len(PUBLISHED_FOLDERS) == len(set(PUBLISHED_FOLDERS.values())) == 25


@needs_beam
def test_beam_writes_the_same_examples(data_dir, tmp_path, monkeypatch):
    monkeypatch.setattr(wiki_clir, "_BYTES_PER_PIECE", 100)  # several pieces
    builder = wiki_clir.WikiClir(
        data_dir=str(tmp_path), config="fr", directory=str(LOCAL), beam=True
    )
    from apache_beam.options.pipeline_options import PipelineOptions

    options = PipelineOptions(LOCAL_RUNNER)
    builder.download_and_prepare(download_config=tfds.download.DownloadConfig(beam_options=options))
    for split in (*SPLITS, "documents"):
        found = list(tfds.as_numpy(builder.as_dataset(split=split)))
        expected = list(tfds.as_numpy(tfds.load("wiki_clir/fr", split=split, data_dir=data_dir)))
        assert sorted(map(repr, found)) == sorted(map(repr, expected))


@without_beam
def test_missing_beam_is_named_with_the_extra(tmp_path):
    builder = wiki_clir.WikiClir(
        data_dir=str(tmp_path), config="fr", directory=str(LOCAL), beam=True
    )
    with pytest.raises(InputError, match=r"needs Apache Beam .*pip install .\.\[beam\]"):
        builder.download_and_prepare()


def test_an_example_is_a_query_with_its_judgments(data_dir):
    [example] = tfds.as_numpy(tfds.load("wiki_clir/fr", split="test", data_dir=data_dir))
    assert example["id"] == b"31"
    assert example["title"] == b"River"
    assert example["text"] == b"a natural stream of fresh water"
    assert example["judgments"]["document_id"].tolist() == [b"13", b"3"]
    assert example["judgments"]["grade"].tolist() == [2, 1]


@pytest.mark.slow
def test_the_source_has_what_the_files_have(data_dir):
    source, files = TfdsSource("wiki_clir/fr", data_dir), WikiClirDirectory(LOCAL, "fr")
    for stream in ("queries", "documents", "judgments"):
        records = list(getattr(source, stream)())
        assert records == list(getattr(source, stream)())
        assert sorted(records) == sorted(getattr(files, stream)())
    assert source.splits() == files.splits()
    assert (source.query_language, source.document_language) == ("en", "fr")
    assert source.place("queries", 2) == "wiki_clir/fr: record 3 of the queries"
    assert RetrievalSet.load(source).num_grades == 3
    settings = DataSettings(tfds_name="wiki_clir/fr", tfds_data_dir=data_dir)
    assert type(source_of(settings)) is TfdsSource


def test_records_are_read_in_batches_that_end_anywhere(data_dir, monkeypatch):
    whole = list(TfdsSource("wiki_clir/fr", data_dir).judgments())
    monkeypatch.setattr("tf_smoothclir.data.sources.tfds_source._BATCH", 3)
    assert list(TfdsSource("wiki_clir/fr", data_dir).judgments()) == whole
    assert Judgment("40", "5", 1) in whole


@pytest.fixture
def local_copy(tmp_path):
    return shutil.copytree(LOCAL, tmp_path / "copy")


def tokenize_set(local_copy, data_dir):
    builder = wiki_clir.WikiClir(data_dir=data_dir, config="fr", directory=str(local_copy))
    builder.download_and_prepare()
    return TfdsSource("wiki_clir/fr", str(data_dir))


def test_the_fingerprint_follows_the_content(data_dir, local_copy, tmp_path):
    before = TfdsSource("wiki_clir/fr", data_dir).fingerprint()
    assert tokenize_set(local_copy, tmp_path / "same").fingerprint() == before
    documents = local_copy / "wiki_fr.documents"
    documents.write_text(documents.read_text("utf-8").replace("chaud", "froid"), "utf-8")
    assert tokenize_set(local_copy, tmp_path / "other").fingerprint() != before


def test_without_splits_the_queries_are_split_as_the_retrieval_set_splits_them(
    local_copy, tmp_path
):
    (local_copy / "splits.tsv").unlink()
    source = tokenize_set(local_copy, tmp_path / "data")
    expected = RetrievalSet.load(WikiClirDirectory(local_copy, "fr"))
    names = np.array(SPLITS)[expected.splits]
    assert source.splits() == dict(zip(expected.query_ids, names))


def test_a_bad_line_stops_the_preparation_with_its_place(local_copy, tmp_path):
    judgments = local_copy / "en2fr.rel"
    judgments.write_text(judgments.read_text("utf-8") + "40\t999\t1\n", "utf-8")
    with pytest.raises(InputError, match=r"en2fr.rel:13: the judged document '999' is not among"):
        tokenize_set(local_copy, tmp_path / "data")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "wiki_clir/tl",
            "'wiki_clir/tl': it is not prepared in .*wiki_clir/tl.*Prepare it in Python",
        ),
        ("wiki_clir/xx", "'wiki_clir/xx': .*xx not found.* Give dataset and config"),
        ("no_such_set/fr", "'no_such_set/fr': Dataset no_such_set not found. Give dataset and"),
        ("wiki_clir", "'wiki_clir': the name has no config.*Give dataset and config, such as"),
    ],
)
def test_a_dataset_that_cannot_be_read_is_an_error(data_dir, name, message):
    with pytest.raises(InputError, match=f"^TFDS dataset {message}"):
        TfdsSource(name, data_dir)


@pytest.fixture
def archive(tmp_path):
    """An archive with the folders of the published one."""
    path = tmp_path / "wiki-clir.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for file in LOCAL.iterdir():
            folder = "english" if file.name == "wiki_en.queries" else "french"
            tar.add(file, f"wiki-clir/{folder}/{file.name}")
    return path


def download(archive, data_dir):
    with mock.patch.object(tfds.download.DownloadManager, "download", return_value=archive) as call:
        tfds.load("wiki_clir/fr", data_dir=data_dir)
    call.assert_called_once_with(wiki_clir.ARCHIVE_URL)


def test_the_published_archive_is_checked_and_extracted(archive, data_dir, tmp_path, monkeypatch):
    content = archive.read_bytes()
    monkeypatch.setattr(wiki_clir, "ARCHIVE_BYTES", len(content))
    monkeypatch.setattr(wiki_clir, "ARCHIVE_MD5", hashlib.md5(content).hexdigest())
    download(archive, str(tmp_path / "data"))
    source = TfdsSource("wiki_clir/fr", str(tmp_path / "data"))
    assert source.fingerprint() == TfdsSource("wiki_clir/fr", data_dir).fingerprint()


def test_another_archive_is_refused(archive, tmp_path):
    message = (
        r"wiki-clir.tar.gz: the file has \d+ bytes and MD5 \w+, but the published archive has"
        " 7036445773"
    )
    with pytest.raises(InputError, match=message + ".* Remove the file and try again"):
        download(archive, str(tmp_path / "data"))
