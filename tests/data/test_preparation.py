"""Vocabularies and token stores: right, cached, never half written; rows on disk."""

import dataclasses
import itertools
import os
import threading
from collections import Counter
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from tests.cases import cases
from tests.disk_faults import Crash, room_for
from tests.small_world import DOCUMENTS, JUDGMENTS, QUERIES, SPLITS, SmallWorld
from tests.training.test_checkpoints import flip
from tf_smoothclir.data import preparation, tokenized_set
from tf_smoothclir.data.pipeline import mapped_tensors, stored_tokens
from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.tokenized_set import ROLES, WHOLE, RaggedStore, RaggedWriter, copy_mapped
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.storage.folder import MANIFEST
from tf_smoothclir.text.subwords import ngrams
from tf_smoothclir.text.tokenizer import tokenize
from tf_smoothclir.text.vocabulary import PADDING, UNKNOWN, write_vocabulary
from tf_smoothclir.utils import parallel
from tf_smoothclir.utils.errors import InputError

TEXTS = {"query": list(QUERIES.values()), "document": list(DOCUMENTS.values())}
NGRAMS = TextSettings(ngram_buckets=1000, vocabulary_size=9)
SHARED = {"shared_vocabulary": True}
SETTINGS = [TextSettings(), NGRAMS, dataclasses.replace(NGRAMS, **SHARED)]
CUT = TextSettings(max_query_tokens=5, max_document_tokens=3, vocabulary_size=4, min_count=2)
TRAINING = [id_ for id_, split in SPLITS.items() if split == "train"]
ROWS = [[], [7, 8, 9], [1], [], [2, 2], []]


@pytest.fixture
def no_work(monkeypatch):
    monkeypatch.setattr(preparation.TokenCounter, "split", mock.Mock(side_effect=Crash))
    monkeypatch.setattr(preparation.TextEncoder, "__call__", mock.Mock(side_effect=Crash))


def entries(cache):
    return sorted(path.name for path in cache.iterdir())


def words_of(role, settings):
    rows = tokenize(tf.constant(TEXTS[role]), settings.max_tokens(role)).to_list()
    return [[word.decode() for word in row] for row in rows]


def vocabulary_by_hand(role, settings):
    words = {role: words_of(role, settings) for role in ROLES}
    words["query"] = [words["query"][row] for row, id_ in enumerate(QUERIES) if id_ in TRAINING]
    texts = [*words["query"], *words["document"]] if settings.shared_vocabulary else words[role]
    counts = Counter(word for text in texts for word in text)
    kept = [word for word, count in counts.items() if count >= settings.min_count]
    kept.sort(key=lambda word: (-counts[word], word.encode()))
    return [PADDING, UNKNOWN, *kept][: settings.vocabulary_size]


@cases("min_count", 1, 2)
def test_a_warning_counts_words_beyond_the_vocabulary(min_count, small_set, tmp_path, caplog):
    whole = TextSettings(min_count=min_count)
    words = [word for text in words_of("document", whole) for word in text]
    kept = vocabulary_by_hand("document", whole)[2:]
    size = 2 + len(kept) - 1  # all but the last one
    fits = dataclasses.replace(whole, vocabulary_size=size + 1)
    tokenize_set(small_set, fits, tmp_path / "fits")
    assert "Vocabulary of the document side" not in caplog.text
    tokenize_set(small_set, dataclasses.replace(fits, vocabulary_size=size), tmp_path / "cut")
    share = 100 * words.count(kept[-1]) / len(words)
    assert f"document side: 1 further words, {share:.2g}% of the running text" in caplog.text
    assert f"--vocabulary_size={size + 1} reads them too" in caplog.text


def test_queries_that_are_cut_are_counted(small_set, tmp_path, caplog):
    caplog.set_level("INFO", logger="absl")
    tokenize_set(small_set, TextSettings(), tmp_path)
    assert "Queries:" not in caplog.text
    lengths = tokenize_set(small_set, TextSettings(), tmp_path).tokens("query").lengths
    tokenize_set(small_set, TextSettings(max_query_tokens=2), tmp_path)
    of_all = f"{sum(lengths >= 2)} of the {len(lengths)} queries"
    assert f"Queries: the first 2 tokens are read; {of_all} have as many or more" in caplog.text


@cases("settings", *SETTINGS, CUT)
def test_documents_have_stores_to_their_ends_with_titles_if_read(settings, small_set, tmp_path):
    short = dataclasses.replace(settings, max_document_tokens=3)
    asked = dataclasses.replace(short, passage_words=(4,), text_fields=("title", "body"))
    found = tokenize_set(small_set, asked, tmp_path)
    whole, cut, vocabulary = found.whole_documents(), found.tokens("document"), {}
    for row, document in enumerate(small_set.source.documents()):
        words = tokenize(tf.constant([f"{document.title} {document.text}"]), 1000).to_list()[0]
        begin = len(tokenize(tf.constant([document.title]), 1000).to_list()[0])
        assert cut[row].tolist() == whole[row][begin : begin + 3].tolist()
        assert found.title_lengths()[row] == begin
        assert len(whole[row]) == len(words)
        for word, id_ in zip(words, whole[row].tolist(), strict=True):
            assert vocabulary.setdefault(word, id_) == id_
    assert not (tokenize_set(small_set, short, tmp_path).directory / f"{WHOLE}.values").exists()


@cases("settings", *SETTINGS, CUT, dataclasses.replace(CUT, **SHARED))
def test_vocabularies_ids_and_ngrams_are_those_by_hand(settings, small_set, tmp_path):
    found = tokenize_set(small_set, settings, tmp_path)
    for role in ROLES:
        vocabulary, words = vocabulary_by_hand(role, settings), words_of(role, settings)
        assert found.vocabulary(role) == vocabulary
        assert found.tokens(role).lengths.tolist() == [len(text) for text in words]
        ids = {}
        for word, id_ in zip(itertools.chain(*words), found.tokens(role).values.tolist()):
            assert ids.setdefault(word, id_) == id_
            if word in vocabulary:
                assert id_ == vocabulary.index(word)
            else:
                assert id_ >= len(vocabulary) if settings.ngram_buckets else id_ == 1
        if settings.ngram_buckets:  # each spelling has an id
            store, expected = found.ngrams(role), ngrams(list(ids), 1000, 3, 5).to_list()
            assert len(set(ids.values())) == len(ids) > len(vocabulary)
            assert [store[id_].tolist() for id_ in ids.values()] == expected
            assert store[0].size == store[1].size == 0  # padding and unknown
            same = np.array_equal(store.values, found.ngrams("query").values)
            assert same == (settings.shared_vocabulary or role == "query")
    if settings.ngram_buckets:  # other n-grams of the same words
        for change in ({"ngram_buckets": 0}, {"min_ngram": 2}, {"max_ngram": 6}):
            other = tokenize_set(small_set, dataclasses.replace(settings, **change), tmp_path)
            assert other.directory != found.directory
            assert other.vocabulary_dir == found.vocabulary_dir


@cases("settings", *SETTINGS)
def test_a_second_call_does_no_work(settings, small_set, tmp_path, request):
    first = tokenize_set(small_set, settings, tmp_path)
    before = entries(tmp_path)
    # Left by a process that was killed after the store was there.
    left = tmp_path / f".numbers.{os.uname().nodename}.abcd1234.new"
    left.mkdir()
    (left / "query.values").write_bytes(b"1234")
    request.getfixturevalue("no_work")
    assert tokenize_set(small_set, settings, tmp_path) == first
    again = RetrievalSet.load(SmallWorld())
    assert tokenize_set(again, settings, tmp_path).directory == first.directory
    assert entries(tmp_path) == before
    assert len(before) == 2  # vocabularies and tokens


@cases(
    "parts, change",
    ({"documents": (*tuple(DOCUMENTS.items())[:-1], ("d12", "neu"))}, {}),
    ({"queries": (("q1", "a red pear"), *tuple(QUERIES.items())[1:])}, {}),
    ({"judgments": JUDGMENTS[:-1]}, {}),
    ({"splits": {**SPLITS, "q3": "test"}}, {}),
    ({}, {"max_query_tokens": 3}),
    ({}, {"max_document_tokens": 3}),
    ({}, {"min_count": 2}),
    ({}, {"vocabulary_size": 9}),
    ({}, {"ngram_buckets": 9}),
)
@pytest.mark.usefixtures("no_work")
def test_changed_content_and_settings_are_not_found_in_the_cache(parts, change, tokenized_set):
    world, cache = RetrievalSet.load(SmallWorld(**parts)), tokenized_set.directory.parent
    with pytest.raises(Crash):
        tokenize_set(world, TextSettings(**change), cache)


def contents(directory):  # the manifest has times
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.name != MANIFEST}


@cases("settings", *SETTINGS)
def test_small_batches_on_threads_give_the_same_files(settings, small_set, tmp_path, monkeypatch):
    expected = tokenize_set(small_set, settings, tmp_path / "whole")
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(parallel, "TEXTS_PER_BATCH", 5)
    found = tokenize_set(small_set, settings, tmp_path / "counted")
    again = tokenize_set(small_set, settings, tmp_path / "given", found.vocabulary_dir)
    assert contents(found.vocabulary_dir) == contents(expected.vocabulary_dir)
    assert contents(expected.directory) == contents(found.directory) == contents(again.directory)


@cases("error, given", (Crash, 0), (Crash, 1), (KeyboardInterrupt, 0))
def test_an_interruption_leaves_nothing(error, given, tokenized_set, tmp_path, monkeypatch):
    class Interrupted(SmallWorld):
        def documents(self):
            yield from itertools.islice(super().documents(), 7)
            raise error

    retrieval_set = dataclasses.replace(RetrievalSet.load(SmallWorld()), source=Interrupted())
    monkeypatch.setattr(parallel, "TEXTS_PER_BATCH", 2)
    threads, vocabulary = threading.active_count(), tokenized_set.vocabulary_dir if given else None
    with pytest.raises(error):
        tokenize_set(retrieval_set, TextSettings(), tmp_path, vocabulary)
    assert entries(tmp_path) == []
    assert threading.active_count() == threads


def test_what_cannot_be_prepared_is_an_error_that_leaves_nothing(small_set, tmp_path):
    blank = RetrievalSet.load(SmallWorld(documents=[(id_, " ") for id_ in DOCUMENTS]))
    with pytest.raises(InputError, match=r"document vocabulary: no token occurs at least 1 time"):
        tokenize_set(blank, TextSettings(), tmp_path)
    assert entries(tmp_path) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"--cache_dir=.*/file/cache: the directory cannot be"):
        tokenize_set(small_set, TextSettings(), tmp_path / "file" / "cache")


def test_vocabulary_of_an_earlier_run_is_used(small_set, tmp_path):
    given, cache = tmp_path / "run", tmp_path / "cache"
    given.mkdir()
    write_vocabulary(given / "query.txt", [PADDING, UNKNOWN, "sea", "red"])
    write_vocabulary(given / "document.txt", [PADDING, UNKNOWN, "meer"])
    found = tokenize_set(small_set, TextSettings(), cache, given)
    assert found.vocabulary_dir == given
    assert found.tokens("query")[0].tolist() == [1, 3, 1]  # a red apple
    assert found.tokens("document")[3].tolist() == [1, 1, 2]  # das blaue Meer
    with_ngrams = tokenize_set(small_set, NGRAMS, cache, given)
    the, blue, sea = with_ngrams.tokens("query")[1]
    assert sea == 2
    assert min(the, blue) > 3  # outside the vocabulary, and told apart
    expected = ngrams(["blue"], 1000, NGRAMS.min_ngram, NGRAMS.max_ngram).to_list()[0]
    assert with_ngrams.ngrams("query")[blue].tolist() == expected
    assert entries(given) == ["document.txt", "query.txt"]
    write_vocabulary(given / "query.txt", [PADDING, UNKNOWN, "red", "sea"])  # the words change rows
    again = tokenize_set(small_set, TextSettings(), cache, given)
    assert again.tokens("query")[0].tolist() == [1, 2, 1]


def test_a_file_gives_the_words_of_its_side_and_its_content_is_looked_at(small_set, tmp_path):
    path, found = tmp_path / "words.txt", []
    counted = tokenize_set(small_set, TextSettings(), tmp_path / "cache")
    for words in (["zebra", "red"], ["red"]):
        path.write_text("\n".join(words), "utf-8")
        settings = TextSettings(query_vocabulary=str(path))
        given = tokenize_set(small_set, settings, tmp_path / "cache")
        assert given.vocabulary("query") == [PADDING, UNKNOWN, *words]
        assert given.vocabulary("document") == counted.vocabulary("document")
        found.append(given.vocabulary_dir)
    assert found[0] != found[1]


@cases("damage", flip, lambda path: os.truncate(path, 9), os.remove)
@cases("name", "query.values", "document.offsets", "query.ngrams.values", "query.txt", MANIFEST)
def test_a_damaged_cache_is_made_again(name, damage, small_set, tmp_path, caplog):
    settings = TextSettings(ngram_buckets=50)
    found = tokenize_set(small_set, settings, tmp_path)
    before = {path: contents(path) for path in (found.directory, found.vocabulary_dir)}
    damaged = found.vocabulary_dir if name == "query.txt" else found.directory
    damage(damaged / name)
    assert tokenize_set(small_set, settings, tmp_path).directory == found.directory
    (warning,) = (record for record in caplog.records if record.levelname == "WARNING")
    assert f"{damaged}" in warning.message
    assert warning.message.endswith("It is made again.")
    assert {path: contents(path) for path in before} == before
    assert not [entry for entry in entries(tmp_path) if entry.startswith(".")]


def write(directory, rows, dtype="<i4", rows_per_call=2):
    with RaggedWriter(directory, "rows", dtype) as writer:
        for begin in range(0, len(rows), rows_per_call):
            part = rows[begin : begin + rows_per_call]
            values = np.array([value for row in part for value in row], dtype)
            writer.add(values, np.array([len(row) for row in part], np.int32))
    return RaggedStore(directory, "rows", dtype)


def gathered(store, rows):
    values, lengths, of_row = stored_tokens(*mapped_tensors(store), tf.constant(rows, tf.int64))
    assert lengths.dtype == of_row.dtype == tf.int32
    np.testing.assert_array_equal(of_row, np.repeat(range(len(rows)), lengths))
    return [part.tolist() for part in np.split(values.numpy(), np.cumsum(lengths)[:-1])]


@cases("rows", [], [[], []])  # files without a byte cannot be mapped
def test_a_store_without_values_is_read(tmp_path, rows):
    store = write(tmp_path, rows)
    assert (len(store), store.values.shape) == (len(rows), (0,))
    assert gathered(store, list(range(len(rows)))) == (rows or [[]])


@cases("rows_per_call", 1, 4, 6)
def test_rows_are_read_back_however_they_were_added(tmp_path, rows_per_call):
    store = write(tmp_path, ROWS, rows_per_call=rows_per_call)
    assert len(store) == 6
    assert [store[row].tolist() for row in range(6)] == ROWS
    assert store.lengths.tolist() == [0, 3, 1, 0, 2, 0]
    assert gathered(store, [5, 1, 1, 0, 3]) == [[], ROWS[1], ROWS[1], [], []]
    values, lengths, _ = stored_tokens(*mapped_tensors(store), tf.zeros([0], tf.int64))
    assert (values.shape, lengths.shape) == ((0,), (0,))
    assert isinstance(store.values.base, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        store.values[0] = 5


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux tells what is mapped")
def test_tensors_are_the_mapped_file_not_a_copy_of_it(tmp_path):
    values, _ = mapped_tensors(write(tmp_path, ROWS))
    address = np.asarray(memoryview(values)).ctypes.data
    mapped = [line for line in Path("/proc/self/maps").read_text().splitlines() if "rows.v" in line]
    assert address in [int(line.split("-")[0], 16) for line in mapped]


def test_files_are_little_endian_without_a_header(tmp_path):
    write(tmp_path, [[1], [258]])
    assert (tmp_path / "rows.values").read_bytes() == bytes([1, 0, 0, 0, 2, 1, 0, 0])
    offsets = b"".join(offset.to_bytes(8, "little") for offset in (0, 1, 2))
    assert (tmp_path / "rows.offsets").read_bytes() == offsets
    store = write(tmp_path, [list("é".encode()), [0]], "u1")  # bytes as values
    assert gathered(store, [1, 0]) == [[0], [0xC3, 0xA9]]


@cases("piece", 1, 4, 100)
@cases("rows", ROWS, [[], []], [])
def test_copy_mapped(tmp_path, monkeypatch, rows, piece):
    monkeypatch.setattr(tokenized_set, "_VALUES_PER_PIECE", piece)
    write(tmp_path, rows)
    (tmp_path / "copy").mkdir()
    copy_mapped(tmp_path, tmp_path / "copy", "rows", np.arange(10, dtype=np.int32) ** 2)
    store = RaggedStore(tmp_path / "copy", "rows", "<i4")
    assert [row.tolist() for row in store] == [[value**2 for value in row] for row in rows]


@cases("missing", 1, 4, 20)
def test_a_disk_that_fills_with_the_last_bytes_is_an_error(tmp_path, missing):
    # `ndarray.tofile` lost them without a word.
    rows = [[1, 2, 3, 4, 5]] * 3  # 60 bytes of values and 32 of offsets
    with room_for(60 - missing), pytest.raises(OSError, match="File too large"):
        write(tmp_path, rows)
    with room_for(60):
        write(tmp_path, rows)
