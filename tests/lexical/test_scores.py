"""Words of raw texts, what models keep on disk, and scores by all ways of counting words."""

import dataclasses
import itertools
import json
import math
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.cases import cases
from tests.lexical.helpers import counts, words
from tests.small_world import random_set
from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.encoder.word_evidence import NAMES
from tf_smoothclir.lexical import model, posting_bounds, sparse_tables, word_weights
from tf_smoothclir.lexical.feedback import Feedback, rarity, tf_idf
from tf_smoothclir.lexical.plain_reader import PlainReader
from tf_smoothclir.lexical.posting_bounds import filled_bounds, may_be_best
from tf_smoothclir.lexical.postings import Postings, SparseRows, highest, lexical_rows
from tf_smoothclir.lexical.psq import impacts
from tf_smoothclir.lexical.text_reader import TextReader
from tf_smoothclir.lexical.words import (
    FLAT,
    NO_WORD,
    PositionProfile,
    document_words,
    same_spelling,
)
from tf_smoothclir.papers.laboratory.translated import Bm25, Collection, QueryLikelihood
from tf_smoothclir.protocols import scorer
from tf_smoothclir.protocols.text_search import QueryReading
from tf_smoothclir.text import tokenizer, vocabulary
from tf_smoothclir.utils.errors import InputError

LIMIT = 7
# Words of both vocabularies, of one, of none; punctuation that is in a vocabulary; other scripts.
PIECES = ["Red", "house", "1848", "HAUS", "css", "zebra", ",", "?", "_", " ", "中文", "Σ", "\u0301"]
SEVERAL = st.lists(st.sampled_from(PIECES), max_size=9)
TEXTS = st.lists(SEVERAL.map(" ".join) | SEVERAL.map("".join) | st.text(max_size=8), max_size=6)
both = cases("name", "query", "document")
split = cases("as_is", False, True, ids=["tokenizer", "pretokenized"])
# Words 1 and 3 are in more than a quarter of the eight documents, 0 is in none.
IMPACTS = np.zeros((8, 5), np.float32)
IMPACTS[:, 1] = np.arange(1, 9)
IMPACTS[[0, 3, 4], 3] = [5, 6, 7]
IMPACTS[[2, 7], 2] = [0.5, 0.25]
IMPACTS[5, 4] = 9
VECTORS = np.array([[1, 0], [0.6, 0.8], [0, 1], [0.8, 0.6]], np.float32)
SIZE = 8
# Word 0 has no id but counts towards lengths; word 7 is in no document.
DOCUMENTS = [[2, 3, 2, 0], [3, 4], [], [5, 6, 6, 6, 2, 0, 0]]
texts = st.lists(st.integers(0, 7), max_size=5)
BACKGROUND = np.array([0.1, 0.5, 0.4], np.float32)
MODEL = model.LexicalModel(
    table=sp.csr_array(np.array([[0, 0, 0], [0, 0.75, 0.25], [0, 0, 1], [0, 0, 0]], "f4")),
    lookalikes=sp.csr_array(np.array([[0, 0, 0], [0, 0, 0.5], [0.25, 0, 0], [0, 0, 0]], "f4")),
    background=BACKGROUND,
    counts=np.array([0, 5, 4], np.float32),
    fields=(PositionProfile(2.0, 1.5), FLAT),
    weights=np.array([[1, 2, 3], [0.5, 0.25, 0]], np.float32),
    evidence=np.array([0, 2, 1.5, 0], np.float32),
    feedback=12.5,
    seconds=1.5,
    dictionary=0.3,
    lower_grades=0.03,
    agreement=0.5,
    length_power=-0.5,
    mean_length=2.0,
)
_LEVEL = 0.01


@pytest.fixture(scope="module")
def readers(tmp_path_factory):
    """In the graph, and in plain Python."""
    directory = tmp_path_factory.mktemp("vocabularies")
    query, document = directory / "query.txt", directory / "document.txt"
    vocabulary.write_vocabulary(query, ["[PAD]", "[UNK]", "red", ",", "house", "1848", "中"])
    vocabulary.write_vocabulary(document, ["[PAD]", "[UNK]", "haus", "1848", "?", "css", "σ"])
    return {
        (name, as_is): [kind(directory, name, LIMIT, as_is) for kind in (TextReader, PlainReader)]
        for as_is in (False, True)
        for name in ("query", "document")
    }


def texts_of(found):
    return [found.ids[a:b].tolist() for a, b in zip(found.offsets[:-1], found.offsets[1:])]


@both
@split
@given(texts=TEXTS)
@example(texts=["\ufffe \ue000 \u0640 \xad \ufdfc"])  # tokens of texts that are split already
@settings(max_examples=60)
def test_plain_words_and_evidence_are_those_of_the_graph(readers, name, as_is, texts):
    in_graph, plain = readers[name, as_is]
    expected, found = in_graph.batch(texts), plain.batch(texts)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.offsets, expected.offsets)
    assert (found.ids.dtype, found.offsets.dtype) == (expected.ids.dtype, expected.offsets.dtype)
    assert found.size == expected.size
    if name == "query":
        _, known = in_graph.read(tokenizer.tokenize(tf.constant(texts, tf.string), LIMIT, as_is))
        own, readings = plain.queries(texts)
        np.testing.assert_array_equal(own.ids, expected.ids)
        whole = tokenizer.tokenize(tf.constant(texts, tf.string), 1 << 10, as_is).row_lengths()
        cut = np.maximum(whole.numpy() - LIMIT, 0).tolist()
        assert readings == [
            QueryReading(NAMES[level], tuple(unknown.decode().split()), cut=number)
            for level, unknown, number in zip(known.levels.numpy(), known.unknown.numpy(), cut)
        ]


def test_by_hand(readers):
    # Query words are 2 to 6, those of documents 7 + 2 to 7 + 6; "y" is behind the limit. A word
    # counts once, and a sign at the end of five or more: `"red"` would find quotation marks, and
    # `Red-1` what has a hyphen.
    long = "red css house 1848 haus"
    texts = ["Red CSS, zebra", "haus?", "?,", f"{long} , ,", f"{long} , zebra", "z red red x"]
    ids = [[2, 12, NO_WORD, 0], [9, 0], [0, 0], [2, 12, 4, 5, 9, 0, 3], [2, 12, 4, 5, 9, 0, 0]]
    ids.append([0, 2, NO_WORD, 0])
    _, plain = readers["query", False]
    found, readings = plain.queries(texts)
    assert texts_of(found) == ids
    # Punctuation says nothing, though both vocabularies have it.
    levels = ["words", "spelling", "nothing", "words", "words", "words"]
    unknown = [("zebra",), (), (), (), ("zebra",), ("z", "x")]
    assert readings == list(map(QueryReading, levels, unknown))
    for reader in readers["query", False]:
        assert (texts_of(reader.batch(texts)), reader.batch(texts).size) == (ids, 7 + 7)
    for reader in readers["document", False]:
        found = reader.batch(["Haus, CSS", "", "red [PAD]"])
        assert (texts_of(found), found.size) == ([[2, NO_WORD, 5], [], [NO_WORD] * 4], 7)
    # A text that no encoding has is read.
    found, (reading,) = plain.queries(["red\ud800house"])
    assert found.ids.tolist() == [2, 0, 4]
    for reader in readers["query", True]:  # what stands between white space, as it is
        found = texts_of(reader.batch(["red, css", "red\u3000css\t中", "Haus"]))
        assert found == [[NO_WORD, 12], [2, 12, 6], [NO_WORD]]
    assert reading == QueryReading("words")


@both
def test_a_stream_has_the_words_of_a_batch_and_may_be_empty(readers, name):
    reader, _ = readers[name, False]
    texts = (b"red css rot", b"", b"haus", b"\xff\x00", b"red " * 100_000)
    assert texts_of(reader.batch(texts)) == texts_of(reader.words(iter(texts)))
    found = reader.words([])
    assert (found.ids.size, found.offsets.tolist()) == (0, [0])
    assert found.matrix().shape == (0, found.size)


@cases("role", "query", "document")
def test_texts_of_a_set_have_the_words_that_models_learn_from(tokenized_set, role):
    source, store = tokenized_set.retrieval_set.source, tokenized_set.tokens(role)
    texts = source.queries() if role == "query" else source.documents()
    found = TextReader(tokenized_set.vocabulary_dir, role, 200).words(text.text for text in texts)
    size = len(vocabulary := tokenized_set.vocabulary(role))
    for row, own in enumerate(texts_of(found)):
        expected = [word if word > 1 else NO_WORD for word in store[row].tolist()]
        if role == "query":  # none of these signs ends a long query
            expected = [NO_WORD if vocabulary[word] in ",." else word for word in expected]
        assert [word if word < size else NO_WORD for word in own] == expected
    if role == "document":
        assert found.size == size
        assert texts_of(document_words(tokenized_set)) == texts_of(found)


def test_counts_shares_and_cuts_by_hand():
    found = words([2, 3, 2, 0], [], size=4)
    assert found.matrix().toarray().tolist() == [[0, 0, 2, 1], [0] * 4]
    # A word without an id is part of the text.
    assert found.matrix(FLAT).toarray().tolist() == [[0, 0, 2 / 4, 1 / 4], [0] * 4]
    profile = PositionProfile(height=1.0, decay=1 / np.log(2))  # 1 + 1/2^position: 2, 1.5, 1.25
    found = words([3, 2, 3], size=4).matrix(profile).toarray()
    assert found[0] == pytest.approx([0, 0, 1.5 / 4.75, (2 + 1.25) / 4.75])
    # Chosen texts are cut.
    found = words([1, 2, 3], [], [4, 5], size=6).of(np.array([2, 0, 1]), most=2)
    assert texts_of(found) == [[4, 5], [1, 2], []]
    assert found.positions().tolist() == [0, 1, 0, 1]
    # Spelling names one query word for each document word.
    found = same_spelling(["[PAD]", "[UNK]", "red", "css"], ["[PAD]", "[UNK]", "css", "rot"])
    assert list(zip(*found.nonzero())) == [(2, 3), (3, 4 + 3)]


def test_a_saved_model_comes_back_to_the_last_bit(tmp_path):
    MODEL.save(tmp_path / "lexical")
    found = model.LexicalModel.load(tmp_path / "lexical")
    for name in (field.name for field in dataclasses.fields(MODEL)):
        value, expected = getattr(found, name), getattr(MODEL, name)
        if sp.issparse(expected):
            value, expected = value.toarray(), expected.toarray()
        if isinstance(expected, np.ndarray):
            assert value.dtype == expected.dtype
            np.testing.assert_array_equal(value, expected)
        else:
            assert value == expected
    assert json.dumps(found.choices()) == json.dumps(MODEL.choices())


def test_a_pickle_is_not_opened(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (tmp_path.joinpath("opened").mkdir, ())

    MODEL.save(tmp_path / "lexical")
    path = tmp_path / "lexical" / "lexical.npz"
    with np.load(path) as arrays:
        content = dict(arrays)
    np.savez(path, **{**content, "weights": np.array([Bomb()], object)})
    with pytest.raises(ValueError, match="allow_pickle=False"):
        model.LexicalModel.load(path.parent)
    for name, value in (("columns", 10**6), ("columns", -1), ("row_ends", 10**6)):
        for prefix, matrix in (("", "table"), ("lookalike_", "lookalikes")):
            array = content[prefix + name].copy()
            array[-1] = value  # compiled code would read and write there
            np.savez(path, **{**content, prefix + name: array})
            with pytest.raises(InputError, match="its arrays do not fit"):
                assert getattr(model.LexicalModel.load(path.parent), matrix) is not None
    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ValueError, match="pickle"):
        model.LexicalModel.load(path.parent)
    assert not (tmp_path / "opened").exists()


def test_impacts_are_the_weighted_sum_of_those_of_the_fields():
    documents = words([1, 2, 0, 1], [3], [], size=4)
    spelling = sp.csr_array(np.eye(4, 3, dtype=np.float32))
    found = MODEL.impacts(documents, spelling).toarray()
    expected = 0
    for field, weights in zip(MODEL.fields, MODEL.weights):
        own = impacts([documents.matrix(field)], MODEL.mixed(spelling), BACKGROUND)
        expected = expected + own.toarray() * weights
    # Four, one and no words, where the mean is two; an empty text counts as one of one word.
    expected *= np.array([[0.5], [2], [2]]) ** 0.5
    assert found == pytest.approx(expected)
    assert found[0, 1] > 0
    assert not found[1:].any()  # word 3 stands for nothing


def test_postings_store_each_word_in_one_of_two_ways_and_sum_as_a_matrix_product():
    queries = np.vstack([np.diag([0, 2, 3, 1, 1]), [0, 2, 1, 1, 3]]).astype(np.float32)
    postings = Postings.of(sp.csr_array(IMPACTS))
    assert postings.common.tolist() == [1, 3]
    assert postings.common_values.tolist() == IMPACTS[:, [1, 3]].T.tolist()
    assert np.diff(postings.rare.ends).tolist() == [0, 0, 2, 0, 1]
    assert postings.rare.ids.tolist() == [2, 7, 5]
    assert postings.rare.values.tolist() == [0.5, 0.25, 9]
    found = postings.sums(sp.csr_array(queries))
    assert found.dtype == np.float32
    assert found.tolist() == (queries @ IMPACTS.T).tolist()  # quarters: every sum is exact
    impacts = np.array([[1, 1, 1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0, 0]], np.float32).T
    assert Postings.of(sp.csr_array(impacts)).common.tolist() == [0]  # 3 / 8, and 2 / 8


@cases("block", 3, 8, 1 << 16)
@cases("size", 1, 3, 8)
def test_bounds_are_the_next_higher_byte_in_lists_of_blocks(size, block, monkeypatch):
    monkeypatch.setattr(posting_bounds, "BLOCK", block)
    chunks = [sp.csr_array(IMPACTS[begin : begin + size]) for begin in range(0, 8, size)]
    parts = np.split(IMPACTS, range(block, 8, block))
    lengths = np.stack([np.count_nonzero(part, axis=0) for part in parts], axis=1)
    levels = np.ceil(2 * IMPACTS)
    bounds = filled_bounds(chunks, lengths, 8, 0.5, lambda name, kind, shape: np.zeros(shape, kind))
    assert (bounds.blocks, bounds.words) == (len(parts), 5)
    assert bounds.common.tolist() == [1, 3]
    assert bounds.common_values.tolist() == levels[:, [1, 3]].T.tolist()
    assert bounds.rare.ids.tolist() == [2, 7 % block, 5 % block]
    assert bounds.rare.values.tolist() == [1, 1, 18]  # 0.5, 0.25 and 9, in steps of 0.5
    for asked in np.vstack([np.diag([0, 2, 3, 1, 1]), [0, 2, 1, 1, 3], [0, 400, 0, 0, 9]]):
        words = np.flatnonzero(asked)
        assert bounds.of_documents(words, asked[words]).tolist() == (levels @ asked / 2).tolist()
        scores = np.ones(8, np.float32)
        bounds.add_to(scores, words, asked[words] / 4)
        assert scores.tolist() == (1 + levels @ asked / 8).tolist()


@given(st.integers(1, 60), st.integers(0, 2**32 - 1))
def test_the_best_by_bounds_are_the_best_with_all_ties(number, seed):
    random = np.random.default_rng(seed)
    scores = random.integers(0, 9, number).astype(np.float32)
    bounds = scores + random.integers(0, 3, number).astype(np.float32)
    mask = random.random(number) < 0.7
    for allowed in (None, mask) if mask.any() else (None,):
        expected = np.where(True if allowed is None else allowed, scores, -1)
        for depth in (1, np.count_nonzero(expected >= 0)):
            first, seen = random.integers(0, 2, 2)
            some, score = np.flatnonzero(expected >= 0)[:first], scores.__getitem__
            found, _ = may_be_best(bounds, score, depth, allowed, some, looked_at=seen)
            assert set(found) >= set(np.flatnonzero(expected >= np.sort(expected)[-depth]))
            assert (expected[found] >= 0).all()


@given(st.integers(0, 2**32 - 1))
def test_sums_of_some_rows_are_those_of_the_postings(seed):
    random = np.random.default_rng(seed)
    matrix = sp.csr_array(random.random((30, 9), np.float32) * (random.random((30, 9)) < 0.3))
    words, rows = np.flatnonzero(random.random(9) < 0.6), random.integers(0, 30, 12)
    weights, postings = random.random(len(words), np.float32), Postings.of(matrix)
    found = SparseRows.of(matrix).sums(rows, words, weights, postings.common)
    query = sp.csr_array((weights, words, [0, len(words)]), shape=(1, 9))
    assert found.tolist() == postings.of_queries(query)[0, rows].tolist()


@cases("longest", 2, 5, 6)
def test_passages_overlap_by_half_end_with_their_text_and_the_best_one_counts(longest):
    texts = [[1, 2, 3, 4, 5, 6, 7], [], [8], [3, 4, 5, 6, 1], [7, 7]]
    documents, step, expected, begins = words(*texts, size=9), longest // 2, [], []
    for text in texts:
        last = max(0, len(text) - longest)
        begins.append([*range(0, last, step), last])
        expected.append([text[begin : begin + longest] for begin in begins[-1]])
    passages = documents.passages(longest)
    found = np.split(passages.ids, passages.offsets[1:-1])
    assert [own.tolist() for own in found] == [*itertools.chain(*expected)]
    assert passages.starts.tolist() == [*itertools.chain(*begins)]
    assert passages.number_of_each().tolist() == list(map(len, expected))
    for whole in (documents.passages(0), documents.passages(7)):
        assert whole is documents
        assert whole.number_of_each().tolist() == [1] * 5
    profile = PositionProfile(3.0, 2.0)
    shares = passages.matrix(profile).toarray()
    weights = profile(np.arange(begins[0][-1], 7))  # of places in the document
    assert shares[len(begins[0]) - 1, 7] == pytest.approx(weights[-1] / weights.sum())
    postings = Postings.of(sp.csr_array(shares), passages.firsts)
    asked = np.array([[0, 0, 0, 0, 1, 2, 0, 1, 0]], np.float32)
    scores = np.split((asked @ shares.T)[0], passages.firsts[1:-1])
    assert postings.sums(sp.csr_array(asked))[0] == pytest.approx([own.max() for own in scores])
    (of_rows,) = postings.of_queries(sp.csr_array(asked))
    best = postings.best_rows(of_rows, np.arange(5)) - passages.firsts[:-1]
    assert best.tolist() == [int(own.argmax()) for own in scores]
    largest = sparse_tables.largest_of_groups(sp.csr_array(shares), passages.firsts).toarray()
    groups = np.split(shares, passages.firsts[1:-1])
    assert largest.tolist() == [own.max(axis=0).tolist() for own in groups]


@settings(max_examples=200)
@given(st.integers(1, 400), st.integers(1, 20), st.integers(1, 50), st.integers(0, 2**32 - 1))
def test_the_highest_scores_are_those_of_a_sort_with_all_ties(number, depth, values, seed):
    depth = min(depth, number)
    scores = np.random.default_rng(seed).integers(0, values, number).astype(np.float32)
    least = np.sort(scores)[-depth]
    assert highest(scores, depth).tolist() == np.flatnonzero(scores >= least).tolist()


@pytest.fixture(scope="module")
def world():
    """A set, counts of six query words, impacts of halves: every sum is exact, many are equal."""
    random = np.random.default_rng(3)
    queries = random.integers(0, 3, (23, 6)).astype(np.float32)
    return random_set(23, 40, seed=1), queries, random.integers(0, 3, (40, 6)).astype("f4") / 2


@cases("queries_at_once", 1, 2, 1000)
@cases("depth", 1, 7, 40, 99)
def test_rankings_are_those_of_a_plain_loop_ties_too(world, depth, queries_at_once, monkeypatch):
    monkeypatch.setattr(scorer, "_SCORES_AT_ONCE", 40 * queries_at_once)
    retrieval_set, queries, impacts = world
    expected = [[sum(q * d for q, d in zip(query, row)) for row in impacts] for query in queries]
    rows = lexical_rows(sp.csr_array(queries), sp.csr_array(impacts))
    ranker, asked = scorer.RowRetriever(rows, retrieval_set.tie_order), np.array([4, 0, 22, 9, 4])
    found = scorer.Ranking.joined(ranker.rank(asked, depth))
    assert found.query_rows.tolist() == asked.tolist()
    for place, scores in enumerate(expected[query] for query in asked):
        assert len(set(scores)) < 40  # there are ties
        order = sorted(range(40), key=lambda d: (-scores[d], retrieval_set.tie_order[d]))[:depth]
        assert found.document_rows[place].tolist() == order
        assert found.scores[place].tolist() == [scores[document] for document in order]
    lists = candidate_lists(retrieval_set, "test", negatives=5, seed=1)
    pairs = zip(lists.pair_query_rows, lists.document_rows)
    assert ranker.score(lists).tolist() == [expected[query][document] for query, document in pairs]


def test_lists_and_rankings_have_the_same_scores_with_feedback(world):
    retrieval_set, queries, impacts = world
    rows = lexical_rows(sp.csr_array(queries), sp.csr_array(impacts))
    feedback = Feedback.of(tf_idf(sp.csr_array(impacts)), 3.0)
    ranker = scorer.RowRetriever(rows, retrieval_set.tie_order, feedback.added_to)
    (ranking,) = ranker.rank(np.arange(23), 40)
    scores = ranker.score(ranking.candidate_lists(retrieval_set))
    assert scores.tolist() == ranking.scores.reshape(-1).tolist()
    assert (ranker.scores(np.arange(23)) != rows(np.arange(23))).any()


def test_tf_idf_by_hand():
    found = tf_idf(counts([1, 1, 2], [2, 3], [], size=4)).toarray()
    # Documents with the words: 1, 2, 1 of 3; idf = log(4 / (1 + df)).
    first = np.array([0, np.log(3) * np.log(4 / 2), np.log(2) * np.log(4 / 3), 0])
    assert found[0] == pytest.approx(first / np.linalg.norm(first), rel=1e-5)
    assert np.linalg.norm(found, axis=1) == pytest.approx([1, 1, 0])
    some = tf_idf(counts([1, 1, 2], size=4), rarity(np.array([0, 1, 2, 1]), 3))
    np.testing.assert_array_equal(some.toarray(), found[:1])


def feedback_of(vectors, weight, **others):
    return dataclasses.replace(Feedback.of(sp.csr_array(vectors), weight), **others)


def test_feedback_by_hand(monkeypatch):
    # Documents like the first one come next.
    scores = np.array([[9, 0, 0, 0]], np.float32)
    found = feedback_of(VECTORS, 10.0, depth=1).added_to(scores)
    assert found == pytest.approx(np.array([[9 + 10 * 1, 10 * 0.6, 0, 10 * 0.8]]))
    assert scores.tolist() == [[9, 0, 0, 0]]  # those that are given stay as they are
    # First documents count by their scores: shares 3/4, 1/4, and exp(-199) of what is far below.
    scores = np.array([[200 + np.log(3), 200, 1, -9]], np.float32)
    found = feedback_of(VECTORS, 1.0, depth=3).added_to(scores)
    similar = VECTORS @ (3 / 4 * VECTORS[0] + 1 / 4 * VECTORS[1])
    assert found[0, 3] == pytest.approx(-9 + similar[3])
    assert found[0, :3] == pytest.approx(scores[0, :3] + max(similar[:3]))
    # Of two words, the heavier one counts.
    monkeypatch.setattr("tf_smoothclir.lexical.feedback.TERMS", 1)
    found = feedback_of(VECTORS, 10.0, depth=1).added_to(np.float32([[0, 9, 0, 0]]))
    assert found == pytest.approx(np.array([[0, 9 + 8 * 0.8, 8, 8 * 0.6]]))


def _by_bounds(feedback):
    """Feedback whose postings are bounds, as those of an index are."""
    rows, shape = feedback.vectors, (len(feedback.vectors), len(feedback.postings.rare))
    vectors = sp.csr_array((rows.values, rows.ids, rows.ends), shape=shape)
    lengths = np.bincount(vectors.indices, minlength=shape[1])[:, np.newaxis]
    bounds = filled_bounds(
        [vectors], lengths, shape[0], _LEVEL, lambda name, kind, shape: np.zeros(shape, kind)
    )
    return dataclasses.replace(feedback, postings=bounds)


def test_some_documents_get_the_numbers_of_all_and_few_terms_bound_them():
    random = np.random.default_rng(4)
    counts = random.poisson(np.append(np.full(200, 0.2), 0.7), (80, 201)).astype(np.float32)
    feedback = Feedback.of(tf_idf(sp.csr_array(counts)), 10.0)
    documents, scores = np.arange(80), random.random(80, np.float32)
    (expected,) = feedback.similarities(scores[np.newaxis])
    similarity = _by_bounds(feedback).similarity(documents, scores)
    np.testing.assert_array_equal(similarity.of(documents), expected)
    bounds = similarity.at_most(8)
    assert (bounds >= expected).all()
    weights = np.sort(similarity.weights)  # of all but the heaviest terms, their length
    rounded = np.linalg.norm(weights[:-8]) + _LEVEL * weights[-8:].sum()
    assert (bounds <= expected + rounded + 1e-4).all()
    # A document of nothing else has all that others may add.
    vectors = sp.csr_array(np.float32([[0.8, 0.48, 0.36], [0, 0.8, 0.6]]))
    feedback = _by_bounds(feedback_of(vectors, 1.0, depth=1))
    similarity = feedback.similarity(np.array([0]), np.ones(1))
    assert 0.6 < similarity.at_most(1)[1] == pytest.approx(np.hypot(0.48, 0.36), abs=1e-4)


def test_only_a_score_above_zero_begins_a_ranking_and_equal_scores_stay_equal():
    vectors = sp.csr_array(np.array([[1, 0], [0, 1], [1, 0], [0, 0]], np.float32))
    feedback = feedback_of(vectors, 10.0, tie_order=np.array([2, 1, 0, 3]), depth=2)
    # Of the documents 0 and 1, which equal nothing, only what resembles document 2 counts.
    assert feedback.added_to(np.array([[0, 0, 5, 0]], np.float32)).tolist() == [[10, 0, 5 + 10, 0]]
    # Three equal ones: the tie order says that 2 and 1 are first, and 0 gets what they get.
    found = feedback.added_to(np.array([[5, 5, 5, 0]], np.float32))
    assert found.tolist() == [[5 + 10 * (1 / 2)] * 3 + [0]]  # similar by shares of 1/2 and 1/2
    for nothing in (0, -1):
        scores = np.full((1, 4), nothing, np.float32)
        assert feedback.added_to(scores).tolist() == scores.tolist()


def weights_of(telling, *penalty):
    """Of words 1 and 2, in each field one speaks for the relevant document, one for the other."""
    # One query is the other way round, so that the best weights are finite.
    places = np.array([1, 0] + [0, 1] * 39)
    fields = [np.eye(2, dtype=np.float32)[places ^ (word - 1)] for word in telling]
    return word_weights.learn_word_weights(counts(*[[1, 2]] * 40, size=4), fields, *penalty)


def test_features_are_counts_times_impacts_and_words_that_tell_count_more():
    impacts = sp.csr_array(np.array([[0, 1.0, 2.0], [0, 3.0, 0], [0, 0, 0.5]], np.float32))
    queries = counts([1, 1, 2], [2], size=3)
    found = word_weights.candidate_features(queries, impacts, np.array([[0, 2], [1, 0]]))
    assert found.tolist() == [[2 * 1, 0], [2, 0.5], [0, 2]]
    # The penalty keeps words together.
    loose, tight = (weights_of([1], penalty) for penalty in (1.0, 1e4))
    assert loose.shape == (1, 4)
    assert loose[0, 1] > 2 * loose[0, 2] > 0
    assert loose[0, 1] / loose[0, 2] > 1.5 * tight[0, 1] / tight[0, 2]
    assert tight[0, 1] / tight[0, 2] == pytest.approx(1, abs=0.05)


def test_words_of_no_training_query_have_the_weight_of_their_field():
    weights = weights_of([1, 1], 1e6)
    assert weights[:, 0] == pytest.approx(weights[:, 3])
    assert weights[:, 1] == pytest.approx(weights[:, 3], rel=1e-3)
    # The field that tells counts more.
    weights = weights_of([1, 2])
    assert weights[0, 3] / weights[1, 3] > 0.3 / 0.03  # where both began


def scores(ranker, documents, queries):
    found = ranker(Collection.of(words(*documents, size=SIZE)))
    return found.rows(words(*queries, size=SIZE).matrix())(np.arange(len(queries)))


def bm25_by_loop(k1, b, documents, query):
    mean = max(1, sum(map(len, documents)) / len(documents))
    result = []
    for document in documents:
        score = 0
        for word in filter(None, query):
            frequency = sum(word in other for other in documents)
            rarity = math.log(1 + (len(documents) - frequency + 0.5) / (frequency + 0.5))
            tf = document.count(word)
            length = 1 - b + b * len(document) / mean
            score += rarity * tf * (k1 + 1) / (tf + k1 * length) if tf else 0
        result.append(score)
    return result


def likelihood_by_loop(mu, documents, query):
    """log P(q | d) itself, with the words that the collection has."""
    collection, result = [word for document in documents for word in document], []
    for document in documents:
        score = 0
        for word in query:
            if word and word in collection:
                smoothed = document.count(word) + mu * collection.count(word) / len(collection)
                score += math.log(smoothed / (len(document) + mu))
        result.append(score)
    return result


@given(
    st.lists(texts, min_size=1, max_size=6),
    st.lists(texts, min_size=1, max_size=3),
    st.sampled_from([(1.2, 0.75), (0.3, 0.0), (2.0, 1.0), (0.0, 0.5)]),
    st.sampled_from([1.0, 10.0, 1000.0]),
)
@example([[], []], [[2], []], (0.9, 0.4), 5.0)  # an empty collection
@example(DOCUMENTS, [[2, 3, 3], [6, 7], [], [4, 5, 2]], (0.9, 0.4), 5.0)
def test_both_are_those_of_plain_loops(documents, queries, bm25, mu):
    found = scores(Bm25(*bm25), documents, queries)
    expected = [bm25_by_loop(*bm25, documents, query) for query in queries]
    assert found == pytest.approx(np.array(expected), rel=1e-4, abs=1e-6)
    for row, query in zip(scores(QueryLikelihood(mu), documents, queries), queries, strict=True):
        expected = np.array(likelihood_by_loop(mu, documents, query))
        # The same up to what no document changes.
        assert row - row[0] == pytest.approx(expected - expected[0], abs=1e-4)


@cases("kind", Bm25, QueryLikelihood)
def test_weights_of_words_count_as_that_many_words(kind):
    ranker = kind()(Collection.of(words(*DOCUMENTS, size=SIZE)))
    once = words([2, 3], [3, 6], size=SIZE).matrix()
    whole = ranker.rows(sp.csr_array(once.sum(axis=0)[None] * np.float32(0.5)))(np.array([0]))
    parts = ranker.rows(once)(np.array([0, 1])).sum(axis=0)
    assert whole[0] == pytest.approx(0.5 * parts, rel=1e-5)
