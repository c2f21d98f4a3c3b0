"""Adding and removing: the ranking is the same as that of a new index of the same documents."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.index.helpers import (
    TOWER,
    Documents,
    Tower,
    brute_force,
    document,
    found_by,
    queries,
    vector_of,
)
from tests.training.test_run_directory import snapshot
from tf_smoothclir.index import document_index, generations
from tf_smoothclir.index import manifest as index_manifest
from tf_smoothclir.index import updates as index_updates
from tf_smoothclir.index import vector_index as index_kinds
from tf_smoothclir.index.builder import build_index
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.index.updates import update_index
from tf_smoothclir.index.vector_index import SMALLEST_IVF_PQ, IndexSettings
from tf_smoothclir.utils.errors import InputError

TEXTS = [document(number) for number in range(60)]
ADDED = [document(number) for number in range(100, 110)]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Kind -> an index; read-only."""
    path = tmp_path_factory.mktemp("built")
    for kind in ("flat", "hnsw"):
        build_index(path / kind, Documents(TEXTS), Tower(), TOWER, IndexSettings(kind))
    return path


@pytest.fixture(params=["flat", "hnsw"])
def path(request, built, tmp_path):
    return shutil.copytree(built / request.param, tmp_path / "index")


def update(path, add=(), remove=(), **arguments):
    added = Documents(add) if add else None
    return update_index(path, Tower(), TOWER, add=added, remove=remove, **arguments)


def test_ivf_pq_becomes_flat_if_few_documents_are_left(tmp_path, monkeypatch):
    for module in (index_kinds, index_updates):
        monkeypatch.setattr(module, "SMALLEST_IVF_PQ", 300)
    texts = [document(number) for number in range(300)]
    build_index(tmp_path / "index", Documents(texts), Tower(), TOWER, IndexSettings("ivf_pq"))
    manifest = update(tmp_path / "index", remove=[text.id for text in texts[:100]])
    assert manifest.settings.kind == "flat"
    assert_holds(tmp_path / "index", texts[100:])


def test_updated_index_is_not_taken_for_the_index_of_its_collection(path):
    kind = json.loads((path / "manifest.json").read_text())["index"]["kind"]
    build_index(path, Documents(TEXTS), Tower(), TOWER)
    update(path, remove=[TEXTS[0].id])
    with pytest.raises(InputError, match="documents were added to it or removed from it since"):
        build_index(path, Documents(TEXTS), Tower(), TOWER)
    build_index(path, Documents(TEXTS), Tower(), TOWER, IndexSettings(kind), overwrite=True)
    build_index(path, Documents(TEXTS), Tower(), TOWER)
    assert_holds(path, TEXTS)


def assert_holds(path, texts):
    index = DocumentIndex(path)
    assert len(index) == len(texts)
    for query in (*queries(4), np.zeros(8, np.float32)):
        assert found_by(index, query, 15) == brute_force(texts, query, 15)
    (everything,) = index.search(queries(1), 1000)
    found = {(r.id, r.title, r.text) for r in everything}
    assert found == {tuple(text) for text in texts}
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_added_documents_are_found(path):
    manifest = update(path, ADDED)
    assert manifest.documents == 70
    assert_holds(path, TEXTS + ADDED)


def test_removed_documents_are_not_found(path):
    manifest = update(path, remove=["d3", "d7"])
    assert (manifest.documents, manifest.removed) == (58, 2)
    assert_holds(path, [text for text in TEXTS if text.id not in ("d3", "d7")])


def test_removed_document_can_be_added_again_with_another_text(path):
    update(path, remove=["d3"])
    again = document(3, "another text")
    update(path, [again])
    assert_holds(path, [text for text in TEXTS if text.id != "d3"] + [again])


def test_document_is_removed_before_the_same_id_is_added(path):
    again = document(3, "another text")
    update(path, [again], remove=["d3"])
    assert_holds(path, [text for text in TEXTS if text.id != "d3"] + [again])


def test_known_id_is_refused_and_nothing_is_changed(path):
    before = snapshot(path.parent)
    with pytest.raises(InputError, match=r"memory:2: id 'd3' is in the index already \(1 of 2"):
        update(path, [ADDED[0], document(3, "another text")], remove=["d5"])
    assert snapshot(path.parent) == before


def test_known_id_is_replaced_with_replace(path):
    again = document(3, "another text")
    update(path, [ADDED[0], again], replace=True)
    assert_holds(path, [text for text in TEXTS if text.id != "d3"] + [ADDED[0], again])


@pytest.mark.parametrize("ids", [["d3", "d99"], ["d99"], ["D3"], [""]])
def test_unknown_id_is_refused_and_nothing_is_changed(path, ids):
    before = snapshot(path.parent)
    with pytest.raises(InputError, match=rf"id '{ids[-1]}': it is not in the index"):
        update(path, remove=ids)
    assert snapshot(path.parent) == before


def test_removed_id_is_unknown(path):
    update(path, remove=["d3"])
    with pytest.raises(InputError, match="id 'd3': it is not in the index"):
        update(path, remove=["d3"])


def test_duplicate_id_among_the_added_is_refused(path):
    before = snapshot(path.parent)
    with pytest.raises(InputError, match="memory:3: id 'd100' is already used at memory:1"):
        update(path, [*ADDED[:2], ADDED[0]], replace=True)
    assert snapshot(path.parent) == before


def test_last_document_cannot_be_removed(path):
    before = snapshot(path.parent)
    with pytest.raises(InputError, match="no document would be left"):
        update(path, remove=[text.id for text in TEXTS])
    assert snapshot(path.parent) == before


def test_index_of_other_towers_is_refused(path):
    before = snapshot(path.parent)
    with pytest.raises(InputError, match="different training runs"):
        update_index(
            path, Tower(), dataclasses.replace(TOWER, pair_id="b" * 64), add=Documents(ADDED)
        )
    assert snapshot(path.parent) == before


def test_many_removed_documents_are_dropped_from_the_files(path):
    update(path, remove=[f"d{n}" for n in range(12)])  # a fifth
    assert DocumentIndex(path).manifest.removed == 12
    manifest = update(path, ADDED[:1], remove=["d12"])
    assert (manifest.removed, manifest.documents) == (0, 48)
    assert len(manifest.segments) == 1
    assert_holds(path, TEXTS[13:] + ADDED[:1])


def test_many_segments_are_merged(path, monkeypatch):
    monkeypatch.setattr(index_updates, "MOST_SEGMENTS", 3)
    numbers = [len(update(path, [text]).segments) for text in ADDED[:5]]
    assert numbers == [2, 3, 1, 2, 3]
    assert_holds(path, TEXTS + ADDED[:5])


def test_only_files_of_the_current_generation_are_left(path):
    manifest = update(path, ADDED, remove=["d1"])
    there = {p.relative_to(path).as_posix() for p in path.rglob("*") if p.is_file()}
    assert there == {"manifest.json", *manifest.digests}


@pytest.mark.parametrize(
    ("module", "step"),
    [(generations, "link_files"), (generations, "file_digests"), (index_manifest, "write_json")],
)
def test_interrupted_update_leaves_the_old_state_and_can_be_repeated(
    path, module, step, monkeypatch
):
    def fail(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, step, fail)
        with pytest.raises(KeyboardInterrupt):
            update(path, ADDED, remove=["d1"])
    index = DocumentIndex(path)
    assert found_by(index, queries(1)[0], 15) == brute_force(TEXTS, queries(1)[0], 15)
    update(path, ADDED, remove=["d1"])
    assert_holds(path, [text for text in TEXTS if text.id != "d1"] + ADDED)


def test_leftovers_of_a_killed_update_do_not_become_part_of_the_next(path):
    for folder in ("segments/000002-000000", "generations/000002", "segments/.000002-000000.x"):
        (path / folder).mkdir()
        for name in ("vectors", "removed"):
            (path / folder / name).write_bytes(bytes(8))
    update(path, ADDED, remove=["d1"])
    assert_holds(path, [text for text in TEXTS if text.id != "d1"] + ADDED)
    assert len(list(path.rglob("*00000*"))) == 3  # one generation, two segments


def test_open_index_keeps_working_during_an_update(path):
    index = DocumentIndex(path)
    update(path, ADDED, remove=[f"d{n}" for n in range(30)])
    query = queries(1)[0]
    assert found_by(index, query, 15) == brute_force(TEXTS, query, 15)


def test_index_updated_while_it_is_opened_is_opened_again(path, monkeypatch):
    check, checks = document_index.check_digests, []

    def slow(*arguments):
        checks.append(arguments)
        if len(checks) == 1:
            update(path, ADDED, remove=["d1"])  # opens the index itself: the second check
        check(*arguments)

    monkeypatch.setattr(document_index, "check_digests", slow)
    assert len(DocumentIndex(path)) == 69


def test_ivf_pq_takes_and_removes_documents(tmp_path):
    texts = [document(number) for number in range(SMALLEST_IVF_PQ)]
    path = tmp_path / "index"
    build_index(path, Documents(texts), Tower(), TOWER, IndexSettings("ivf_pq"))
    first = found_by(DocumentIndex(path), queries(1)[0], 5)
    assert len(set(first) & set(brute_force(texts, queries(1)[0], 5))) >= 4
    update(path, [document("new")], remove=[first[0][0]])
    assert first[0] not in found_by(DocumentIndex(path), queries(1)[0], 5)
    assert "dnew" in [id_ for id_, _ in found_by(DocumentIndex(path), vector_of("text new"), 50)]


NUMBERS = st.lists(st.integers(0, 15), min_size=1, max_size=4, unique=True)
STEPS = st.lists(st.tuples(st.booleans(), NUMBERS), min_size=1, max_size=5)


@settings(max_examples=15, deadline=None)
@given(STEPS)
def test_any_updates_rank_like_a_new_index(tmp_path_factory, steps):
    # A few texts for many ids, so that many scores are equal.
    path = tmp_path_factory.mktemp("updates") / "index"
    held = {n: document(n, f"text {n % 3}") for n in range(0, 16, 2)}
    build_index(path, Documents(held.values()), Tower(), TOWER)
    for number, (adds, numbers) in enumerate(steps):
        if adds:
            new = {n: document(n, f"text {(n + number) % 3}") for n in numbers}
            update(path, new.values(), replace=True)
            held |= new
        elif present := [n for n in numbers if n in held][: len(held) - 1]:
            update(path, remove=[held.pop(n).id for n in present])
    rebuilt = path.with_name("rebuilt")
    build_index(rebuilt, Documents(held.values()), Tower(), TOWER)
    for query in queries(3):
        expected = brute_force(list(held.values()), query, 20)
        assert (
            found_by(DocumentIndex(path), query, 20)
            == found_by(DocumentIndex(rebuilt), query, 20)
            == expected
        )
