"""Vocabularies and token stores: right, cached, and never half written."""

from __future__ import annotations

import dataclasses
import itertools
import os
import shutil
import threading

import numpy as np
import pytest
import tensorflow as tf

from tests.full_disk import room_for
from tests.power_loss import PowerLoss, write_disk
from tests.small_world import DOCUMENTS, JUDGMENTS, QUERIES, SPLITS, SmallWorld
from tf_smoothclir.data import preparation
from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.token_cache import default_cache_dir, is_usable
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.storage.folder import MANIFEST
from tf_smoothclir.text import batches
from tf_smoothclir.text.token_counter import TokenCounter
from tf_smoothclir.text.vocabulary import PADDING, UNKNOWN, write_vocabulary
from tf_smoothclir.text.word_encoder import TextEncoder
from tf_smoothclir.utils.errors import InputError

TEXTS = {"query": list(QUERIES.values()), "document": list(DOCUMENTS.values())}


class Crash(Exception):
    pass


@pytest.fixture
def no_work(monkeypatch):
    """Makes counting or encoding a text an error."""

    def fail(*_, **__):
        raise Crash

    monkeypatch.setattr(preparation.TokenCounter, "split", fail)
    monkeypatch.setattr(preparation.TextEncoder, "__call__", fail)


def entries(cache):
    return sorted(path.name for path in cache.iterdir())


@pytest.mark.parametrize("role", ROLES)
def test_store_holds_the_ids_of_the_encoder(tokenized_set, role):
    encoder = TextEncoder(tokenized_set.vocabulary_dir / f"{role}.txt", max_tokens=200)
    expected = encoder(tf.constant(TEXTS[role]))
    store = tokenized_set.tokens(role)
    np.testing.assert_array_equal(store.values, expected.ids)
    np.testing.assert_array_equal(store.lengths, expected.lengths)
    assert len(store) == len(TEXTS[role])


def test_texts_without_a_token_are_empty_rows(tokenized_set):
    lengths = tokenized_set.tokens("document").lengths
    assert np.flatnonzero(lengths == 0).tolist() == [0, 11]
    assert np.flatnonzero(tokenized_set.tokens("query").lengths == 0).tolist() == [5]


def test_vocabularies_count_all_documents_but_only_training_queries(tokenized_set):
    queries, documents = tokenized_set.vocabulary("query"), tokenized_set.vocabulary("document")
    # "a" occurs in q1 and q3, and in q4, which is a validation query.
    assert queries[:3] == [PADDING, UNKNOWN, "a"]
    assert " ".join(queries[2:]) == "a , an apple blue cat house old red sea the"
    assert {"schnee", "日", "!"} < set(documents)
    assert 1 not in tokenized_set.tokens("document").values
    words = tokenized_set.tokens("query")[3]  # "a green tree" of validation
    assert [queries[word] for word in words] == ["a", UNKNOWN, UNKNOWN]


def test_lengths_sizes_and_counts_follow_the_settings(small_set, tmp_path):
    settings = TextSettings(
        max_query_tokens=5, max_document_tokens=3, vocabulary_size=3, min_count=2
    )
    found = tokenize_set(small_set, settings, tmp_path)
    assert found.tokens("query").lengths.tolist() == [3, 3, 5, 3, 2, 0, 3, 5]
    assert found.tokens("document").lengths.max() == 3
    # Only "a" comes twice among the first five tokens of the training queries.
    assert found.vocabulary("query") == [PADDING, UNKNOWN, "a"]
    # "ein" and "schnee" come twice among the first three tokens; there is room for one.
    assert found.vocabulary("document") == [PADDING, UNKNOWN, "ein"]


def test_a_shared_vocabulary_counts_training_queries_and_documents_together(small_set, tmp_path):
    settings = TextSettings(shared_vocabulary=True, max_document_tokens=4)
    found = tokenize_set(small_set, settings, tmp_path)
    words = found.vocabulary("query")
    assert words == found.vocabulary("document")
    spelled = {
        role: [[words[id_] for id_ in found.tokens(role)[row]] for row in range(len(TEXTS[role]))]
        for role in ROLES
    }
    assert spelled["query"][0] == ["a", "red", "apple"]
    assert spelled["query"][3] == ["a", UNKNOWN, UNKNOWN]  # of validation: not counted
    assert spelled["document"][1] == ["ein", "roter", "apfel"]
    assert spelled["document"][2] == ["obst", ":", "rot", ","]  # cut at four
    assert words.index(",") < words.index("red")  # 1 + 1 times against once
    tokens = [token for role in ROLES for text in spelled[role] for token in text]
    assert {*tokens} == {*words} - {PADDING}


def test_a_second_call_does_no_work(small_set, tmp_path, request):
    first = tokenize_set(small_set, TextSettings(), tmp_path)
    before = entries(tmp_path)
    request.getfixturevalue("no_work")
    assert tokenize_set(small_set, TextSettings(), tmp_path) == first
    again = RetrievalSet.load(SmallWorld())
    assert tokenize_set(again, TextSettings(), tmp_path).directory == first.directory
    assert entries(tmp_path) == before
    assert len(before) == 2  # vocabularies and tokens


CHANGED = {
    "document": {"documents": (*tuple(DOCUMENTS.items())[:-1], ("d12", "neu"))},
    "query": {"queries": (("q1", "a red pear"), *tuple(QUERIES.items())[1:])},
    "judgment": {"judgments": JUDGMENTS[:-1]},
    "splits": {"splits": {**SPLITS, "q3": "test"}},
}


def test_numbers_left_by_a_process_killed_after_the_store_was_there_are_swept(small_set, tmp_path):
    tokenize_set(small_set, TextSettings(), tmp_path)
    whole = entries(tmp_path)
    left = tmp_path / f".numbers.{os.uname().nodename}.abcd1234.new"
    left.mkdir()
    (left / "query.values").write_bytes(b"1234")
    tokenize_set(small_set, TextSettings(), tmp_path)
    assert entries(tmp_path) == whole


@pytest.mark.parametrize("parts", CHANGED.values(), ids=CHANGED.keys())
@pytest.mark.usefixtures("no_work")
def test_changed_content_is_not_found_in_the_cache(parts, tokenized_set):
    with pytest.raises(Crash):
        tokenize_set(
            RetrievalSet.load(SmallWorld(**parts)), TextSettings(), tokenized_set.directory.parent
        )


def test_another_seed_of_the_split_counts_another_vocabulary(tokenized_set, tmp_path):
    world = SmallWorld(splits=None)
    cases = [RetrievalSet.load(world, seed=seed) for seed in range(4)]
    directories = {tuple(c.splits): tokenize_set(c, TextSettings(), tmp_path) for c in cases}
    assert len({found.vocabulary_dir for found in directories.values()}) == len(directories) > 1


@pytest.mark.parametrize(
    "change",
    [{"max_query_tokens": 3}, {"max_document_tokens": 3}, {"min_count": 2}, {"vocabulary_size": 9}],
)
@pytest.mark.usefixtures("no_work")
def test_changed_settings_are_not_found_in_the_cache(change, small_set, tokenized_set):
    with pytest.raises(Crash):
        tokenize_set(small_set, TextSettings(**change), tokenized_set.directory.parent)


def contents(directory):
    """Of all files but the manifest, which has times."""
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.name != MANIFEST}


@pytest.mark.parametrize(("workers", "texts_per_batch"), [(1, 1), (4, 1), (4, 5)])
def test_many_small_batches_on_several_threads_give_the_same_files(
    workers, texts_per_batch, tokenized_set, small_set, tmp_path, monkeypatch
):
    monkeypatch.setattr(os, "cpu_count", lambda: workers)
    monkeypatch.setattr(batches, "TEXTS_PER_BATCH", texts_per_batch)
    found = tokenize_set(small_set, TextSettings(), tmp_path / "counted")
    again = tokenize_set(small_set, TextSettings(), tmp_path / "given", found.vocabulary_dir)
    assert contents(found.vocabulary_dir) == contents(tokenized_set.vocabulary_dir)
    assert (
        contents(tokenized_set.directory) == contents(found.directory) == contents(again.directory)
    )


@pytest.mark.parametrize("role", ROLES)
def test_a_crash_while_counting_leaves_nothing(role, small_set, tmp_path, monkeypatch):
    class Crashing(TokenCounter):
        def split(self, texts, max_tokens):
            if texts == TEXTS[role][5:10]:
                raise Crash
            return super().split(texts, max_tokens)

    with monkeypatch.context() as patch:
        patch.setattr(batches, "TEXTS_PER_BATCH", 5)
        patch.setattr(preparation, "TokenCounter", Crashing)
        with pytest.raises(Crash):
            tokenize_set(small_set, TextSettings(), tmp_path)
    assert entries(tmp_path) == []
    assert len(tokenize_set(small_set, TextSettings(), tmp_path).tokens(role)) == len(TEXTS[role])


@pytest.mark.parametrize("role", ROLES)
def test_a_crash_while_looking_up_leaves_nothing(
    role, tokenized_set, small_set, tmp_path, monkeypatch
):
    class Crashing(TextEncoder):
        def __call__(self, texts):
            if len(texts) == len(TEXTS[role]):  # 8 queries, 12 documents
                raise Crash
            return super().__call__(texts)

    monkeypatch.setattr(preparation, "TextEncoder", Crashing)
    with pytest.raises(Crash):
        tokenize_set(small_set, TextSettings(), tmp_path, tokenized_set.vocabulary_dir)
    assert entries(tmp_path) == []


@pytest.mark.parametrize("name", ["write_vocabulary", "copy_mapped"])
def test_a_crash_while_writing_leaves_only_what_is_whole(name, small_set, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(preparation, name, fail)
        with pytest.raises(Crash):
            tokenize_set(small_set, TextSettings(), tmp_path)
    whole = ["vocabulary"] if name == "copy_mapped" else []
    assert [entry.split("-")[3] for entry in entries(tmp_path)] == whole
    found = tokenize_set(small_set, TextSettings(), tmp_path)  # now by looking up
    assert len(found.tokens("document")) == len(DOCUMENTS)


@pytest.mark.parametrize("error", [Crash, KeyboardInterrupt])
def test_an_interruption_between_texts_leaves_nothing(error, tmp_path, monkeypatch):
    class Interrupted(SmallWorld):
        def documents(self):
            yield from itertools.islice(super().documents(), 7)
            raise error

    retrieval_set = dataclasses.replace(RetrievalSet.load(SmallWorld()), source=Interrupted())
    monkeypatch.setattr(batches, "TEXTS_PER_BATCH", 2)
    threads = threading.active_count()
    with pytest.raises(error):
        tokenize_set(retrieval_set, TextSettings(), tmp_path)
    assert entries(tmp_path) == []
    assert threading.active_count() == threads


def test_a_file_in_place_of_the_cache_is_an_error_that_names_the_flag(small_set, tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(InputError, match=r"--cache_dir=.*/file/cache: the directory cannot be"):
        tokenize_set(small_set, TextSettings(), path / "cache")


def test_a_vocabulary_of_nothing_is_an_error_that_leaves_nothing(tmp_path):
    blank = RetrievalSet.load(SmallWorld(documents=[(id_, " ") for id_ in DOCUMENTS]))
    with pytest.raises(InputError, match=r"document vocabulary: no token occurs at least 1 time"):
        tokenize_set(blank, TextSettings(), tmp_path)
    assert entries(tmp_path) == []


def test_vocabulary_of_an_earlier_run_is_used(small_set, tmp_path):
    given, cache = tmp_path / "run", tmp_path / "cache"
    given.mkdir()
    write_vocabulary(given / "query.txt", [PADDING, UNKNOWN, "sea", "red"])
    write_vocabulary(given / "document.txt", [PADDING, UNKNOWN, "meer"])
    found = tokenize_set(small_set, TextSettings(), cache, given)
    assert found.vocabulary_dir == given
    assert found.tokens("query")[0].tolist() == [1, 3, 1]  # a red apple
    assert found.tokens("document")[3].tolist() == [1, 1, 2]  # das blaue Meer
    write_vocabulary(given / "query.txt", [PADDING, UNKNOWN, "red", "sea"])  # the words change rows
    assert tokenize_set(small_set, TextSettings(), cache, given).tokens("query")[0].tolist() == [
        1,
        2,
        1,
    ]


def test_a_file_gives_the_words_of_its_side_and_its_content_is_looked_at(small_set, tmp_path):
    path = tmp_path / "words.txt"
    settings = TextSettings(query_vocabulary=str(path))
    counted = tokenize_set(small_set, TextSettings(), tmp_path / "cache")
    found = []
    for words in (["zebra", "red"], ["red"]):
        path.write_text("\n".join(words), "utf-8")
        given = tokenize_set(small_set, settings, tmp_path / "cache")
        assert given.vocabulary("query") == [PADDING, UNKNOWN, *words]
        assert given.vocabulary("document") == counted.vocabulary("document")
        found.append(given.vocabulary_dir)
    assert found[0] != found[1]


def test_a_vocabulary_file_that_is_not_there_is_named(small_set, tmp_path):
    settings = TextSettings(document_vocabulary=str(tmp_path / "none.txt"))
    with pytest.raises(InputError, match=r"none.txt: the file cannot be read .*Check the path"):
        tokenize_set(small_set, settings, tmp_path / "cache")


def test_default_cache_is_in_the_user_s_cache_directory(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_cache_dir() == tmp_path / "xdg" / "tf_smoothclir"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_cache_dir() == tmp_path / ".cache" / "tf_smoothclir"


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


DAMAGE = {
    "flipped": flip,
    "cut": lambda path: os.truncate(path, path.stat().st_size - 2),
    "deleted": os.remove,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
@pytest.mark.parametrize("given", [False, True], ids=["counted", "given"])
@pytest.mark.parametrize(
    "name", ["query.values", "document.offsets", "query.ngrams.values", "query.txt", MANIFEST]
)
def test_a_damaged_cache_is_made_again_with_a_line_in_the_log(
    name, given, damage, small_set, tmp_path, caplog
):
    settings = TextSettings(ngram_buckets=50)
    found = tokenize_set(small_set, settings, tmp_path)
    vocabulary = found.vocabulary_dir
    if given:
        vocabulary = shutil.copytree(vocabulary, tmp_path / "run" / "vocabulary")
    before = {path: contents(path) for path in (found.directory, found.vocabulary_dir)}
    damaged = found.vocabulary_dir if name == "query.txt" else found.directory
    damage(damaged / name)
    with caplog.at_level("WARNING"):
        again = tokenize_set(small_set, settings, tmp_path, vocabulary if given else None)
    assert again.directory == found.directory
    if given and name == "query.txt":  # the vocabulary of the cache was not used
        assert caplog.text == ""
    else:
        assert caplog.text.count(f"{damaged} is damaged: ") == 1
        assert {path: contents(path) for path in before} == before
    assert not [entry for entry in entries(tmp_path) if entry.startswith(".")]


@pytest.mark.parametrize("room", [0, 8, 60])
def test_a_disk_that_fills_leaves_no_store(tokenized_set, small_set, tmp_path, room):
    with room_for(room), pytest.raises(OSError, match="File too large"):
        tokenize_set(small_set, TextSettings(), tmp_path, tokenized_set.vocabulary_dir)
    assert entries(tmp_path) == []


@pytest.mark.slow
def test_whenever_the_power_goes_the_cache_is_whole_or_made_again(small_set, tmp_path, monkeypatch):
    (tmp_path / "cache").mkdir()
    with PowerLoss(tmp_path / "cache", monkeypatch) as losses:
        found = tokenize_set(small_set, TextSettings(), tmp_path / "cache")
    whole = [contents(path) for path in (found.directory, found.vocabulary_dir)]
    there = set()
    for number, disk in enumerate(losses.disks):
        cache = write_disk(disk, tmp_path / str(number))
        names = [path.name for path in (found.directory, found.vocabulary_dir)]
        there.add(tuple((cache / name).is_dir() and is_usable(cache / name) for name in names))
        again = tokenize_set(small_set, TextSettings(), cache)
        assert [contents(path) for path in (again.directory, again.vocabulary_dir)] == whole
    assert there == {(False, False), (False, True), (True, True)}
