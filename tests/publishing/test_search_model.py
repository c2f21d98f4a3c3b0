"""The search model: ranks like brute force, grades by the thresholds, takes any bytes."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from tests.oracles import maths
from tests.published import CUT_POINTS, DEPTH, EPSILON, WORDS, grades_of_hits, small_search_model
from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.publishing import search_model as search_module
from tf_smoothclir.publishing.export_search import build_search_model
from tf_smoothclir.publishing.exported_collection import Collection

# All sets of words, including the empty one, each three times: equal vectors, different ids.
COLLECTION = {
    f"d{number}": " ".join(words)
    for number, words in enumerate(
        words
        for length in range(4)
        for words in itertools.combinations(WORDS["document"], length)
        for _ in range(3)
    )
}
QUERIES = ["red", "apple sea", "sea sea apple", "red unheard", "", "unheard of"]
LOADED_DEPTH = 30


@pytest.fixture(scope="module")
def towers(make_tower):
    """A tower of each role."""
    return {role: make_tower(role) for role in ROLES}


def encoded(towers):
    return towers["document"].serve(tf.constant(list(COLLECTION.values())))["vector"].numpy()


def dense_model(towers, ids, vectors, depth):
    collection = Collection.of(ids, vectors)
    return build_search_model(collection, towers, None, cut_points=CUT_POINTS, depth=depth)


@pytest.fixture(scope="module")
def model(towers):
    """A search model of the collection above."""
    return dense_model(towers, list(COLLECTION), encoded(towers), LOADED_DEPTH)


@pytest.fixture(scope="module")
def signatures(model, tmp_path_factory):
    """The signatures of the model saved and loaded."""
    path = tmp_path_factory.mktemp("search")
    model.save(str(path))
    loaded = tf.saved_model.load(str(path))
    yield loaded.signatures
    del loaded  # kept until here: signatures alone do not keep their variables


def search(signatures, queries):
    outputs = signatures["serving_default"](text=tf.constant(queries, tf.string))
    return {name: value.numpy() for name, value in outputs.items()}


def raw_vector(tower, text):
    """The mean of the rows of the table, then tanh, in float64."""
    known = {word: 2 + row for row, word in enumerate(WORDS[tower.name.split("_")[0]])}
    table = tower.weights[0].numpy().astype(np.float64)
    rows = [table[known.get(word, 1)] for word in text.split()]
    return np.tanh(np.mean(rows, axis=0)) if rows else np.zeros(table.shape[1])


def smooth_cosine(towers, query, document):
    vectors = raw_vector(towers["query"], query), raw_vector(towers["document"], document)
    return maths.smooth_cosine(*vectors, EPSILON)


def grade(score):
    return sum(score > cut for cut in CUT_POINTS.alone)


def test_names_types_and_shapes_are_frozen(signatures):
    found = {
        (name, key): (spec.dtype, spec.shape.as_list())
        for name in signatures
        for specs in (
            signatures[name].structured_input_signature[1],
            signatures[name].structured_outputs,
        )
        for key, spec in specs.items()
    }
    assert found == {
        ("serving_default", "text"): (tf.string, [None]),
        ("serving_default", "ids"): (tf.string, [None, LOADED_DEPTH]),
        ("serving_default", "scores"): (tf.float32, [None, LOADED_DEPTH]),
        ("serving_default", "grades"): (tf.int32, [None, LOADED_DEPTH]),
        ("serving_default", "evidence"): (tf.string, [None]),
        ("score", "query"): (tf.string, [None]),
        ("score", "document"): (tf.string, [None]),
        ("score", "score"): (tf.float32, [None]),
        ("score", "grade"): (tf.int32, [None]),
    }


def test_ranks_as_brute_force_with_ties_by_the_hash_of_the_id(signatures, towers):
    hashes = dict(zip(COLLECTION, hash_ids(list(COLLECTION))))
    found = search(signatures, QUERIES)
    for query, ids, scores, grades, evidence in zip(
        QUERIES, *(found[name] for name in ("ids", "scores", "grades", "evidence"))
    ):
        assert evidence == (b"words" if set(query.split()) & set(WORDS["query"]) else b"nothing")
        if evidence == b"nothing":
            assert not ids.any()
            assert not scores.any()
            assert not grades.any()
            continue
        exact = {id_: smooth_cosine(towers, query, text) for id_, text in COLLECTION.items()}
        order = sorted(exact, key=lambda id_: (-round(exact[id_], 6), hashes[id_]))
        best = [exact[id_] for id_ in order[:LOADED_DEPTH]]
        assert [id_.decode() for id_ in ids] == order[:LOADED_DEPTH]
        np.testing.assert_allclose(scores, best, atol=1e-6)
        assert grades.tolist() == grades_of_hits(best, (CUT_POINTS.scores, CUT_POINTS.shares))
    assert {0, 1} <= set(found["grades"].ravel())


def test_equal_documents_have_equal_scores_at_any_position(towers):
    # Would fail if the matrix product computed its last columns differently.
    generator = np.random.default_rng(3)
    different = generator.normal(size=(53, 3)).astype(np.float32)
    positions = generator.integers(0, 53, 1999)
    ids = [f"d{number}" for number in range(1999)]
    model = dense_model(towers, ids, different[positions], 1999)
    hashes = dict(zip(ids, hash_ids(ids)))
    of = dict(zip(ids, positions))
    for batch in (["red"], ["red", "apple sea", "sea"] * 30):
        found = model.serve(tf.constant(batch))
        for row_ids, row_scores in zip(found["ids"].numpy(), found["scores"].numpy()):
            by_vector = {}
            for id_, score in zip(map(bytes.decode, row_ids), row_scores):
                by_vector.setdefault(of[id_], []).append((score, hashes[id_]))
            for group in by_vector.values():
                assert len({score for score, _ in group}) == 1
                assert group == sorted(group, key=lambda pair: pair[1])


@pytest.mark.parametrize("rows", [0, 1, 3, 4, 9])
def test_answers_do_not_depend_on_the_step_size(model, towers, monkeypatch, rows):
    queries = [QUERIES[row % len(QUERIES)] for row in range(rows)]
    monkeypatch.setattr(search_module, "_MOST_QUERIES_PER_STEP", 4)
    other = dense_model(towers, list(COLLECTION), encoded(towers), LOADED_DEPTH)
    found, expected = (m.serve(tf.constant(queries, tf.string)) for m in (other, model))
    assert found["ids"].shape == (rows, LOADED_DEPTH)
    np.testing.assert_array_equal(found["ids"], expected["ids"])
    np.testing.assert_allclose(found["scores"], expected["scores"], atol=1e-6)


def test_pairs_have_their_smooth_cosine_and_its_grade(signatures, towers):
    pairs = list(itertools.product(QUERIES, ["roter", "apfel meer", "日", "", "unbekannt"]))
    queries, documents = (tf.constant(side) for side in zip(*pairs))
    found = signatures["score"](query=queries, document=documents)
    expected = [smooth_cosine(towers, *pair) for pair in pairs]
    np.testing.assert_allclose(found["score"], expected, atol=1e-6)
    assert found["grade"].numpy().tolist() == [grade(score) for score in expected]


@pytest.mark.parametrize(("queries", "documents"), [(1, 3), (2, 1), (0, 1)])
def test_unequal_numbers_of_queries_and_documents_are_an_error(signatures, queries, documents):
    rows = {"query": ["red"] * queries, "document": ["roter"] * documents}
    with pytest.raises(tf.errors.InvalidArgumentError, match="the same number of rows"):
        signatures["score"](**{name: tf.constant(row, tf.string) for name, row in rows.items()})


def test_empty_batch_gives_empty_answers(signatures):
    nothing = tf.constant([], tf.string)
    assert search(signatures, [])["ids"].shape == (0, LOADED_DEPTH)
    assert signatures["score"](query=nothing, document=nothing)["score"].shape == (0,)


@pytest.mark.parametrize("depth", [1, DEPTH, 100])
def test_depth_is_at_most_the_collection(towers, depth):
    model = small_search_model(towers, depth)
    ids = model.serve(tf.constant(["red"]))["ids"].numpy()
    documents = len(WORDS["document"]) + 1
    assert model.num_documents == documents
    assert ids.shape == (1, min(depth, documents))
    assert len(set(ids[0])) == min(depth, documents)


def test_collection_is_encoded_by_the_document_tower_and_sorted_by_the_hash_of_the_id(towers):
    documents = [Text(id_, "a title", text) for id_, text in COLLECTION.items()]
    found = Collection.read(lambda: iter(documents), len(documents), towers["document"])
    order = np.argsort(hash_ids(list(COLLECTION)))
    assert found.ids == [list(COLLECTION)[row] for row in order]
    np.testing.assert_array_equal(found.vectors, encoded(towers)[order])
    assert found.words is None
