"""Building: continues after an interruption, leaves no half index, deletes nothing unasked."""

import contextlib
import dataclasses
import json
import multiprocessing
import os
import shutil
import signal
import types

import numpy as np
import pytest

from tests.index import helpers
from tests.index.helpers import (
    TOWER,
    Documents,
    Tower,
    brute_force,
    document,
    found_by,
    queries,
)
from tests.power_loss import PowerLoss, write_disk
from tests.training.test_run_directory import snapshot
from tf_smoothclir.index import builder, dense_half, document_index, encoding
from tf_smoothclir.index import manifest as index_manifest
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.index.manifest import Recall
from tf_smoothclir.index.vector_index import IndexSettings
from tf_smoothclir.index.work_directory import locked_work_directory, work_directory
from tf_smoothclir.utils.errors import InputError

SEGMENT = 50
TEXTS = [document(number) for number in range(4 * SEGMENT + 7)]
OTHER_TOWER = dataclasses.replace(TOWER, pair_id="b" * 64)


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch):
    monkeypatch.setattr(encoding, "DOCUMENTS_PER_SEGMENT", SEGMENT)
    monkeypatch.setattr(encoding, "_TEXTS_PER_CALL", 20)


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


@pytest.mark.parametrize("number", [1, SEGMENT - 1, SEGMENT, SEGMENT + 1, 4 * SEGMENT])
def test_any_number_of_documents(path, number):
    manifest = build(path, TEXTS[:number])
    assert manifest.documents == number
    assert_whole(path, TEXTS[:number])


def test_settings_that_differ_from_an_existing_index_are_refused(path):
    build(path, settings=IndexSettings("hnsw", hnsw_neighbours=8))
    build(path)  # of any kind
    build(path, settings=IndexSettings("hnsw", hnsw_neighbours=8))
    for other, there in (
        (IndexSettings("flat"), "kind hnsw"),
        (IndexSettings(hnsw_neighbours=16), "hnsw_neighbours 8"),
    ):
        with pytest.raises(InputError, match=rf"already: it has {there}\. Give --overwrite"):
            build(path, settings=other)
    manifest = build(path, settings=IndexSettings("flat"), overwrite=True)
    assert manifest.vectors.settings.kind == "flat"


def test_finished_segments_are_not_encoded_again(path):
    # Batches are encoded a few ahead, so the interruption is somewhere in the third segment.
    with pytest.raises(KeyboardInterrupt):
        build(path, tower=Tower(fail_after=2 * SEGMENT + 25))
    assert not path.exists()
    tower = Tower()
    build(path, tower=tower)
    assert sorted(tower.encoded) == sorted(text.text for text in TEXTS[2 * SEGMENT :])
    assert_whole(path)


@pytest.mark.parametrize("damage", ["change", "cut", "delete", "note"])
def test_damaged_segment_is_encoded_again(path, damage):
    with pytest.raises(KeyboardInterrupt):
        build(path, tower=Tower(fail_after=2 * SEGMENT + 25))
    segment = work_directory(path) / "segment-000000"
    vectors = segment / "vectors" / "vectors"
    content = bytearray(vectors.read_bytes())
    if damage == "change":
        content[-1] ^= 1
        vectors.unlink()
        vectors.write_bytes(content)
    elif damage == "cut":
        vectors.write_bytes(content[:-4])
    elif damage == "delete":
        vectors.unlink()
    else:
        (segment / "segment.json").write_text("{}")
    tower = Tower()
    build(path, tower=tower)
    encoded = TEXTS[:SEGMENT] + TEXTS[2 * SEGMENT :]
    assert sorted(tower.encoded) == sorted(text.text for text in encoded)
    assert_whole(path)


def _killed_at(path, step):
    """Kills this process in the middle of a step, without a chance to clean up."""

    def die(*arguments, **keywords):
        os.kill(os.getpid(), signal.SIGKILL)

    modules = {"join_documents": builder, "join_files": dense_half, "measured_recall": dense_half}
    modules |= {"mark_complete": encoding, "write_json": index_manifest, "file_digests": builder}
    if step == "rmtree":
        # Not at the start, where leftovers are deleted.
        original = shutil.rmtree
        shutil.rmtree = lambda p, *a, **k: (
            die() if str(p).endswith(".building") else original(p, *a, **k)
        )
    elif step == "rename":
        original_rename = os.rename
        os.rename = lambda a, b: die() if str(b) == str(path) else original_rename(a, b)
    else:
        setattr(modules[step], step, die)
    build(path)  # flat: the threads of OpenMP do not outlive a fork


STEPS = ["mark_complete", "join_documents", "join_files", "measured_recall", "file_digests"]
STEPS += ["write_json", "rename", "rmtree"]


@pytest.mark.parametrize("step", STEPS)
def test_killed_build_leaves_all_or_nothing_and_continues(path, step):
    child = multiprocessing.get_context("fork").Process(target=_killed_at, args=(path, step))
    child.start()
    child.join(30)
    child.kill()
    assert child.exitcode == -signal.SIGKILL
    assert path.exists() == (step == "rmtree")
    tower = Tower()
    build(path, tower=tower)
    assert tower.encoded == []
    assert_whole(path)


def test_index_of_the_same_state_is_not_changed(path):
    first = build(path)
    before = snapshot(path)
    tower = Tower()
    assert build(path, tower=tower) == first
    assert tower.encoded == []
    assert snapshot(path) == before


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"texts": TEXTS[1:]}, r"another state of this one \(memory\)"),
        ({"manifest": OTHER_TOWER}, "different training runs"),
    ],
)
def test_other_index_is_replaced_only_with_overwrite(path, changes, reason):
    build(path)
    before = snapshot(path)
    with pytest.raises(InputError, match=rf"there is an index already: .*{reason}.*--overwrite"):
        build(path, **changes)
    assert snapshot(path) == before
    manifest = build(path, **changes, overwrite=True)
    assert manifest.content == "000002"
    assert manifest.pair_id == changes.get("manifest", TOWER).pair_id
    assert_whole(path, changes.get("texts", TEXTS))


def test_old_index_stays_intact_until_the_new_one_is_in_place(path):
    build(path)
    before = snapshot(path)
    with pytest.raises(KeyboardInterrupt):
        build(path, TEXTS[1:], tower=Tower(fail_after=100), overwrite=True)
    assert snapshot(path) == before
    DocumentIndex(path)
    build(path, TEXTS[1:], overwrite=True)
    assert_whole(path, TEXTS[1:])


@pytest.mark.parametrize("written", [False, True], ids=["no room", "not flushed"])
def test_a_replacement_whose_manifest_cannot_be_written_leaves_one_index(
    path, monkeypatch, written
):
    build(path)
    write = index_manifest.IndexManifest.write

    def failing(manifest, directory):
        if written:
            write(manifest, directory)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(index_manifest.IndexManifest, "write", failing)
        with pytest.raises(OSError, match="No space"):
            build(path, TEXTS[1:], overwrite=True)
    assert len(DocumentIndex(path)) == len(TEXTS) - written
    contents = [entry for entry in path.iterdir() if entry.is_dir()]
    assert len(contents) == 1 + written  # after a name that may not last, both stay
    build(path, TEXTS[1:], overwrite=True)
    assert_whole(path, TEXTS[1:])
    assert len([entry for entry in path.iterdir() if entry.is_dir()]) == 1


def test_segments_of_another_collection_are_deleted_only_with_overwrite(path):
    with pytest.raises(KeyboardInterrupt):
        build(path, tower=Tower(fail_after=100))
    before = snapshot(work_directory(path))
    with pytest.raises(InputError, match="segments of another export, of another collection"):
        build(path, TEXTS[1:])
    assert snapshot(work_directory(path)) == before
    build(path, TEXTS[1:], overwrite=True)
    assert_whole(path, TEXTS[1:])


def test_second_process_on_one_index_is_refused(path):
    with (
        locked_work_directory(path),
        pytest.raises(InputError, match="another process is working on this index"),
    ):
        build(path)


@pytest.mark.parametrize("distance", [1, SEGMENT])
def test_duplicate_id_is_an_error_that_names_both_places(path, distance):
    texts = [*TEXTS[: 10 + distance], TEXTS[10]]
    with pytest.raises(
        InputError, match=rf"memory:{11 + distance}: id 'd10' is already used at memory:11"
    ):
        build(path, texts)
    assert list(path.parent.iterdir()) == []


def test_empty_collection_is_an_error(path):
    with pytest.raises(InputError, match="memory: there are no documents"):
        build(path, [])
    assert list(path.parent.iterdir()) == []


def test_directory_that_is_not_an_index_is_refused_and_not_changed(path):
    path.mkdir()
    (path / "thesis.tex").write_text("years of work")
    before = snapshot(path)
    for overwrite in (False, True):
        with pytest.raises(InputError, match=r"this is not a manifest with the role 'index'"):
            build(path, overwrite=overwrite)
    assert snapshot(path) == before


def test_texts_are_streamed(path, monkeypatch):
    # Documents are read only a few batches ahead of encoding.
    read, ahead = [], []

    class Stream(Documents):
        def documents(self):
            for text in super().documents():
                read.append(text)
                yield text

    tower = Tower()

    def encode(text):
        ahead.append(len(read) - len(tower.encoded))
        return tower(text)

    build(path, Stream(TEXTS), tower=encode)
    workers = min(os.cpu_count(), 8)
    assert max(ahead) <= 20 * (workers + 3) < len(TEXTS)


def test_recall_is_measured_with_the_given_queries(path):
    manifest = build(path, settings=IndexSettings("hnsw"), asked=queries(30))
    assert manifest.vectors.recall == Recall(
        value=pytest.approx(1.0, abs=0.05),
        depth=10,
        queries=30,
        measured_by="queries of the training run",
    )
    written = json.loads((path / "manifest.json").read_text())["vectors"]["recall"]
    assert written == dataclasses.asdict(manifest.vectors.recall)


def test_recall_is_measured_with_documents_if_there_are_no_queries(path):
    manifest = build(path, settings=IndexSettings("hnsw"))
    assert manifest.vectors.recall.measured_by == "documents in place of queries"
    assert manifest.vectors.recall.queries == len(TEXTS)


def test_ids_and_texts_in_any_script_come_back(path):
    texts = [document(n)._replace(id=f"ид-{n}", title="", text=t) for n, t in enumerate("日ñ\0🍎")]
    build(path, texts)
    found = {r.id: r.text for r in DocumentIndex(path).search(np.ones((1, 8)), 9)[0]}
    assert found == {text.id: text.text for text in texts}


def test_open_index_keeps_working_while_another_one_replaces_it(path):
    build(path)
    index, query = DocumentIndex(path), queries(1)[0]
    build(path, TEXTS[:9], overwrite=True)
    assert found_by(index, query, 15) == brute_force(TEXTS, query, 15)


def test_index_replaced_while_it_is_opened_is_opened_again(path, monkeypatch):
    build(path)
    check, checks = document_index.check_digests, []

    def slow(*arguments):
        checks.append(arguments)
        if len(checks) == 1:
            build(path, TEXTS[:9], overwrite=True)
        check(*arguments)

    monkeypatch.setattr(document_index, "check_digests", slow)
    assert len(DocumentIndex(path)) == 9


def test_leftovers_of_a_killed_build_do_not_become_part_of_the_next(path):
    build(path)
    for folder in ("000002", ".000003.machine.abcdefgh.new"):
        (path / folder).mkdir()
        (path / folder / "vectors").write_bytes(bytes(8))
    build(path, TEXTS[:9], overwrite=True)
    assert sorted(file.name for file in path.iterdir()) == ["000003", "manifest.json"]
    assert_whole(path, TEXTS[:9])


class Lengths:
    """A half that keeps the length of each text."""

    name = "lengths"

    def encode(self, texts):
        return np.array([len(text) for text in texts], "u1")

    @contextlib.contextmanager
    def writer(self, directory):
        directory.mkdir()
        with open(directory / "lengths", "wb") as file:
            yield types.SimpleNamespace(add=lambda rows: rows.tofile(file))

    def join(self, parts, directory, documents):
        directory.mkdir()
        rows = np.concatenate([np.fromfile(part / "lengths", "u1") for part in parts])
        assert [len(documents[position].text) for position in range(len(rows))] == rows.tolist()
        (directory / "lengths").write_bytes(rows.tobytes())
        return helpers.TOWER.thresholds

    def differences(self, there):
        return "" if there else "no lengths"


def test_halves_lie_side_by_side_and_count_documents_alike(path, monkeypatch):
    @dataclasses.dataclass(frozen=True)
    class Manifest(index_manifest.IndexManifest):
        lengths: tuple[float, ...] | None = None

    monkeypatch.setattr(builder, "IndexManifest", Manifest)
    dense = dense_half.DenseHalf(Tower(), helpers.DIM)
    assert builder.build_index(path, Documents(TEXTS), [Lengths(), dense], TOWER).lengths
    written = np.fromfile(path / "000001" / "lengths" / "lengths", "u1")
    assert written.tolist() == [len(text.text) for text in TEXTS]
    assert_whole(path)
    build(path, TEXTS)  # an index that has more than what is asked for


@pytest.mark.parametrize("replaced", [False, True])
def test_whenever_the_power_goes_the_old_or_the_new_index_is_there(tmp_path, monkeypatch, replaced):
    (tmp_path / "root").mkdir()
    path = tmp_path / "root" / "index"
    if replaced:
        build(path, TEXTS[:20])
    with PowerLoss(tmp_path / "root", monkeypatch) as losses:
        build(path, TEXTS[:30], overwrite=replaced)
    found = []
    for number, disk in enumerate(losses.disks):
        there = write_disk(disk, tmp_path / str(number)) / "index"
        found.append(len(DocumentIndex(there)) if there.exists() else 0)
        if number % 10 == 0:  # the command goes on from whatever there is
            build(there, TEXTS[:30], overwrite=True)
            assert len(DocumentIndex(there)) == 30
    assert {*found} == {20 if replaced else 0, 30}
    assert len(DocumentIndex(write_disk(losses.lasting, tmp_path / "lasting") / "index")) == 30
