"""Vocabularies and token stores: right, cached, and never half written."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.small_world import DOCUMENTS, JUDGMENTS, QUERIES, SPLITS, SmallWorld
from tf_smoothclir.data import prepared as prepared_module
from tf_smoothclir.data.prepared import ROLES, default_cache_dir, prepare
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.errors import InputError
from tf_smoothclir.settings import TextSettings
from tf_smoothclir.text.vocabulary import PADDING, UNKNOWN, TextEncoder, write_vocabulary

TEXTS = {"query": list(QUERIES.values()), "document": list(DOCUMENTS.values())}


class Crash(Exception):
    pass


@pytest.fixture
def no_work(monkeypatch):
    """Makes counting or encoding a text an error."""

    def fail(*_):
        raise Crash

    monkeypatch.setattr(prepared_module.TokenCounter, "add", fail)
    monkeypatch.setattr(prepared_module.TextEncoder, "__call__", fail)


def entries(cache):
    return sorted(path.name for path in cache.iterdir())


@pytest.mark.parametrize("role", ROLES)
def test_store_holds_the_ids_of_the_encoder(prepared, role):
    encoder = TextEncoder(prepared.vocabulary_dir / f"{role}.txt", max_tokens=200)
    expected = encoder(tf.constant(TEXTS[role]))
    store = prepared.tokens(role)
    np.testing.assert_array_equal(store.values, expected["ids"])
    np.testing.assert_array_equal(store.lengths, expected["lengths"])
    assert len(store) == len(TEXTS[role])


def test_texts_without_a_token_are_empty_rows(prepared):
    lengths = prepared.tokens("document").lengths
    assert np.flatnonzero(lengths == 0).tolist() == [0, 11]
    assert np.flatnonzero(prepared.tokens("query").lengths == 0).tolist() == [5]


def test_documents_are_all_known_and_queries_by_the_training_ones_only(prepared):
    queries, documents = prepared.vocabulary("query"), prepared.vocabulary("document")
    # "a" stands in q1 and q3; q4, which has it too, is validation.
    assert queries[:3] == [PADDING, UNKNOWN, "a"]
    assert " ".join(queries[2:]) == "a , an apple blue cat house old red sea the"
    assert {"schnee", "日", "!"} < set(documents)
    assert 1 not in prepared.tokens("document").values
    words = prepared.tokens("query")[3]  # "a green tree" of validation
    assert [queries[word] for word in words] == ["a", UNKNOWN, UNKNOWN]


def test_lengths_sizes_and_counts_follow_the_settings(small_set, tmp_path):
    settings = TextSettings(
        max_query_tokens=5, max_document_tokens=3, vocabulary_size=3, min_count=2
    )
    found = prepare(small_set, settings, tmp_path)
    assert found.tokens("query").lengths.tolist() == [3, 3, 5, 3, 2, 0, 3, 5]
    assert found.tokens("document").lengths.max() == 3
    # Only "a" comes twice among the first five tokens of the training queries.
    assert found.vocabulary("query") == [PADDING, UNKNOWN, "a"]
    # "ein" and "schnee" come twice among the first three tokens; there is room for one.
    assert found.vocabulary("document") == [PADDING, UNKNOWN, "ein"]


def test_a_second_time_does_no_work(small_set, tmp_path, request):
    first = prepare(small_set, TextSettings(), tmp_path)
    before = entries(tmp_path)
    request.getfixturevalue("no_work")
    assert prepare(small_set, TextSettings(), tmp_path) == first
    again = RetrievalSet.load(SmallWorld())
    assert prepare(again, TextSettings(), tmp_path).directory == first.directory
    assert entries(tmp_path) == before
    assert len(before) == 2  # vocabularies and tokens


CHANGED = {
    "document": {"documents": (*tuple(DOCUMENTS.items())[:-1], ("d12", "neu"))},
    "query": {"queries": (("q1", "a red pear"), *tuple(QUERIES.items())[1:])},
    "judgment": {"judgments": JUDGMENTS[:-1]},
    "splits": {"splits": {**SPLITS, "q3": "test"}},
}


@pytest.mark.parametrize("parts", CHANGED.values(), ids=CHANGED.keys())
@pytest.mark.usefixtures("no_work")
def test_changed_content_is_not_found_in_the_cache(parts, prepared):
    with pytest.raises(Crash):
        prepare(RetrievalSet.load(SmallWorld(**parts)), TextSettings(), prepared.directory.parent)


def test_another_seed_of_the_split_counts_another_vocabulary(prepared, tmp_path):
    world = SmallWorld(splits=None)
    cases = [RetrievalSet.load(world, seed=seed) for seed in range(4)]
    directories = {tuple(c.splits): prepare(c, TextSettings(), tmp_path) for c in cases}
    assert len({found.vocabulary_dir for found in directories.values()}) == len(directories) > 1


@pytest.mark.parametrize(
    "change",
    [{"max_query_tokens": 3}, {"max_document_tokens": 3}, {"min_count": 2}, {"vocabulary_size": 9}],
)
@pytest.mark.usefixtures("no_work")
def test_changed_settings_are_not_found_in_the_cache(change, small_set, prepared):
    with pytest.raises(Crash):
        prepare(small_set, TextSettings(**change), prepared.directory.parent)


@pytest.mark.parametrize("role", ROLES)
def test_a_crash_in_the_middle_leaves_nothing_that_could_be_taken_for_whole(
    role, small_set, tmp_path, monkeypatch
):
    class Crashing(TextEncoder):
        def __call__(self, texts):
            if len(texts) == len(TEXTS[role]):  # 8 queries, 12 documents
                raise Crash
            return super().__call__(texts)

    with monkeypatch.context() as patch:
        patch.setattr(prepared_module, "TextEncoder", Crashing)
        with pytest.raises(Crash):
            prepare(small_set, TextSettings(), tmp_path)
    (left,) = entries(tmp_path)
    assert left.startswith("small-en-de-vocabulary-")  # whole: counting had come to its end
    assert len(prepare(small_set, TextSettings(), tmp_path).tokens(role)) == len(TEXTS[role])


@pytest.mark.usefixtures("no_work")
def test_a_crash_while_counting_leaves_nothing(small_set, tmp_path):
    with pytest.raises(Crash):
        prepare(small_set, TextSettings(), tmp_path)
    assert entries(tmp_path) == []


def test_a_file_in_the_way_of_the_cache_is_told_by_its_flag(small_set, tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(InputError, match=r"--cache_dir=.*/file/cache: the directory cannot be"):
        prepare(small_set, TextSettings(), path / "cache")


def test_a_vocabulary_of_nothing_is_an_error_that_leaves_nothing(tmp_path):
    blank = RetrievalSet.load(SmallWorld(documents=[(id_, " ") for id_ in DOCUMENTS]))
    with pytest.raises(InputError, match=r"document vocabulary: no token occurs at least 1 time"):
        prepare(blank, TextSettings(), tmp_path)
    assert entries(tmp_path) == []


def test_vocabulary_of_an_earlier_run_is_taken(small_set, tmp_path):
    given, cache = tmp_path / "run", tmp_path / "cache"
    given.mkdir()
    write_vocabulary(given / "query.txt", [PADDING, UNKNOWN, "sea", "red"])
    write_vocabulary(given / "document.txt", [PADDING, UNKNOWN, "meer"])
    found = prepare(small_set, TextSettings(), cache, given)
    assert found.vocabulary_dir == given
    assert found.tokens("query")[0].tolist() == [1, 3, 1]  # a red apple
    assert found.tokens("document")[3].tolist() == [1, 1, 2]  # das blaue Meer
    write_vocabulary(given / "query.txt", [PADDING, UNKNOWN, "red", "sea"])  # the words change rows
    assert prepare(small_set, TextSettings(), cache, given).tokens("query")[0].tolist() == [1, 2, 1]


def test_default_cache_is_in_the_user_s_cache_directory(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_cache_dir() == tmp_path / "xdg" / "tf_smoothclir"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_cache_dir() == tmp_path / ".cache" / "tf_smoothclir"
