import hashlib
import shutil
import tarfile
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import tensorflow_datasets as tfds

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources import wiki_clir_builder as wiki_clir
from tf_smoothclir.data.sources.languages import PUBLISHED_FOLDERS
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.data.sources.tfds_source import TfdsSource
from tf_smoothclir.data.sources.wikiclir_files import WikiClirDirectory
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError

LOCAL = Path(__file__).parent / "fake_examples" / "wiki_clir"


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    directory = str(tmp_path_factory.mktemp("tfds"))
    no_network = mock.Mock(side_effect=AssertionError("network"))
    with mock.patch.object(tfds.download.DownloadManager, "download", no_network):
        tfds.load("wiki_clir/fr", data_dir=directory, builder_kwargs={"directory": str(LOCAL)})
    return directory


def builder_of(directory, data_dir, **options):
    directory, data_dir = str(directory), str(data_dir)
    return wiki_clir.WikiClir(data_dir=data_dir, config="fr", directory=directory, **options)


def test_the_source_has_what_the_files_have_in_batches_that_end_anywhere(data_dir, monkeypatch):
    settings = DataSettings(tfds_name="wiki_clir/fr", tfds_data_dir=data_dir)
    source, files = source_of(settings), WikiClirDirectory(LOCAL, "fr")
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
    builder_of(local_copy, data_dir).download_and_prepare()
    return TfdsSource("wiki_clir/fr", str(data_dir))


def test_fingerprints_follow_the_content_and_splits_are_drawn(data_dir, local_copy, tmp_path):
    before = TfdsSource("wiki_clir/fr", data_dir).fingerprint()
    documents = local_copy / "wiki_fr.documents"
    documents.write_text(documents.read_text("utf-8").replace("chaud", "froid"), "utf-8")
    assert prepared(local_copy, tmp_path / "other").fingerprint() != before
    (local_copy / "splits.tsv").unlink()
    source = prepared(local_copy, tmp_path / "without splits")
    expected = RetrievalSet.load(WikiClirDirectory(local_copy, "fr"))
    names = np.array(SPLITS)[expected.splits]
    assert source.splits() == dict(zip(expected.query_ids, names))


def test_a_bad_line_stops_the_preparation_with_its_place(local_copy, tmp_path):
    judgments = local_copy / "en2fr.rel"
    judgments.write_text(judgments.read_text("utf-8") + "40\t999\t1\n", "utf-8")
    with pytest.raises(InputError, match=r"en2fr.rel:13: the judged document '999' is not among"):
        prepared(local_copy, tmp_path / "data")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("wiki_clir/tl", "'wiki_clir/tl': it is not prepared in .*/tl.*Prepare it in Python"),
        ("wiki_clir/xx", "'wiki_clir/xx': .*xx not found.* Give dataset and config"),
        ("no_such_set/fr", "'no_such_set/fr': Dataset no_such_set not found. Give dataset and"),
        ("wiki_clir", "'wiki_clir': the name has no config.*Give dataset and config, such as"),
    ],
)
def test_a_dataset_that_cannot_be_read_is_an_error(data_dir, name, message):
    with pytest.raises(InputError, match=f"^TFDS dataset {message}"):
        TfdsSource(name, data_dir)


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
    source = TfdsSource("wiki_clir/fr", str(tmp_path / "data"))
    assert source.fingerprint() == TfdsSource("wiki_clir/fr", data_dir).fingerprint()
