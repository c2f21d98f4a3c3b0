"""Shards: the lists of the set, each once, in a repeatable order; every defect has a place."""

import functools
import hashlib
import itertools
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.cases import cases
from tests.small_world import SmallWorld
from tests.training.test_grades import write_set
from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.pipeline import ListPipeline
from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.extras.distributed import pipeline as shard_pipeline
from tf_smoothclir.extras.distributed import writer as shard_writer
from tf_smoothclir.extras.distributed.pipeline import ShardPipeline
from tf_smoothclir.extras.distributed.reading import Shards
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.utils.errors import InputError

QUERIES, DOCUMENTS, SHARDS = 23, 17, 4
TEXT = TextSettings(max_query_tokens=30, max_document_tokens=40)
SAMPLING = {"negatives": 4, "seed": 5}
THIRD = "train-00002-of-00004.tfrecord"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A tokenized set: queries of 0 to 3 tokens, each with 1 to 3 judged documents of 0 to 4."""
    ids = range(QUERIES)
    source = SmallWorld(
        queries=[(f"q{i}", " ".join(f"w{i}x{k}" for k in range(i % 4))) for i in ids],
        documents=[(f"d{j}", " ".join(f"v{j}x{k}" for k in range(j % 5))) for j in ids[:DOCUMENTS]],
        judgments=[(f"q{i}", f"d{(i + k) % DOCUMENTS}", k) for i in ids for k in range(1 + i % 3)],
        splits={f"q{i}": "train" for i in ids},
    )
    return tokenize_set(RetrievalSet.load(source), TEXT, tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def lists(world):
    return candidate_lists(world.retrieval_set, split="train", **SAMPLING)


@pytest.fixture(scope="module")
def write(world, lists):
    return functools.partial(shard_writer.write_shards, world, lists, **SAMPLING, text=TEXT)


@pytest.fixture(scope="module")
def written(write, tmp_path_factory):
    """Four shards; read-only."""
    return write(tmp_path_factory.mktemp("shards") / "four", SHARDS)


@pytest.fixture
def copied(written, tmp_path):
    shutil.copytree(written.directory, tmp_path / "copy")
    return Shards.open(tmp_path / "copy")


def check_files(shards):
    for entry in shards.manifest.shards:
        content = Path(shards.path(entry.file)).read_bytes()
        assert hashlib.sha256(content).hexdigest() == entry.sha256
    for role in ROLES:
        shards.vocabulary(role)


def names_in(directory):
    return sorted(path.name for path in Path(directory).iterdir())


def records_of(path):
    return [record.numpy() for record in tf.data.TFRecordDataset(os.fspath(path))]


def as_lists(batches):
    """One hashable (query, documents, grades) for each list of batches, in their order."""
    found = []
    for inputs, grades in tf.nest.map_structure(np.asarray, list(batches)):
        queries, texts = (
            [tuple(text) for text in np.split(tokens.ids, np.cumsum(tokens.lengths))[:-1]]
            for tokens in inputs.texts
        )
        ends = np.cumsum(inputs.list_lengths)
        assert ends[-1] == len(texts) == len(grades)
        for query, begin, end in zip(queries, ends - inputs.list_lengths, ends):
            found.append((query, tuple(texts[begin:end]), tuple(grades[begin:end].tolist())))
    return found


def read(shards, epoch=0, start_step=0, **arguments):
    pipeline = ShardPipeline(shards, **{"batch_size": 20, "seed": 13, **arguments})
    return tf.nest.map_structure(np.asarray, list(pipeline.dataset(epoch, start_step)))


def test_manifest_counts_what_was_written(written, world):
    manifest = json.loads(Path(written.directory, "manifest.json").read_text())
    pairs = sum(1 + i % 3 for i in range(QUERIES)) + 4 * QUERIES  # judged and sampled
    tokens = [len(text) for _, texts, _ in as_lists(read(written)) for text in texts]
    expected = {**SAMPLING, "name": "small-en-de", "queries": QUERIES, "pairs": pairs}
    expected |= {"num_grades": 3, "document_tokens": sum(tokens)}
    expected |= {"query_tokens": sum(i % 4 for i in range(QUERIES))}
    assert manifest.items() >= expected.items()
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


@cases("number, batch_size", (1, 1), (5, 20), (QUERIES, 1000))
def test_shards_have_all_lists_in_the_same_bytes(write, world, lists, tmp_path, number, batch_size):
    first, second = (write(tmp_path / name, number) for name in ("first", "second"))
    assert first.manifest == second.manifest  # the hashes of the files stand there
    pairs = [shard.pairs for shard in first.manifest.shards]
    assert len(pairs) == number
    assert max(pairs) - min(pairs) <= np.diff(lists.offsets).max()
    pipeline = ShardPipeline(first, batch_size=batch_size, seed=13)
    found = pipeline.dataset(0)
    expected = ListPipeline(world, batch_size=batch_size, seed=13).epoch(lists, 0)
    assert found.element_spec == expected.element_spec
    assert sorted(as_lists(found)) == sorted(as_lists(expected))
    assert len(list(found)) == pipeline.num_steps
    check_files(first)


@cases(
    "directory, number, message",
    ("shards", QUERIES + 1, rf"--num_shards={QUERIES + 1}: it must be in 1\.\.{QUERIES}"),
    ("file", 2, "--output_dir=file: .*there is a file"),
    ("gs://bucket/shards", 2, "--output_dir=gs://bucket/shards: .*not written"),
)
def test_shards_that_cannot_be_written(write, tmp_path, monkeypatch, directory, number, message):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("mine")
    with pytest.raises(InputError, match=message):
        write(directory, number, overwrite=True)
    assert names_in(tmp_path) == ["file"]


def test_overwrite_replaces_all_old_files_even_damaged_ones_and_no_others(write, copied):
    directory = Path(copied.directory)
    (directory / "manifest.json").write_text("{")
    with pytest.raises(InputError, match=r"not empty.*--overwrite"):
        write(directory, 2)
    assert (directory / THIRD).is_file()
    check_files(write(directory, 2, overwrite=True))
    files = [f"train-0000{number}-of-00002.tfrecord" for number in (0, 1)]
    assert names_in(directory) == ["manifest.json", *files, "vocabulary"]
    for name in ("notes.txt", "vocabulary/french.txt", "train-1.tfrecord.gz"):
        (directory / name).write_text("mine")
        with pytest.raises(InputError, match=f"more than shards, for example {name}"):
            write(directory, 2, overwrite=True)
        assert (directory / name).read_text() == "mine"
        (directory / name).unlink()


def test_shards_that_another_process_wrote_meanwhile_stay(write, tmp_path, monkeypatch):
    write_json = shard_writer.write_json

    def while_another_is_faster(*arguments):
        monkeypatch.setattr(shard_writer, "write_json", write_json)
        write(tmp_path / "shards", 3)
        write_json(*arguments)

    monkeypatch.setattr(shard_writer, "write_json", while_another_is_faster)
    with pytest.raises(InputError, match="another process has written other shards"):
        write(tmp_path / "shards", 2)
    assert len(Shards.open(tmp_path / "shards").manifest.shards) == 3


def test_order_is_a_function_of_seed_and_epoch_within_and_between_shards(written, monkeypatch):
    orders = set()
    for seed, epoch, buffer in ((1, 0, 1), (1, 0, 4), (1, 0, 1024), (1, 1, 1024), (2, 0, 1024)):
        monkeypatch.setattr(shard_pipeline, "_LISTS_IN_BUFFER", buffer)
        tf.random.set_seed(1)
        first = read(written, epoch, seed=seed)
        tf.random.set_seed(2)
        np.testing.assert_equal(read(written, epoch, seed=seed), first)
        orders.add(tuple(as_lists(first)))
    assert len(orders) == 5
    assert len({tuple(sorted(order)) for order in orders}) == 1


def test_workers_together_read_each_list_once(written):
    shares, steps = [], []
    for worker in range(3):
        pipeline = ShardPipeline(written, batch_size=60, seed=13, worker=worker, num_workers=3)
        batches = list(pipeline.dataset(1))
        shares.append(as_lists(batches))
        steps.append(len(batches))
        epoch = pipeline.epoch(1)
        numbers_of_steps = [len(list(epoch.batches(start))) for start in (0, 1)]
        assert numbers_of_steps == [epoch.steps, epoch.steps - 1]
    assert epoch.steps == pipeline.num_steps == min(steps)
    assert sorted(itertools.chain(*shares)) == sorted(as_lists(read(written)))
    expected = [shard.queries for shard in written.manifest.shards]
    assert [len(share) for share in shares] == [sum(expected[w::3]) for w in range(3)]
    with pytest.raises(InputError, match=r"5 workers cannot share 4 shards.*--num_shards=5"):
        read(written, worker=0, num_workers=SHARDS + 1)
    for worker in (-1, 3):
        with pytest.raises(ValueError, match="worker must be in"):
            read(written, worker=worker, num_workers=3)


def test_rows_of_a_step_name_the_pairs_of_all_workers(written, world, lists):
    options = {"batch_size": 40, "seed": 13, "num_workers": 2}
    pipelines = [ShardPipeline(written, worker=worker, **options) for worker in (0, 1)]
    rows = pipelines[1].epoch(1).rows(2)
    batches = [list(pipeline.dataset(1))[2] for pipeline in pipelines]
    assert [grade for _, _, grade in rows] == [g for _, of in batches for g in of.numpy().tolist()]
    queries, documents = world.retrieval_set.query_ids, world.retrieval_set.document_ids
    tokens = [tuple(world.tokens("document")[documents.index(row[1])]) for row in rows]
    read = [id_ for inputs, _ in batches for id_ in inputs.texts.document.ids.numpy().tolist()]
    assert list(itertools.chain(*tokens)) == read
    listed = zip(lists.pair_query_rows, lists.document_rows, lists.grades)
    assert {(queries[q], documents[d], grade) for q, d, grade in listed} >= {*rows}


def test_remote_directory_is_read_like_a_local_one(written):
    remote = "ram://bucket/shards"
    for path in Path(written.directory).rglob("*.*"):
        target = f"{remote}/{path.relative_to(written.directory).as_posix()}"
        tf.io.gfile.makedirs(os.path.dirname(target))
        tf.io.gfile.copy(os.fspath(path), target)
    shards = Shards.open(remote)
    assert shards.find_defect() is None
    np.testing.assert_equal(read(shards), read(written))
    tf.io.gfile.remove(f"{remote}/{THIRD}")
    with pytest.raises(InputError, match=f"{remote}/{THIRD}: there is no such file"):
        Shards.open(remote)


@cases(
    "file, damage, message",
    ("manifest.json", Path.unlink, "there is no such file. Copy .*again"),
    ("manifest.json", lambda path: path.write_bytes(b"\xff\xfe{"), "this is no manifest of"),
    ("manifest.json", lambda path: path.write_text("{}"), "a damaged one: name is missing"),
    (THIRD, Path.unlink, "there is no such file. Copy .*again"),
    (THIRD, lambda path: os.truncate(path, path.stat().st_size + 1), "bytes, but .* were wri"),
)
def test_a_defect_that_is_found_when_opened_names_the_file(copied, file, damage, message):
    damage(Path(copied.directory, file))
    with pytest.raises(InputError, match=f"{file}: .*{message}"):
        Shards.open(copied.directory)


def flipped(place):
    def damage(path):
        content = bytearray(path.read_bytes())
        content[place] ^= 1
        path.write_bytes(content)

    return damage


def numbers(name, change):
    """Applies `change` to the numbers of a feature in the second record of a file."""

    def damage(path):
        examples = [tf.train.Example.FromString(record) for record in records_of(path)]
        value = examples[1].features.feature[name].int64_list.value
        value[:] = change(list(value))
        with tf.io.TFRecordWriter(os.fspath(path)) as writer:
            for example in examples:
                writer.write(example.SerializeToString())

    return damage


CORRUPTED = "corrupted record.*Copy the shards again, or write"
UNUSABLE = "the record cannot be used .*"
DEFECTS = [  # what is done to the third file, which has 6 records; the one that is named; why
    (flipped(0), 1, CORRUPTED),  # the length
    (flipped(12), 1, CORRUPTED),  # the first byte of the data
    (lambda path: os.truncate(path, 5), 1, "the file has 0 whole records, but"),
    (lambda path: os.truncate(path, path.stat().st_size - 1), 6, "truncated record"),
    (lambda path: path.write_bytes(2 * path.read_bytes()), 7, "the file has 12 whole records"),
    (numbers("grades", lambda n: n[1:]), 2, f"{UNUSABLE}more or fewer grades than documents"),
    (numbers("document_tokens", lambda n: [*n, 5]), 2, UNUSABLE),
    (numbers("document_lengths", lambda n: [-1, sum(n[:2]) + 1, *n[2:]]), 2, UNUSABLE),
]


@cases("damage, record, reason", *DEFECTS)
def test_a_defect_that_is_found_while_reading_names_file_and_record(copied, damage, record, reason):
    damage(Path(copied.directory, THIRD))
    match = f"{THIRD}, record {record}: .*{reason}"
    with pytest.raises(InputError, match=match) as caught, copied.explaining_defects():
        read(copied)
    assert "{{" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_are_deleted_or_changed_while_in_use_are_named(copied):
    for role in ROLES:
        path = Path(copied.directory, "vocabulary", f"{role}.txt")
        path.write_text(path.read_text() + "one more\n")
        with pytest.raises(InputError, match=rf"{role}\.txt: the file is not the one"):
            copied.vocabulary(role)
        path.unlink()
        with pytest.raises(InputError, match=rf"{role}\.txt: there is no such file"):
            copied.vocabulary(role)
    Path(copied.directory, THIRD).unlink()
    with pytest.raises(InputError, match=THIRD), copied.explaining_defects():
        read(copied)


def test_errors_that_are_no_defect_of_the_shards_stay_as_they_are(written):
    error = tf.errors.InvalidArgumentError(None, None, "of the model")
    with pytest.raises(tf.errors.InvalidArgumentError) as caught, written.explaining_defects():
        raise error
    assert caught.value is error


def test_shards_have_the_grades_of_the_set_or_those_that_are_asked_for(tmp_path, commands):
    data = write_set(tmp_path / "binary", highest=1).data.data_dir
    for thresholds, grades in (([], 2), (["--thresholds=0.1,0.2,0.3"], 4)):
        given = [f"--data_dir={data}", f"--cache_dir={tmp_path}/cache", "--overwrite", *thresholds]
        given += ["--num_shards=1", f"--output_dir={tmp_path}/shards"]
        commands.run("tf_smoothclir.extras.distributed.write_shards", *given, check=True)
        assert Shards.open(tmp_path / "shards").manifest.num_grades == grades
