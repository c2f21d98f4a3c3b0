"""Building an index: whole or not at all, nothing deleted unasked, each document once."""

import dataclasses
import os
import re

import numpy as np
import pytest

from tests.cases import cases
from tests.index import helpers
from tests.index.helpers import TOWER, Tower, brute_force, document, found_by, in_memory, queries
from tests.training.test_run_directory import snapshot
from tf_smoothclir.index import builder
from tf_smoothclir.index.dense_half import Recall, dense_note
from tf_smoothclir.index.document_index import INDEX, DocumentIndex, IndexManifest
from tf_smoothclir.storage import files, folder
from tf_smoothclir.utils.errors import InputError

BATCH = 20
TEXTS = [document(number) for number in range(10 * BATCH + 7)]
OTHER_TOWER = dataclasses.replace(TOWER, pair_id="b" * 64)


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch):
    monkeypatch.setattr(builder, "_TEXTS_PER_CALL", BATCH)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "index"


def build(path, texts=TEXTS, **arguments):
    return helpers.build(path, texts, **arguments)


def assert_whole(path, texts=TEXTS):
    index = DocumentIndex(path)
    assert len(index) == len(texts)
    for query in queries(3):
        assert found_by(index, query, 20) == brute_force(texts, query, 20)
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@cases("count", 1, BATCH - 1, BATCH, BATCH + 1, len(TEXTS))
def test_any_number_of_documents(path, count):
    assert build(path, TEXTS[:count]).documents == count
    assert_whole(path, TEXTS[:count])


def test_index_of_the_same_state_is_not_changed_and_settings_that_differ_are_refused(path):
    first, tower = build(path, kind="hnsw"), Tower()
    before = snapshot(path)
    for same in ("auto", "hnsw"):  # auto: of any kind
        assert build(path, tower=tower, kind=same) == first
    assert tower.encoded == []
    assert snapshot(path) == before
    with pytest.raises(InputError, match=r"already: it has kind hnsw\. Give --overwrite"):
        build(path, kind="flat")
    assert build(path, kind="flat", overwrite=True).halves["dense"]["kind"] == "flat"


@cases(
    "changes, reason",
    ({"texts": TEXTS[1:]}, r"another state of this one \(memory\)"),
    ({"manifest": OTHER_TOWER}, "different training runs"),
)
def test_other_index_is_replaced_only_with_overwrite(path, changes, reason):
    build(path)
    before = snapshot(path)
    with pytest.raises(InputError, match=rf"there is an index already: .*{reason}.*--overwrite"):
        build(path, **changes)
    assert snapshot(path) == before
    assert build(path, **changes, overwrite=True).pair_id == changes.get("manifest", TOWER).pair_id
    assert_whole(path, changes.get("texts", TEXTS))


@cases("there", False, True)
def test_a_failed_build_leaves_what_was_there(path, there):
    if there:
        build(path)
    before = snapshot(path.parent)
    with pytest.raises(KeyboardInterrupt):
        build(path, TEXTS[1:], tower=Tower(fail_after=100), overwrite=True)
    assert snapshot(path.parent) == before


@cases(
    "texts, message",
    ([], "memory: there are no documents"),
    ([*TEXTS[:11], TEXTS[10]], r"documents\[11\]: id 'd10' is already used at documents\[10\]"),
    ([*TEXTS[:50], TEXTS[10]], r"documents\[50\]: id 'd10' is already used at documents\[10\]"),
)
def test_what_cannot_be_indexed_is_an_error_and_leaves_nothing(path, texts, message):
    with pytest.raises(InputError, match=message):
        build(path, texts)
    assert list(path.parent.iterdir()) == []


def test_an_index_of_an_earlier_form_is_refused(path):
    build(path)
    facts = folder.Folder.read(path, INDEX).facts
    for file in path.glob("documents/language*"):
        file.unlink()
    folder.write_manifest(path, INDEX, facts)
    with pytest.raises(InputError, match=r"its files cannot be opened .*language.*write it again"):
        DocumentIndex(path)


def test_directory_that_is_not_an_index_is_refused_and_not_changed(path):
    path.mkdir()
    (path / "thesis.tex").write_text("years of work")
    before = snapshot(path)
    for overwrite in (False, True):
        with pytest.raises(InputError, match=r"this is not a manifest of the kind 'index'"):
            build(path, overwrite=overwrite)
    assert snapshot(path) == before


def test_texts_are_streamed(path):
    # Documents are read only a few batches ahead of encoding.
    read, ahead, tower, stream = [], [], Tower(), in_memory(TEXTS)
    stream.documents = lambda: (read.append(text) or text for text in TEXTS)

    def encode(text):
        ahead.append(len(read) - len(tower.encoded))
        return tower(text)

    build(path, stream, tower=encode)
    assert max(ahead) <= BATCH * (min(os.cpu_count(), 8) + 3) < len(TEXTS)


def test_recall_is_measured_with_the_given_queries_or_with_documents(path):
    manifest = build(path, kind="hnsw", asked=queries(30))
    expected = Recall(pytest.approx(1.0, abs=0.05), 10, 30, "queries of the training run")
    assert dense_note(manifest.halves["dense"]).recall == expected
    assert IndexManifest.read(path) == manifest
    measured = r"recall@10 \d\.\d{4} \(queries of the training run\)"
    assert re.fullmatch(rf"{len(TEXTS)} documents; hnsw, {measured}", str(manifest))
    folder.write_manifest(path, INDEX, {**dataclasses.asdict(manifest), "documents": 1.5})
    with pytest.raises(InputError, match="documents must be an integer"):
        IndexManifest.read(path)
    for wrong in ({"dense": {**manifest.halves["dense"], "dim": "8"}}, {"tarot": {"summary": ""}}):
        folder.write_manifest(path, INDEX, {**dataclasses.asdict(manifest), "halves": wrong})
        with pytest.raises(InputError, match=r"its files cannot be opened"):
            DocumentIndex(path)
    recall = dense_note(build(path, kind="hnsw", overwrite=True).halves["dense"]).recall
    assert (recall.measured_by, recall.queries) == ("documents in place of queries", len(TEXTS))


def test_ids_and_texts_in_any_script_come_back(path):
    texts = [document(n)._replace(id=f"ид-{n}", title="", text=t) for n, t in enumerate("日ñ\0🍎")]
    build(path, texts)
    expected, index = {text.id: text.text for text in texts}, DocumentIndex(path)
    del index.documents.fields["language"]  # a hit does not show it, so it is not read
    found = helpers.hits_by(index, np.ones((1, helpers.DIM)), 1000)[0]
    assert {result.id: result.text for result in found} == expected


def test_open_index_keeps_working_while_another_one_replaces_it(path):
    build(path)
    index, query = DocumentIndex(path), queries(1)[0]
    build(path, TEXTS[:9], overwrite=True)
    assert found_by(index, query, 15) == brute_force(TEXTS, query, 15)


def test_an_update_encodes_what_is_new_or_changed_and_is_what_a_new_index_would_be(path, caplog):
    caplog.set_level("INFO", logger="absl")
    build(path)
    changed = [TEXTS[3]._replace(title="Other"), TEXTS[4]._replace(language="de")]
    changed += [document(5, "other"), *TEXTS[7:150], document(999)]
    tower = Tower()
    manifest = build(path, changed[::-1], tower=tower, update=True)
    assert sorted(tower.encoded) == sorted(text.text for text in (*changed[:3], changed[-1]))
    kept = 150 - 7
    counts = f"1 new, 3 changed, {len(TEXTS) - kept - 3} dropped, {kept} kept"
    assert f"Documents: {counts}" in caplog.messages
    whole = build(path.parent / "whole", changed[::-1])
    assert manifest == whole
    assert helpers.contents(path) == helpers.contents(path.parent / "whole")
    before = snapshot(path)
    assert build(path, changed[::-1], tower=None, update=True) == whole
    with pytest.raises(InputError, match=r"id 'd3' is already used"):  # before any count
        build(path, [*changed, changed[0]], update=True)
    assert caplog.messages[-1] == f"Nothing has changed: {len(changed)} documents"
    assert snapshot(path) == before
    with pytest.raises(InputError, match=r"different training runs.*Give .*--version=1 for the m"):
        build(path, changed, manifest=OTHER_TOWER, update=True)
    # Hazard: of two updates, the last to end wins, even if it has read an older dump.
    error = pytest.raises(InputError, match="another process replaces the index")
    with files.locked(path / folder.MANIFEST, path, ""), error:
        build(path, update=True)
    with pytest.raises(InputError, match="the index is of memory, and not of the documents of"):
        build(path, changed, data=helpers.TOWER.data, update=True)
    tower = Tower()
    build(path, kind="hnsw", overwrite=True)
    build(path, changed, tower=tower, kind="hnsw", update=True)
    assert len(tower.encoded) == 4
