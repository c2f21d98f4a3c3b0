"""Shards: the lists of the set, each once, in a repeatable order; every defect has a place."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import os
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.small_world import SmallWorld
from tests.training.tiny_set import write_tiny_set
from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.pipeline import ListPipeline
from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.extras.distributed import pipeline as shard_pipeline
from tf_smoothclir.extras.distributed import writer as shard_writer
from tf_smoothclir.extras.distributed.pipeline import ShardPipeline
from tf_smoothclir.extras.distributed.reading import Shards, decode_lists
from tf_smoothclir.extras.distributed.writer import write_shards
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.utils.errors import InputError

QUERIES, DOCUMENTS, SHARDS = 23, 17, 4
TEXT = TextSettings(max_query_tokens=30, max_document_tokens=40)
SAMPLING = {"negatives": 4, "seed": 5}
FIRST, THIRD = "train-00000-of-00004.tfrecord", "train-00002-of-00004.tfrecord"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A tokenized set: queries of 0 to 3 tokens, each with 1 to 3 judged documents of 0 to 4."""
    texts = {
        "queries": [(f"q{i}", " ".join(f"w{i}x{k}" for k in range(i % 4))) for i in range(QUERIES)],
        "documents": [
            (f"d{j}", " ".join(f"v{j}x{k}" for k in range(j % 5))) for j in range(DOCUMENTS)
        ],
    }
    judged = [
        (f"q{i}", f"d{(i + k) % DOCUMENTS}", k) for i in range(QUERIES) for k in range(1 + i % 3)
    ]
    source = SmallWorld(
        **texts, judgments=judged, splits={f"q{i}": "train" for i in range(QUERIES)}
    )
    return tokenize_set(RetrievalSet.load(source), TEXT, tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def lists(world):
    return candidate_lists(world.retrieval_set, split="train", **SAMPLING)


@pytest.fixture(scope="module")
def written(world, lists, tmp_path_factory):
    """Four shards; read-only."""
    directory = tmp_path_factory.mktemp("shards") / "four"
    return write_shards(world, lists, directory, SHARDS, **SAMPLING, text=TEXT)


@pytest.fixture
def copied(written, tmp_path):
    """A copy that may be damaged."""
    shutil.copytree(written.directory, tmp_path / "copy")
    return Shards.open(tmp_path / "copy")


def check_files(shards):
    """Checks the files by the digests of the manifest."""
    for entry in shards.manifest.shards:
        content = Path(shards.path(entry.file)).read_bytes()
        assert hashlib.sha256(content).hexdigest() == entry.sha256
    for role in ROLES:
        shards.vocabulary(role)


def records_of(path):
    return [record.numpy() for record in tf.data.TFRecordDataset(os.fspath(path))]


def examples_of(shards):
    for shard in shards.manifest.shards:
        for record in records_of(shards.path(shard.file)):
            yield tf.train.Example.FromString(record)


def as_lists(batches):
    """One hashable (query, documents, grades) for each list of batches, in their order."""
    found = []
    for inputs, grades in batches:
        inputs = tf.nest.map_structure(np.asarray, inputs)
        queries, texts = (
            [tuple(text) for text in np.split(tokens.ids, np.cumsum(tokens.lengths))[:-1]]
            for tokens in inputs.texts
        )
        ends = np.cumsum(inputs.list_lengths)
        assert ends[-1] == len(texts) == len(grades)
        grades = grades.numpy().tolist()
        for query, begin, end in zip(queries, ends - inputs.list_lengths, ends):
            found.append((query, tuple(texts[begin:end]), tuple(grades[begin:end])))
    return found


def read(shards, epoch=0, start_step=0, **arguments):
    pipeline = ShardPipeline(shards, **{"batch_size": 20, "seed": 13, **arguments})
    return list(pipeline.epoch(epoch, start_step))


def assert_same_batches(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        tf.nest.map_structure(np.testing.assert_array_equal, one, other)


# --- what is written


def test_examples_hold_ids_tokens_and_grades_of_each_list(written, world, lists):
    retrieval_set = world.retrieval_set
    found = {}
    for example in examples_of(written):
        values = {name: f.bytes_list.value for name, f in example.features.feature.items()}
        found[values.pop("query_id")[0].decode()] = values
    assert found.keys() == {retrieval_set.query_ids[row] for row in lists.query_rows}
    for number, query in enumerate(lists.query_rows):
        values = found[retrieval_set.query_ids[query]]
        pairs = slice(lists.offsets[number], lists.offsets[number + 1])
        rows = lists.document_rows[pairs]
        texts = [world.tokens("document")[row].tolist() for row in rows]
        ids = [retrieval_set.document_ids[row].encode() for row in rows]
        assert list(values.pop("document_ids")) == ids
        numbers = {name: np.frombuffer(v, "<i4").tolist() for name, (v,) in values.items()}
        assert numbers == {
            "query_tokens": world.tokens("query")[query].tolist(),
            "document_tokens": list(itertools.chain(*texts)),
            "document_lengths": [len(text) for text in texts],
            "grades": lists.grades[pairs].tolist(),
        }


def test_manifest_counts_what_was_written(written, world):
    manifest = json.loads(Path(written.directory, "manifest.json").read_text())
    judged = sum(1 + i % 3 for i in range(QUERIES))
    pairs = judged + 4 * QUERIES
    assert {key: manifest[key] for key in SAMPLING} == SAMPLING
    assert manifest["name"] == "small-en-de"
    assert (manifest["queries"], manifest["pairs"], manifest["num_grades"]) == (QUERIES, pairs, 3)
    assert manifest["query_tokens"] == sum(i % 4 for i in range(QUERIES))
    every = as_lists(read(written))
    assert manifest["document_tokens"] == sum(len(text) for _, texts, _ in every for text in texts)
    assert TextSettings(**manifest["text"]) == TEXT
    for key, total in (("queries", QUERIES), ("pairs", pairs)):
        assert sum(shard[key] for shard in manifest["shards"]) == total
    for number, shard in enumerate(manifest["shards"]):
        assert shard["file"] == f"train-{number:05d}-of-00004.tfrecord"
        assert shard["queries"] == len(records_of(written.path(shard["file"])))
    for role in ROLES:
        assert written.vocabulary(role) == world.vocabulary(role)


def test_fingerprint_is_that_of_the_manifest_file(written):
    """Runs keep it and compare it when they continue, so it never changes."""
    manifest = json.loads(Path(written.directory, "manifest.json").read_text())
    canonical = json.dumps(manifest, sort_keys=True).encode()
    assert written.manifest.fingerprint() == hashlib.sha256(canonical).hexdigest()


@pytest.mark.parametrize("number", [1, 5, QUERIES])
def test_shards_have_similar_numbers_of_pairs_and_reproducible_bytes(
    world, lists, tmp_path, number
):
    first, second = (
        write_shards(world, lists, tmp_path / name, number, **SAMPLING, text=TEXT)
        for name in ("first", "second")
    )
    assert first.manifest == second.manifest  # the hashes of the files stand there
    pairs = [shard.pairs for shard in first.manifest.shards]
    assert len(pairs) == number
    assert max(pairs) - min(pairs) <= np.diff(lists.offsets).max()
    assert_same_batches(read(first), read(second))
    assert sorted(as_lists(read(first))) == sorted(
        as_lists(ListPipeline(world, batch_size=20, seed=1).epoch(lists, 0))
    )
    check_files(first)


@pytest.mark.parametrize("number", [0, QUERIES + 1])
def test_more_shards_than_lists_or_none_is_an_error(world, lists, tmp_path, number):
    with pytest.raises(InputError, match=rf"--num_shards={number}: it must be in 1\.\.{QUERIES}"):
        write_shards(world, lists, tmp_path / "shards", number, **SAMPLING, text=TEXT)
    assert list(tmp_path.iterdir()) == []


class Stopped(BaseException):
    pass


@pytest.fixture
def stopped_in_the_middle(monkeypatch):
    """Makes the tenth list end the writing."""
    original, calls = shard_writer._example, []

    def example(values):
        calls.append(1)
        if len(calls) == 10:
            raise Stopped
        return original(values)

    monkeypatch.setattr(shard_writer, "_example", example)


@pytest.mark.usefixtures("stopped_in_the_middle")
def test_interrupted_write_leaves_nothing(world, lists, tmp_path):
    with pytest.raises(Stopped):
        write_shards(world, lists, tmp_path / "shards", 2, **SAMPLING, text=TEXT)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("stopped_in_the_middle")
def test_interrupted_overwrite_leaves_the_old_shards(world, lists, copied):
    with pytest.raises(Stopped):
        write_shards(world, lists, copied.directory, 2, **SAMPLING, text=TEXT, overwrite=True)
    assert Shards.open(copied.directory).manifest == copied.manifest
    check_files(copied)
    assert [path.name for path in Path(copied.directory).parent.iterdir()] == ["copy"]


def test_overwrite_replaces_all_old_files_even_damaged_ones(world, lists, copied):
    directory = Path(copied.directory)
    (directory / "manifest.json").write_text("{")
    with pytest.raises(InputError, match=r"not empty.*--overwrite"):
        write_shards(world, lists, directory, 2, **SAMPLING, text=TEXT)
    assert (directory / FIRST).is_file()
    check_files(write_shards(world, lists, directory, 2, **SAMPLING, text=TEXT, overwrite=True))
    assert sorted(path.name for path in directory.iterdir()) == [
        "manifest.json",
        "train-00000-of-00002.tfrecord",
        "train-00001-of-00002.tfrecord",
        "vocabulary",
    ]


@pytest.mark.parametrize("name", ["notes.txt", "vocabulary/french.txt", "train-1.tfrecord.gz"])
def test_overwrite_deletes_nothing_but_shards(world, lists, copied, name):
    Path(copied.directory, name).write_text("mine")
    with pytest.raises(InputError, match=f"more than shards, for example {name}"):
        write_shards(world, lists, copied.directory, 2, **SAMPLING, text=TEXT, overwrite=True)
    assert Path(copied.directory, name).read_text() == "mine"
    check_files(copied)


def test_file_in_the_way_and_remote_directory_are_errors(world, lists, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("mine")
    for directory, reason in (("file", "there is a file"), ("gs://bucket/shards", "not written")):
        with pytest.raises(InputError, match=f"--output_dir={directory}: .*{reason}"):
            write_shards(world, lists, directory, 2, **SAMPLING, text=TEXT, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_empty_directory_and_link_to_one_are_free(world, lists, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("empty")
    write_shards(world, lists, tmp_path / "link", 2, **SAMPLING, text=TEXT)
    check_files(Shards.open(tmp_path / "empty"))
    assert (tmp_path / "link").is_symlink()


def test_shards_that_another_process_wrote_meanwhile_stay(world, lists, tmp_path, monkeypatch):
    write_json = shard_writer.write_json

    def while_another_is_faster(*arguments):
        monkeypatch.setattr(shard_writer, "write_json", write_json)
        write_shards(world, lists, tmp_path / "shards", 3, **SAMPLING, text=TEXT)
        write_json(*arguments)

    monkeypatch.setattr(shard_writer, "write_json", while_another_is_faster)
    with pytest.raises(InputError, match="another process has written other shards"):
        write_shards(world, lists, tmp_path / "shards", 2, **SAMPLING, text=TEXT)
    assert len(Shards.open(tmp_path / "shards").manifest.shards) == 3


# --- what is read


@pytest.mark.parametrize("batch_size", [1, 20, 1000])
def test_round_trip_gives_the_lists_and_batches_of_the_list_pipeline(
    written, world, lists, batch_size
):
    pipeline = ShardPipeline(written, batch_size=batch_size, seed=13)
    expected = ListPipeline(world, batch_size=batch_size, seed=13)
    assert pipeline.epoch(0).element_spec == expected.epoch(lists, 0).element_spec
    found, wanted = list(pipeline.epoch(0)), list(expected.epoch(lists, 0))
    assert sorted(as_lists(found)) == sorted(as_lists(wanted))
    assert len(found) == pipeline.num_steps()


def test_texts_without_a_token_are_read(written):
    every = as_lists(read(written))
    assert sum(query == () for query, _, _ in every) == len(range(0, QUERIES, 4))
    assert any(text == () for _, texts, _ in every for text in texts)


@pytest.mark.parametrize("buffer", [4, 1024])
def test_order_is_a_function_of_seed_and_epoch(written, monkeypatch, buffer):
    monkeypatch.setattr(shard_pipeline, "_LISTS_IN_BUFFER", buffer)
    orders = set()
    for seed, epoch in ((1, 0), (1, 1), (2, 0)):
        tf.random.set_seed(1)
        first = read(written, epoch, seed=seed)
        tf.random.set_seed(2)
        assert_same_batches(read(written, epoch, seed=seed), first)
        orders.add(tuple(as_lists(first)))
    assert len(orders) == 3
    assert len({tuple(sorted(order)) for order in orders}) == 1


def test_neighbours_in_a_shard_are_separated(written):
    """Lists that are neighbours in a file seldom are in an epoch."""
    queries = [name_of(example) for example in examples_of(written)]
    assert len(set(queries)) == QUERIES
    stored = [as_lists(_batch(example))[0] for example in examples_of(written)]
    place = {entry: number for number, entry in enumerate(as_lists(read(written)))}
    steps = [place[b] - place[a] for a, b in itertools.pairwise(stored)]
    assert sum(step == 1 for step in steps) < QUERIES / 3


def name_of(example):
    return example.features.feature["query_id"].bytes_list.value[0].decode()


def _batch(example):
    return [decode_lists(tf.constant([example.SerializeToString()]))]


@pytest.mark.parametrize("workers", [3, SHARDS])
def test_workers_together_read_each_list_once(written, workers):
    shares = []
    for worker in range(workers):
        arguments = {"worker": worker, "num_workers": workers}
        batches = read(written, 1, **arguments)
        shares.append(as_lists(batches))
        pipeline = ShardPipeline(written, batch_size=20, seed=13, **arguments)
        assert pipeline.num_steps() == len(batches)
    assert sorted(itertools.chain(*shares)) == sorted(as_lists(read(written)))
    expected = [shard.queries for shard in written.manifest.shards]
    assert [len(share) for share in shares] == [sum(expected[w::workers]) for w in range(workers)]


def test_more_workers_than_shards_is_an_error(written):
    match = f"{SHARDS + 1} workers cannot share {SHARDS} shards.*--num_shards={SHARDS + 1}"
    with pytest.raises(InputError, match=match):
        ShardPipeline(written, batch_size=20, seed=13, worker=0, num_workers=SHARDS + 1)


@pytest.mark.parametrize(("worker", "workers"), [(2, 2), (-1, 2), (0, 0)])
def test_worker_out_of_range_is_a_value_error(written, worker, workers):
    with pytest.raises(ValueError, match="worker must be in"):
        ShardPipeline(written, batch_size=20, seed=13, worker=worker, num_workers=workers)


@pytest.mark.parametrize(
    ("arguments", "buffer"), [({}, 4), ({"worker": 1, "num_workers": 2}, 1024)]
)
def test_epoch_from_a_step_on_is_the_tail_of_the_whole(written, monkeypatch, arguments, buffer):
    monkeypatch.setattr(shard_pipeline, "_LISTS_IN_BUFFER", buffer)
    whole = read(written, 1, **arguments)
    assert len(whole) > 2
    for start in (1, 2, len(whole) - 1, len(whole)):
        assert_same_batches(read(written, 1, start, **arguments), whole[start:])


@pytest.mark.parametrize("step", [0, 3])
def test_rows_of_a_batch_name_its_pairs(written, world, lists, step):
    pipeline = ShardPipeline(written, batch_size=20, seed=13, worker=1, num_workers=2)
    rows = pipeline.rows(1, step)
    inputs, grades = list(pipeline.epoch(1))[step]
    assert [grade for _, _, grade in rows] == grades.numpy().tolist()
    queries, documents = world.retrieval_set.query_ids, world.retrieval_set.document_ids
    tokens = [tuple(world.tokens("document")[documents.index(row[1])]) for row in rows]
    assert list(itertools.chain(*tokens)) == inputs.texts.document.ids.numpy().tolist()
    counts = [sum(1 for _ in pairs) for _, pairs in itertools.groupby(rows, lambda row: row[0])]
    assert counts == inputs.list_lengths.numpy().tolist()
    judged = {
        (queries[q], documents[d]): grade
        for q, d, grade in zip(lists.pair_query_rows, lists.document_rows, lists.grades)
    }
    assert all(judged[query, document] == grade for query, document, grade in rows)


def test_remote_directory_is_read_like_a_local_one(written):
    remote = "ram://bucket/shards"
    for path in Path(written.directory).rglob("*"):
        if path.is_file():
            target = f"{remote}/{path.relative_to(written.directory).as_posix()}"
            tf.io.gfile.makedirs(os.path.dirname(target))
            with tf.io.gfile.GFile(target, "wb") as file:
                file.write(path.read_bytes())
    shards = Shards.open(remote)
    assert shards.find_defect() is None
    assert_same_batches(read(shards), read(written))
    tf.io.gfile.remove(f"{remote}/{THIRD}")
    with pytest.raises(InputError, match=f"{remote}/{THIRD}: there is no such file"):
        Shards.open(remote)


def test_tf_distribute_does_not_split_the_files_again_and_autotuning_is_off(written):
    options = ShardPipeline(written, batch_size=20, seed=13).epoch(0).options()
    off = tf.data.experimental.AutoShardPolicy.OFF
    assert options.experimental_distribute.auto_shard_policy == off
    assert options.autotune.enabled is False


# --- what is damaged


@pytest.mark.parametrize("file", ["manifest.json", FIRST, THIRD])
def test_missing_file_is_named(copied, file):
    Path(copied.directory, file).unlink()
    with pytest.raises(InputError, match=f"{file}: there is no such file. Copy .*again"):
        Shards.open(copied.directory)


def test_missing_directory_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere/manifest\.json: there is no such file"):
        Shards.open(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "content", ["", '{"format_version"', "[1]", "null", '{"role": "query"}', b"\xff\xfe{"]
)
def test_another_file_in_place_of_the_manifest_is_an_error(copied, content):
    content = content if isinstance(content, bytes) else content.encode()
    Path(copied.directory, "manifest.json").write_bytes(content)
    with pytest.raises(InputError, match=r"manifest\.json: this is no manifest of shards"):
        Shards.open(copied.directory)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.pop("pairs"), "pairs is missing"),
        (lambda m: m.update(queries="23"), "queries must be an integer, not '23'"),
        (lambda m: m.update(shards={}), r"shards must be a list, not \{\}"),
        (lambda m: m["shards"][2].pop("sha256"), r"shards\[2\]\.sha256 is missing"),
        (lambda m: m["shards"][0].update(bytes=None), r"shards\[0\]\.bytes must be an integer"),
        (lambda m: m["vocabularies"].update(query=1), r"vocabularies\.query must be a string"),
    ],
)
def test_missing_or_wrong_value_in_the_manifest_is_named(copied, change, message):
    path = Path(copied.directory, "manifest.json")
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))
    match = rf"manifest\.json: this is no .* or a damaged one: {message}.*with --overwrite"
    with pytest.raises(InputError, match=match):
        Shards.open(copied.directory)


@pytest.mark.parametrize("change", [-1, 1])
def test_wrong_size_is_named_when_opened(copied, change):
    path = Path(copied.directory, THIRD)
    size = path.stat().st_size
    os.truncate(path, size + change)
    match = f"{THIRD}: the file has {size + change} bytes, but {size} were written"
    with pytest.raises(InputError, match=match):
        Shards.open(copied.directory)


def place_of(path, record):
    """Where a record begins in the file: 8 bytes of length, 4 of checksum, the data, 4 more."""
    content, begin = path.read_bytes(), 0
    for _ in range(record):
        begin += 8 + 4 + struct.unpack_from("<Q", content, begin)[0] + 4
    return begin


@pytest.mark.parametrize(
    ("record", "place"),
    [(0, 0), (3, 8), (3, 12), (0, 40)],
    ids=["length", "checksum", "first byte", "data"],
)
def test_flipped_bit_names_file_and_record(copied, record, place):
    path = Path(copied.directory, THIRD)
    content = bytearray(path.read_bytes())
    content[place_of(path, record) + place] ^= 1
    path.write_bytes(content)
    shards = Shards.open(copied.directory)  # the size is right
    match = f"{THIRD}, record {record + 1}: .*corrupted record.*Copy the shards again, or write"
    with pytest.raises(InputError, match=match), shards.explaining_defects():
        read(shards)


@pytest.mark.parametrize(("record", "more"), [(0, 0), (2, 0), (2, 5), (2, 20)])
def test_file_cut_off_while_in_use_names_file_and_record(copied, record, more):
    path = Path(copied.directory, THIRD)
    os.truncate(path, place_of(path, record) + more)
    reason = "truncated record" if more > 12 else f"the file has {record} whole records, but"
    match = f"{THIRD}, record {record + 1}: .*{reason}"
    with pytest.raises(InputError, match=match), copied.explaining_defects():
        read(copied)


def test_file_that_is_longer_than_it_was_names_the_record(copied):
    path = Path(copied.directory, THIRD)
    path.write_bytes(path.read_bytes() + path.read_bytes())
    number = copied.manifest.shards[2].queries
    match = f"record {number + 1}: the file has {2 * number} whole records"
    with pytest.raises(InputError, match=match), copied.explaining_defects():
        read(copied)


def test_file_deleted_while_in_use_is_named(copied):
    Path(copied.directory, THIRD).unlink()
    with pytest.raises(InputError, match=THIRD), copied.explaining_defects():
        read(copied)


def set_numbers(name, change):
    def apply(example):
        value = example.features.feature[name].bytes_list.value
        value[0] = change(np.frombuffer(value[0], "<i4").copy()).tobytes()

    return apply


def negative_length(lengths):
    """The sum stays."""
    lengths[:2] = -1, lengths[0] + lengths[1] + 1
    return lengths


DEFECTS = {
    **{
        f"without {name}": (lambda example, name=name: example.features.feature.pop(name), name)
        for name in ("query_tokens", "document_tokens", "document_lengths", "grades")
    },
    "grade too few": (set_numbers("grades", lambda n: n[1:]), "grades and document_lengths"),
    "length too few": (set_numbers("document_lengths", lambda n: n[1:]), "grades and document_"),
    "token too many": (
        set_numbers("document_tokens", lambda n: np.append(n, n[:1])),
        "document_lengths and document_tokens differ",
    ),
    "half a number": (
        set_numbers("query_tokens", lambda n: np.append(n.view("u1"), np.uint8(1))),
        "half a number",
    ),
    "negative length": (set_numbers("document_lengths", negative_length), "negative"),
}


def rewrite(path, *changes):
    """Applies a change to each of the first records of a file."""
    examples = [tf.train.Example.FromString(record) for record in records_of(path)]
    for change, example in zip(changes, examples):
        change(example)
    with tf.io.TFRecordWriter(os.fspath(path)) as writer:
        for example in examples:
            writer.write(example.SerializeToString())


@pytest.mark.parametrize("defect", DEFECTS)
def test_example_that_is_not_a_candidate_list_names_file_and_record(copied, defect):
    change, reason = DEFECTS[defect]
    rewrite(Path(copied.directory, THIRD), lambda _: None, change)
    match = f"{THIRD}, record 2: the record cannot be used .*{reason}"
    with pytest.raises(InputError, match=match) as caught, copied.explaining_defects():
        read(copied)
    assert "{{" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_half_numbers_of_two_lists_are_not_joined(copied):
    half = set_numbers("query_tokens", lambda n: np.append(n.view("u1"), np.zeros(2, "u1")))
    rewrite(Path(copied.directory, THIRD), half, half)
    with pytest.raises(tf.errors.InvalidArgumentError, match="query_tokens has half a number"):
        read(copied, batch_size=1000)  # all lists at once
    with pytest.raises(InputError, match=f"{THIRD}, record 1"), copied.explaining_defects():
        read(copied, batch_size=1000)


def test_errors_that_are_no_defect_of_the_shards_stay_as_they_are(written):
    error = tf.errors.InvalidArgumentError(None, None, "of the model")
    with pytest.raises(tf.errors.InvalidArgumentError) as caught, written.explaining_defects():
        raise error
    assert caught.value is error
    assert written.find_defect() is None


@pytest.mark.parametrize("role", ROLES)
def test_changed_or_missing_vocabulary_is_named(copied, role):
    path = Path(copied.directory, "vocabulary", f"{role}.txt")
    path.write_text(path.read_text() + "one more\n")
    with pytest.raises(InputError, match=rf"{role}\.txt: the file is not the one"):
        copied.vocabulary(role)
    path.unlink()
    with pytest.raises(InputError, match=rf"{role}\.txt: there is no such file"):
        copied.vocabulary(role)


# --- the command


def test_command_writes_once_and_again_with_overwrite(commands, tmp_path):
    run = functools.partial(commands.run, "tf_smoothclir.extras.distributed.write_shards")
    arguments = [
        f"--data_dir={write_tiny_set(tmp_path / 'data')}",
        f"--cache_dir={tmp_path / 'cache'}",
        f"--output_dir={tmp_path / 'shards'}",
        "--negatives=3",
        "--verbosity=-1",
    ]
    done = run(*arguments, "--num_shards=2")
    assert (done.returncode, done.stderr) == (0, "")
    # 12 training queries with 2 judged and 3 sampled documents each
    assert done.stdout.startswith(f"{tmp_path}/shards: 2 shards, 12 queries, 60 pairs, 0.0 MB")
    shards = Shards.open(tmp_path / "shards")
    check_files(shards)
    assert len(as_lists(read(shards))) == 12
    assert {key: getattr(shards.manifest, key) for key in SAMPLING} == {
        "negatives": 3,
        "seed": 13,
    }

    refused = run(*arguments)
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"error: --output_dir={tmp_path}/shards: the directory is not")
    assert "--overwrite" in refused.stderr

    again = run(*arguments, "--num_shards=2", "--overwrite")
    assert (again.returncode, again.stderr, again.stdout) == (0, "", done.stdout)
    assert Shards.open(tmp_path / "shards").manifest == shards.manifest
