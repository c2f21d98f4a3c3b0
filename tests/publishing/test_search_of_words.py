"""Search models of lexical and hybrid runs: the scores of the house, in the graph."""

import dataclasses
import functools
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tests.published import CUT_POINTS, DIM, grades_of_hits, undesired_operations
from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.hybrid import fusion
from tf_smoothclir.hybrid.fusion import RECIPROCAL_RANK, Fusion
from tf_smoothclir.lexical import postings
from tf_smoothclir.lexical.feedback import TERMS, tf_idf
from tf_smoothclir.lexical.model import LexicalModel
from tf_smoothclir.lexical.positions import FLAT, PositionProfile
from tf_smoothclir.lexical.retriever import RowRetriever
from tf_smoothclir.lexical.score_rows import lexical_rows
from tf_smoothclir.protocols.cut_points import CutPoints
from tf_smoothclir.publishing import (
    exported_postings,
    exported_scorers,
    search_model,
)
from tf_smoothclir.publishing.export_search import build_search_model
from tf_smoothclir.publishing.exported_collection import Collection
from tf_smoothclir.publishing.exported_lexical import LexicalParts
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.text.vocabulary import write_vocabulary

QUERY_WORDS = [f"q{number}" for number in range(40)]
DOCUMENT_WORDS = [*(f"w{number}" for number in range(110)), *QUERY_WORDS[:4], "x1", "x2", "日"]
TEXT = TextSettings(max_query_tokens=30, max_document_tokens=50)
FEEDBACK_DEPTH = 10
FUSION = Fusion(share=0.4, lexical_deviation=2.0, dense_deviation=0.1, feedback=0.0)
BY_RANKS = dataclasses.replace(FUSION, formula=RECIPROCAL_RANK)
KINDS = {
    "lexical": {},
    "lexical with feedback": {"feedback": 30.0},
    "lexical by length": {"length": -0.3},
    "hybrid": {"fusion": FUSION},
    # The fusion decides; feedback of the lexical model alone does not count.
    "hybrid with feedback": {"fusion": dataclasses.replace(FUSION, feedback=20.0), "feedback": 5.0},
    "hybrid by ranks": {"fusion": BY_RANKS},
    "hybrid by ranks with feedback": {"fusion": dataclasses.replace(BY_RANKS, feedback=20.0)},
    "hybrid, towers alone": {"fusion": dataclasses.replace(FUSION, share=1.0, feedback=20.0)},
    "hybrid, no towers": {"fusion": dataclasses.replace(FUSION, share=0.0, feedback=20.0)},
}
HOSTILE = {
    "empty": b"",
    "blank": b" \t\n",
    "unknown": b"unheard of",
    "a word that only documents have": "日 x1".encode(),
    "NUL": b"q1\0q2",
    "not UTF-8": b"\xff q3 \xc3",
    "huge": b"q1 " * 300_000,
    "one huge word": b"q" * 1_000_000,
}


def random_texts(number, vocabulary, longest, seed):
    """Texts of known and unknown words; the first words are much more frequent than the others."""
    generator = np.random.default_rng(seed)
    words = [*vocabulary, "unknown"]
    shares = 1 / np.arange(1, len(words) + 1)
    lengths = generator.integers(0, longest, number)
    return [" ".join(generator.choice(words, n, p=shares / shares.sum())) for n in lengths]


QUERIES = [*random_texts(25, QUERY_WORDS, 12, seed=1), *HOSTILE.values()]
DOCUMENTS = random_texts(60, DOCUMENT_WORDS, 60, seed=2) * 2 + [""]  # each twice: equal scores
IDS = [f"d{number}" for number in range(len(DOCUMENTS))]
ORDER = np.argsort(hash_ids(IDS))


@pytest.fixture(scope="module")
def model():
    """Two fields, and a table that is about as dense as learned ones."""
    generator = np.random.default_rng(3)
    shape = (2 + len(DOCUMENT_WORDS), 4 + len(QUERY_WORDS) + len(DOCUMENT_WORDS))
    table = sp.random_array(shape, density=0.05, rng=generator).tocsr().astype(np.float32)
    table = sp.csr_array(table.multiply(np.arange(shape[1]) < 2 + len(QUERY_WORDS)))
    return LexicalModel(
        table=table,
        background=generator.uniform(0.001, 0.1, shape[1]).astype(np.float32),
        fields=(PositionProfile(20.0, 8.0), FLAT),
        weights=generator.uniform(0.05, 1.0, (2, shape[1])).astype(np.float32),
    )


@pytest.fixture(scope="module")
def vocabulary_dir(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary")
    for role, words in zip(ROLES, (QUERY_WORDS, DOCUMENT_WORDS)):
        write_vocabulary(path / f"{role}.txt", ["[PAD]", "[UNK]", *words])
    return path


@pytest.fixture(scope="module")
def parts(model, vocabulary_dir):
    """`parts(kind)` is a lexical model of `KINDS`."""

    def make(kind):
        values = KINDS[kind]
        length = values.get("length", 0.0)
        feedback = values.get("feedback", 0.0)
        own = dataclasses.replace(model, feedback=feedback, length_power=length, mean_length=20.0)
        return LexicalParts(own, vocabulary_dir, TEXT, values.get("fusion"))

    return make


@pytest.fixture(scope="module")
def towers(make_tower):
    return {role: make_tower(role) for role in ROLES}


def knows_a_word(query):
    words = {*QUERY_WORDS, *DOCUMENT_WORDS}
    return not words.isdisjoint(readable([query])[0].replace("\0", " ").split())


def vectors_of(towers, role, texts):
    """Random vectors would do, but for pairs they come from the texts."""
    return towers[role].serve(tf.constant(texts, tf.string))["vector"].numpy()


@pytest.fixture(scope="module")
def build(parts, towers):
    """`build(kind)` makes a search model of all documents."""

    def make(kind):
        own = parts(kind)
        collection = Collection.of(
            IDS, vectors_of(towers, "document", DOCUMENTS), own.document_reader.words(DOCUMENTS)
        )
        return build_search_model(
            collection, towers, own, cut_points=CUT_POINTS, depth=len(DOCUMENTS)
        )

    return make


@pytest.fixture(scope="module")
def built(build):
    """`built(kind)` is always the same search model of a kind."""
    return functools.lru_cache(build)


def readable(texts):
    """The texts as a data set can have them."""
    return [text if isinstance(text, str) else text.decode("utf-8", "replace") for text in texts]


def with_feedback(scores, vectors, weight):
    """Feedback, document by document; ties in the order of the rows."""
    vectors = vectors.toarray()
    result = []
    for row in scores.astype(np.float64):
        first = np.argsort(-row, kind="stable")[:FEEDBACK_DEPTH]
        shares = np.exp(row[first] - row[first].max())
        mixture = (shares / shares.sum()) @ vectors[first]
        mixture = mixture.astype(np.float32)
        mixture[np.argsort(-mixture, kind="stable")[TERMS:]] = 0
        similar = vectors @ mixture
        similar[first] = similar[first].max()
        result.append(row + weight * similar)
    return np.array(result)


def house_scores(parts, towers, queries=QUERIES, *, feedback=True):
    """`[queries, documents]`, the documents in the order of the tie rule."""
    documents = [DOCUMENTS[row] for row in ORDER]
    words = parts.document_reader.words(documents)
    rows = lexical_rows(
        parts.query_reader.words(readable(queries)).matrix(),
        parts.model.impacts(words, parts.spelling),
    )
    if parts.fusion is not None:
        vectors = [
            vectors_of(towers, *side) for side in (("query", queries), ("document", documents))
        ]
        dense = tf.matmul(*vectors, transpose_b=True).numpy()  # the last bits decide about ranks
        rows = parts.fusion.rows(rows, lambda chosen: dense[chosen])
    scores = RowRetriever(rows, np.arange(len(documents))).scores(np.arange(len(queries)))
    if feedback and parts.feedback:
        return with_feedback(scores, tf_idf(words.matrix()), parts.feedback)
    return scores


def check_search(found, expected, queries=QUERIES):
    """Scores and order; documents whose scores differ by rounding alone may swap places.

    Left out are the last documents where their score is 0, and all where no word is known.
    """
    place = {IDS[row].encode(): number for number, row in enumerate(ORDER)}
    answers = [found[name].numpy() for name in ("ids", "scores", "grades", "evidence")]
    equal = []
    for query, ids, scores, grades, evidence, all_scores in zip(queries, *answers, expected):
        number = np.count_nonzero(ids != b"")
        assert (evidence == b"nothing") == (number == 0)
        places = np.array([place[id_] for id_ in ids[:number]], int)
        assert len(set(places)) == number
        if knows_a_word(query):
            assert (np.delete(all_scores, places) == 0).all()
        else:
            assert number == 0
        np.testing.assert_allclose(scores[:number], all_scores[places], rtol=1e-5, atol=2e-5)
        assert not scores[number:].any()
        assert not grades[number:].any()
        same = np.diff(scores[:number]) == 0
        assert (np.diff(scores[:number]) <= 0).all()
        assert (np.diff(places)[same] > 0).all()  # the tie rule
        equal += same.tolist()
        cut_points = (CUT_POINTS.scores, CUT_POINTS.shares)
        if number:
            assert grades[:number].tolist() == grades_of_hits(scores[:number], cut_points)
    assert np.mean(equal) > 0.3  # each document is there twice


@pytest.mark.parametrize("kind", KINDS)
def test_the_scores_of_a_search_are_those_of_the_house(built, parts, towers, kind):
    expected = house_scores(parts(kind), towers)
    check_search(built(kind).serve(tf.constant(QUERIES, tf.string)), expected)
    assert np.ptp(expected[0]) > 0.5


@pytest.fixture(scope="module")
def loaded(built, tmp_path_factory):
    """A saved and loaded model with all there is."""
    path = tmp_path_factory.mktemp("saved")
    built("hybrid with feedback").save(str(path))
    return tf.saved_model.load(str(path))


def test_a_loaded_model_scores_the_same_with_core_operations(loaded, parts, towers):
    found = loaded.signatures["serving_default"](text=tf.constant(QUERIES, tf.string))
    check_search(found, house_scores(parts("hybrid with feedback"), towers))
    assert undesired_operations(loaded) == set()


def test_a_search_splits_its_queries_into_words_once(loaded):
    graph = loaded.signatures["serving_default"].graph.as_graph_def()
    nodes = [graph.node, *(function.node_def for function in graph.library.function)]
    operations = [node.op for part in nodes for node in part]
    assert operations.count("StringSplit") == 1


def test_names_types_and_shapes_are_those_of_a_dense_model(loaded):
    signature = loaded.signatures["serving_default"]
    depth = len(DOCUMENTS)
    assert {
        name: (spec.dtype, spec.shape.as_list())
        for name, spec in signature.structured_outputs.items()
    } == {
        "ids": (tf.string, [None, depth]),
        "scores": (tf.float32, [None, depth]),
        "grades": (tf.int32, [None, depth]),
        "evidence": (tf.string, [None]),
    }
    outputs = loaded.signatures["score"].structured_outputs
    assert {name: spec.dtype for name, spec in outputs.items()} == {
        "score": tf.float32,
        "grade": tf.int32,
    }


@pytest.mark.parametrize("hazard", HOSTILE)
def test_a_hostile_query_alone_is_answered(built, parts, towers, hazard):
    query = [HOSTILE[hazard]]
    expected = house_scores(parts("hybrid with feedback"), towers, query)
    found = built("hybrid with feedback").serve(tf.constant(query))["scores"].numpy()
    known = knows_a_word(query[0])
    np.testing.assert_allclose(found, known * -np.sort(-expected), rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (search_model, "_SCORES_PER_STEP", 4 * len(DOCUMENTS)),
        (exported_postings, "_POSTINGS_PER_STEP", 1),
        (postings, "COMMON", 0.0),
        (postings, "COMMON", 1.0),
        (exported_scorers, "_DOCUMENTS_PER_STEP", 50),
    ],
)
def test_the_scores_do_not_depend_on_how_they_are_computed(
    build, parts, towers, monkeypatch, module, name, value
):
    expected = house_scores(parts("lexical with feedback"), towers)
    monkeypatch.setattr(module, name, value)
    model = build("lexical with feedback")
    check_search(model.serve(tf.constant(QUERIES, tf.string)), expected)


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_any_number_of_queries(loaded, rows):
    found = loaded.signatures["serving_default"](text=tf.constant(QUERIES[:rows], tf.string))
    assert found["ids"].shape == (rows, len(DOCUMENTS))


def all_pairs():
    return zip(*itertools.product(QUERIES, [*DOCUMENTS[:12], *HOSTILE.values()]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_pairs_score_as_in_a_search_without_feedback(built, parts, towers, kind):
    queries, documents = map(list, all_pairs())
    found = built(kind).score(tf.constant(queries), tf.constant(documents))
    own = parts(kind)
    words = own.document_reader.words(readable(documents))
    impacts = own.model.impacts(words, own.spelling)
    expected = impacts.multiply(own.query_reader.words(readable(queries)).matrix()).sum(axis=1)
    if own.fusion is not None:
        vectors = [
            vectors_of(towers, *side) for side in (("query", queries), ("document", documents))
        ]
        # A pair has no rank.
        expected = own.fusion.of_pairs.added(expected, np.sum(vectors[0] * vectors[1], axis=1))
    np.testing.assert_allclose(found["score"], expected, rtol=1e-5, atol=1e-5)
    assert np.count_nonzero(expected > 0.5) > 20
    np.testing.assert_array_equal(
        found["grade"],
        np.sum(found["score"].numpy()[:, None] > np.float32(CUT_POINTS.alone), axis=1),
    )


@pytest.mark.parametrize("rows", [0, 1, 33])
def test_any_number_of_pairs(loaded, rows):
    texts = tf.constant(["q1 q2"] * rows, tf.string)
    assert loaded.signatures["score"](query=texts, document=texts)["score"].shape == (rows,)


def test_unequal_numbers_of_queries_and_documents_are_an_error(loaded):
    with pytest.raises(tf.errors.InvalidArgumentError, match="the same number of rows"):
        loaded.signatures["score"](query=tf.constant(["a"]), document=tf.constant(["a", "b"]))


@pytest.mark.parametrize("number", [3, 11])
def test_small_collections_have_feedback_too(parts, number):
    own = parts("lexical with feedback")
    words = own.document_reader.words(DOCUMENTS[1 : 1 + number])
    collection = Collection.of(IDS[:number], None, words)
    words = collection.words
    found = build_search_model(collection, {}, own, cut_points=CutPoints((), (), ()), depth=100)
    rows = lexical_rows(
        own.query_reader.words(QUERIES[:5]).matrix(), own.model.impacts(words, own.spelling)
    )
    expected = with_feedback(rows(np.arange(5)), tf_idf(words.matrix()), own.feedback)
    expected *= rows(np.arange(5)).any(axis=1, keepdims=True)  # feedback on nothing is nothing
    scores = found.serve(tf.constant(QUERIES[:5]))["scores"].numpy()
    np.testing.assert_allclose(scores, -np.sort(-expected), rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("depth", [1, 3, 1000])
def test_ranks_in_the_graph_are_those_of_the_house(depth, monkeypatch):
    monkeypatch.setattr(fusion, "DEPTH", depth)
    monkeypatch.setattr(exported_scorers, "DEPTH", depth)
    scores = np.random.default_rng(4).integers(-3, 4, (5, 40)).astype(np.float32)
    found = exported_scorers._reciprocal_ranks(tf.constant(scores))
    np.testing.assert_allclose(found, fusion.reciprocal_ranks(scores), rtol=1e-6)
    assert np.count_nonzero(found == 0) > 0 or depth == 1000


@given(st.lists(st.integers(0, 5), max_size=20))
def test_owners_are_the_lists_repeated(lengths):
    found = exported_postings.owners(tf.constant(lengths, tf.int64))
    np.testing.assert_array_equal(found, np.repeat(np.arange(len(lengths)), lengths))


def test_the_dimension_of_the_towers_is_no_dimension_of_words():
    assert len(DOCUMENT_WORDS) > TERMS > DIM  # so that feedback has to leave words out
