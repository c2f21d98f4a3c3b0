"""Shards: the lists of the set, each once, in a repeatable order; every defect has a place."""

from __future__ import annotations

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
    ids = range(QUERIES)
    source = SmallWorld(
        queries=[(f"q{i}", " ".join(f"w{i}x{k}" for k in range(i % 4))) for i in ids],
        documents=[
            (f"d{j}", " ".join(f"v{j}x{k}" for k in range(j % 5))) for j in range(DOCUMENTS)
        ],
        judgments=[(f"q{i}", f"d{(i + k) % DOCUMENTS}", k) for i in ids for k in range(1 + i % 3)],
        splits={f"q{i}": "train" for i in ids},
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


def write(world, lists, directory, number, **options):
    return write_shards(world, lists, directory, number, **SAMPLING, text=TEXT, **options)


def check_files(shards):
    """Checks the files by the digests of the manifest."""
    for entry in shards.manifest.shards:
        content = Path(shards.path(entry.file)).read_bytes()
        assert hashlib.sha256(content).hexdigest() == entry.sha256
    for role in ROLES:
        shards.vocabulary(role)


def names_in(directory):
    return sorted(path.name for path in Path(directory).iterdir())


def records_of(path):
    return [record.numpy() for record in tf.data.TFRecordDataset(os.fspath(path))]


def all_records(shards):
    files = [shards.path(shard.file) for shard in shards.manifest.shards]
    return itertools.chain(*map(records_of, files))


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
    for record in all_records(written):
        features = tf.train.Example.FromString(record).features.feature
        values = {name: feature.bytes_list.value for name, feature in features.items()}
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
    pairs = sum(1 + i % 3 for i in range(QUERIES)) + 4 * QUERIES  # judged and sampled
    tokens = [len(text) for _, texts, _ in as_lists(read(written)) for text in texts]
    expected = {
        **SAMPLING,
        "name": "small-en-de",
        "queries": QUERIES,
        "pairs": pairs,
        "num_grades": 3,
        "query_tokens": sum(i % 4 for i in range(QUERIES)),
        "document_tokens": sum(tokens),
    }
    assert {key: manifest[key] for key in expected} == expected
    assert TextSettings(**manifest["text"]) == TEXT
    assert sum(shard["pairs"] for shard in manifest["shards"]) == pairs
    for number, shard in enumerate(manifest["shards"]):
        assert shard["file"] == f"train-{number:05d}-of-00004.tfrecord"
        assert shard["queries"] == len(records_of(written.path(shard["file"])))
    for role in ROLES:
        assert written.vocabulary(role) == world.vocabulary(role)
    # Runs keep the fingerprint and compare it when they continue, so it never changes.
    canonical = json.dumps(manifest, sort_keys=True).encode()
    assert written.manifest.fingerprint() == hashlib.sha256(canonical).hexdigest()


@pytest.mark.parametrize("number", [1, 5, QUERIES])
def test_shards_have_similar_numbers_of_pairs_and_reproducible_bytes(
    world, lists, tmp_path, number
):
    first, second = (write(world, lists, tmp_path / name, number) for name in ("first", "second"))
    assert first.manifest == second.manifest  # the hashes of the files stand there
    pairs = [shard.pairs for shard in first.manifest.shards]
    assert len(pairs) == number
    assert max(pairs) - min(pairs) <= np.diff(lists.offsets).max()
    assert sorted(as_lists(read(first))) == sorted(
        as_lists(ListPipeline(world, batch_size=20, seed=1).epoch(lists, 0))
    )
    check_files(first)


@pytest.mark.parametrize(
    ("directory", "number", "message"),
    [
        ("shards", 0, rf"--num_shards=0: it must be in 1\.\.{QUERIES}"),
        ("shards", QUERIES + 1, rf"--num_shards={QUERIES + 1}: it must be in 1\.\.{QUERIES}"),
        ("file", 2, "--output_dir=file: .*there is a file"),
        ("gs://bucket/shards", 2, "--output_dir=gs://bucket/shards: .*not written"),
    ],
)
def test_shards_that_cannot_be_written_leave_nothing(
    world, lists, tmp_path, monkeypatch, directory, number, message
):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("mine")
    with pytest.raises(InputError, match=message):
        write(world, lists, directory, number, overwrite=True)
    assert names_in(tmp_path) == ["file"]


class Stopped(BaseException):
    pass


def test_interrupted_write_leaves_nothing_or_the_old_shards(world, lists, copied, monkeypatch):
    original, calls = shard_writer._example, itertools.count(1)

    def example(values):
        if next(calls) % 10 == 0:
            raise Stopped
        return original(values)

    monkeypatch.setattr(shard_writer, "_example", example)
    parent = Path(copied.directory).parent
    with pytest.raises(Stopped):
        write(world, lists, parent / "new", 2)
    with pytest.raises(Stopped):
        write(world, lists, copied.directory, 2, overwrite=True)
    assert names_in(parent) == ["copy"]
    assert Shards.open(copied.directory).manifest == copied.manifest
    check_files(copied)


def test_overwrite_replaces_all_old_files_even_damaged_ones(world, lists, copied):
    directory = Path(copied.directory)
    (directory / "manifest.json").write_text("{")
    with pytest.raises(InputError, match=r"not empty.*--overwrite"):
        write(world, lists, directory, 2)
    assert (directory / FIRST).is_file()
    check_files(write(world, lists, directory, 2, overwrite=True))
    files = [f"train-0000{number}-of-00002.tfrecord" for number in (0, 1)]
    assert names_in(directory) == ["manifest.json", *files, "vocabulary"]


@pytest.mark.parametrize("name", ["notes.txt", "vocabulary/french.txt", "train-1.tfrecord.gz"])
def test_overwrite_deletes_nothing_but_shards(world, lists, copied, name):
    Path(copied.directory, name).write_text("mine")
    with pytest.raises(InputError, match=f"more than shards, for example {name}"):
        write(world, lists, copied.directory, 2, overwrite=True)
    assert Path(copied.directory, name).read_text() == "mine"
    check_files(copied)


def test_a_link_to_an_empty_directory_is_free(world, lists, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("empty")
    write(world, lists, tmp_path / "link", 2)
    check_files(Shards.open(tmp_path / "empty"))
    assert (tmp_path / "link").is_symlink()


def test_shards_that_another_process_wrote_meanwhile_stay(world, lists, tmp_path, monkeypatch):
    write_json = shard_writer.write_json

    def while_another_is_faster(*arguments):
        monkeypatch.setattr(shard_writer, "write_json", write_json)
        write(world, lists, tmp_path / "shards", 3)
        write_json(*arguments)

    monkeypatch.setattr(shard_writer, "write_json", while_another_is_faster)
    with pytest.raises(InputError, match="another process has written other shards"):
        write(world, lists, tmp_path / "shards", 2)
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


def test_neighbours_in_a_shard_seldom_are_neighbours_in_an_epoch(written):
    batches = [decode_lists(tf.constant([record])) for record in all_records(written)]
    place = {entry: number for number, entry in enumerate(as_lists(read(written)))}
    assert len(place) == QUERIES
    steps = [place[b] - place[a] for a, b in itertools.pairwise(as_lists(batches))]
    assert sum(step == 1 for step in steps) < QUERIES / 3


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


@pytest.mark.parametrize(
    ("worker", "workers", "error", "message"),
    [
        (0, 5, InputError, "5 workers cannot share 4 shards.*--num_shards=5"),
        (2, 2, ValueError, "worker must be in"),
        (-1, 2, ValueError, "worker must be in"),
        (0, 0, ValueError, "worker must be in"),
    ],
)
def test_wrong_numbers_of_workers(written, worker, workers, error, message):
    with pytest.raises(error, match=message):
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


def in_manifest(change):
    def damage(path):
        manifest = json.loads(path.read_text())
        change(manifest)
        path.write_text(json.dumps(manifest))

    return damage


OTHERS = (b"", b'{"format_version"', b"[1]", b"null", b'{"role": "query"}', b"\xff\xfe{")
OF_MANIFEST = [
    *((lambda path, c=c: path.write_bytes(c), "this is no manifest of shards") for c in OTHERS),
    (in_manifest(lambda m: m.pop("pairs")), "damaged one: pairs is missing.*with --overwrite"),
    (in_manifest(lambda m: m.update(queries="23")), "queries must be an integer, not '23'"),
    (in_manifest(lambda m: m.update(shards={})), r"shards must be a list, not \{\}"),
    (in_manifest(lambda m: m["shards"][2].pop("sha256")), r"shards\[2\]\.sha256 is missing"),
    (in_manifest(lambda m: m["vocabularies"].update(query=1)), r"vocabularies\.query must be"),
]
OF_FILE = [
    (Path.unlink, "there is no such file. Copy .*again"),
    (lambda path: os.truncate(path, path.stat().st_size - 1), "bytes, but .* were written"),
    (lambda path: os.truncate(path, path.stat().st_size + 1), "bytes, but .* were written"),
]


@pytest.mark.parametrize(
    ("file", "damage", "message"),
    [
        *(("manifest.json", *case) for case in (OF_FILE[0], *OF_MANIFEST)),
        *((file, *case) for file in (FIRST, THIRD) for case in OF_FILE),
    ],
)
def test_a_defect_that_is_found_when_opened_names_the_file(copied, file, damage, message):
    damage(Path(copied.directory, file))
    with pytest.raises(InputError, match=f"{file}: .*{message}"):
        Shards.open(copied.directory)


def place_of(path, record):
    """Where a record begins in the file: 8 bytes of length, 4 of checksum, the data, 4 more."""
    content, begin = path.read_bytes(), 0
    for _ in range(record):
        begin += 8 + 4 + struct.unpack_from("<Q", content, begin)[0] + 4
    return begin


def flipped(record, place):
    def damage(path):
        content = bytearray(path.read_bytes())
        content[place_of(path, record) + place] ^= 1
        path.write_bytes(content)

    return damage


def cut(record, more):
    return lambda path: os.truncate(path, place_of(path, record) + more)


def rewrite(path, records, change):
    """Applies `change` to the features of some records of a file."""
    examples = [tf.train.Example.FromString(record) for record in records_of(path)]
    for record in records:
        change(examples[record].features.feature)
    with tf.io.TFRecordWriter(os.fspath(path)) as writer:
        for example in examples:
            writer.write(example.SerializeToString())


def numbers(name, change, records=(1,)):
    def of(features):
        value = features[name].bytes_list.value
        value[0] = change(np.frombuffer(value[0], "<i4").copy()).tobytes()

    return lambda path: rewrite(path, records, of)


def without(name):
    return lambda path: rewrite(path, [1], lambda features: features.pop(name))


def negative_length(lengths):
    """The sum stays."""
    lengths[:2] = -1, lengths[0] + lengths[1] + 1
    return lengths


def odd_bytes(number):
    return lambda n: np.append(n.view("u1"), np.zeros(number, "u1"))


FEATURES = ("query_tokens", "document_tokens", "document_lengths", "grades")
CORRUPTED = "corrupted record.*Copy the shards again, or write"
UNUSABLE = "the record cannot be used .*"
DEFECTS = [  # what is done to the third file, the record that is named, and why
    (flipped(0, 0), 1, CORRUPTED),  # the length
    (flipped(3, 12), 4, CORRUPTED),  # the first byte of the data
    (cut(0, 0), 1, "the file has 0 whole records, but"),
    (cut(2, 0), 3, "the file has 2 whole records, but"),
    (cut(2, 5), 3, "the file has 2 whole records, but"),
    (cut(2, 20), 3, "truncated record"),
    *((without(name), 2, f"{UNUSABLE}{name}") for name in FEATURES),
    (numbers("grades", lambda n: n[1:]), 2, f"{UNUSABLE}grades and document_lengths"),
    (numbers("document_lengths", lambda n: n[1:]), 2, f"{UNUSABLE}grades and document_"),
    (numbers("document_tokens", lambda n: np.append(n, n[:1])), 2, f"{UNUSABLE}.*_tokens differ"),
    (numbers("document_lengths", negative_length), 2, f"{UNUSABLE}negative"),
    (numbers("query_tokens", odd_bytes(1)), 2, f"{UNUSABLE}half a number"),
]


@pytest.mark.parametrize(("damage", "record", "reason"), DEFECTS)
def test_a_defect_that_is_found_while_reading_names_file_and_record(copied, damage, record, reason):
    damage(Path(copied.directory, THIRD))
    match = f"{THIRD}, record {record}: .*{reason}"
    with pytest.raises(InputError, match=match) as caught, copied.explaining_defects():
        read(copied)
    assert "{{" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_longer_than_it_was_or_deleted_is_named(copied):
    path = Path(copied.directory, THIRD)
    path.write_bytes(path.read_bytes() + path.read_bytes())
    number = copied.manifest.shards[2].queries
    match = f"record {number + 1}: the file has {2 * number} whole records"
    with pytest.raises(InputError, match=match), copied.explaining_defects():
        read(copied)
    path.unlink()
    with pytest.raises(InputError, match=THIRD), copied.explaining_defects():
        read(copied)


def test_half_numbers_of_two_lists_are_not_joined(copied):
    numbers("query_tokens", odd_bytes(2), (0, 1))(Path(copied.directory, THIRD))
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
    arguments = [
        f"--data_dir={write_tiny_set(tmp_path / 'data')}",
        f"--cache_dir={tmp_path / 'cache'}",
        f"--output_dir={tmp_path / 'shards'}",
        *("--negatives=3", "--num_shards=2", "--verbosity=-1"),
    ]

    def run(*more):
        return commands.run("tf_smoothclir.extras.distributed.write_shards", *arguments, *more)

    done = run()
    assert (done.returncode, done.stderr) == (0, "")
    # 12 training queries with 2 judged and 3 sampled documents each
    assert done.stdout.startswith(f"{tmp_path}/shards: 2 shards, 12 queries, 60 pairs, 0.0 MB")
    shards = Shards.open(tmp_path / "shards")
    check_files(shards)
    assert len(as_lists(read(shards))) == 12
    assert (shards.manifest.negatives, shards.manifest.seed) == (3, 13)
    refused = run()
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"error: --output_dir={tmp_path}/shards: the directory is not")
    assert "--overwrite" in refused.stderr
    again = run("--overwrite")
    assert (again.returncode, again.stderr, again.stdout) == (0, "", done.stdout)
    assert Shards.open(tmp_path / "shards").manifest == shards.manifest
