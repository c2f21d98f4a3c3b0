"""Search models: the scores, ties and grades of the house, in the graph, for any bytes."""

import dataclasses
import functools
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import tensorflow as tf

from tests import published
from tests.cases import cases, word
from tests.published import CUT_POINTS, DIM
from tf_smoothclir.data import hashing
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.hybrid.fusion import Fusion
from tf_smoothclir.lexical import postings, sparse_tables
from tf_smoothclir.lexical.feedback import TERMS, Feedback, tf_idf
from tf_smoothclir.lexical.model import LexicalModel
from tf_smoothclir.lexical.words import FLAT, PositionProfile
from tf_smoothclir.protocols.scorer import RowRetriever
from tf_smoothclir.protocols.text_search import CutPoints
from tf_smoothclir.publishing import exported_lexical, exported_scorers, exported_search
from tf_smoothclir.publishing.exported_search import Collection, build_search_model
from tf_smoothclir.settings.text import TextSettings

QUERY_WORDS = [word("q", number) for number in range(40)]
DOCUMENT_WORDS = [word("w", number) for number in range(110)]
DOCUMENT_WORDS += [*QUERY_WORDS[:4], "xa", "xb", "日"]
TEXT = TextSettings(max_query_tokens=30, max_document_tokens=50)
assert len(DOCUMENT_WORDS) > TERMS > DIM  # so that feedback has to leave words out
FUSION = Fusion(share=0.4, lexical_deviation=2.0, dense_deviation=0.1, feedback=0.0)
KINDS = {
    "dense": None,
    "lexical": {},
    "lexical with feedback": {"feedback": 30.0},
    "lexical by length": {"length_power": -0.3},
    "lexical in passages": {"passage_words": 13, "length_power": -0.3, "feedback": 30.0},
    "hybrid": {"fusion": FUSION},
    # The fusion decides; feedback of the lexical model alone does not count.
    "hybrid with feedback": {"fusion": dataclasses.replace(FUSION, feedback=20.0), "feedback": 5.0},
    "hybrid, towers alone": {"fusion": dataclasses.replace(FUSION, share=1.0, feedback=20.0)},
    "hybrid, no towers": {"fusion": dataclasses.replace(FUSION, share=0.0, feedback=20.0)},
}
# Empty, blank, unknown, a word that only documents have, NUL, no UTF-8, huge, one huge word.
HAZARDS = [b"", b" \t\n", b"unheard of", "日 xa".encode(), b"qb\0qc", b"\xff qd \xc3"]
HAZARDS += [b"qb " * 20_000, b"q" * 100_000]


def random_texts(number, vocabulary, longest, seed):
    """Texts of known and unknown words; the first words are much more frequent than the others."""
    generator = np.random.default_rng(seed)
    words = [*vocabulary, "unknown"]
    shares = 1 / np.arange(1, len(words) + 1)
    lengths = generator.integers(0, longest, number)
    return [" ".join(generator.choice(words, n, p=shares / shares.sum())) for n in lengths]


QUERIES = [*random_texts(25, QUERY_WORDS, 12, seed=1), *HAZARDS]
DOCUMENTS = random_texts(60, DOCUMENT_WORDS, 60, seed=2) * 2 + [""]  # each twice: equal scores


def ids_of(documents):
    return [f"d{number}" for number in range(len(documents))]


@pytest.fixture(scope="module")
def vocabulary_dir(tmp_path_factory):
    return tmp_path_factory.mktemp("vocabulary")


@pytest.fixture(scope="module")
def towers(vocabulary_dir):
    words = {"query": QUERY_WORDS, "document": DOCUMENT_WORDS}
    limits = {role: {"words": words[role], "max_tokens": TEXT.max_tokens(role)} for role in words}
    return {role: published.small_tower(vocabulary_dir, role, **limits[role]) for role in words}


@pytest.fixture(scope="module")
def parts(vocabulary_dir, towers):
    """`parts(kind)` is a lexical model of `KINDS`: two fields, a table as dense as learned ones."""
    generator = np.random.default_rng(3)
    shape = (2 + len(DOCUMENT_WORDS), 4 + len(QUERY_WORDS) + len(DOCUMENT_WORDS))
    table = sp.random_array(shape, density=0.05, rng=generator).tocsr().astype(np.float32)
    table = sp.csr_array(table.multiply(np.arange(shape[1]) < 2 + len(QUERY_WORDS)))
    model = LexicalModel(
        table=table,
        lookalikes=sp.csr_array(table > 0.9).astype(np.float32),
        background=generator.uniform(0.001, 0.1, shape[1]).astype(np.float32),
        counts=np.ones(shape[1], np.float32),
        fields=(PositionProfile(20.0, 8.0), FLAT),
        weights=generator.uniform(0.05, 1.0, (2, shape[1])).astype(np.float32),
        evidence=np.ones(shape[0], np.float32),
    )

    def make(kind):
        values = {"feedback": 0.0, "length_power": 0.0, "fusion": None, **KINDS[kind]}
        fusion = values.pop("fusion")
        own = dataclasses.replace(model, mean_length=20.0, **values)
        return exported_lexical.LexicalParts(own, vocabulary_dir, TEXT, fusion)

    return lambda kind: None if kind == "dense" else make(kind)


def vectors_of(towers, role, texts):
    return towers[role].serve(tf.constant(texts, tf.string))["vector"].numpy()


def test_documents_are_read_with_their_languages(parts):
    lexical = parts("lexical")
    documents = [Text(id_, "", "wb wc", language) for id_, language in zip("abc", ("he", "", "ja"))]
    read = Collection.read(SimpleNamespace(documents=lambda: documents), {}, lexical)
    assert dict(zip(read.ids, read.words.languages.tolist())) == {"a": "he", "b": "", "c": "ja"}
    assert lexical.document_words(documents).languages.tolist() == ["he", "", "ja"]


@pytest.fixture(scope="module")
def build(parts, towers):
    reader = parts("lexical").document_reader

    def make(kind, documents=DOCUMENTS, **options):
        lexical = parts(kind)
        vectors, encoders = {}, {}
        if lexical is None or (lexical.fusion is not None and lexical.fusion.weights["dense"]):
            vectors = {"dense": vectors_of(towers, "document", documents)}
            encoders = {"dense": towers["query"]}
        collection = Collection.of(ids_of(documents), vectors, reader.words(documents))
        options = {"cut_points": CUT_POINTS, "depth": 1000, **options}
        return build_search_model(collection, encoders, lexical, **options)

    return make


@pytest.fixture(scope="module")
def built(build):
    return functools.lru_cache(build)


def readable(texts):
    """The texts as a data set can have them."""
    return [text if isinstance(text, str) else text.decode("utf-8", "replace") for text in texts]


def house_scores(parts, towers, documents=DOCUMENTS):
    """`[queries, documents]`, documents by the tie rule; 0 where nothing of the query is known."""
    documents = [documents[row] for row in np.argsort(hashing.hash_ids(ids_of(documents)))]
    vectors = vectors_of(towers, "document", documents)
    vectors, copies = np.unique(vectors, axis=0, return_inverse=True)  # copies have equal scores
    dense = (vectors_of(towers, "query", QUERIES) @ vectors.T)[:, copies.ravel()]
    known, feedback = {*QUERY_WORDS, *DOCUMENT_WORDS}, 0.0
    if parts is None:
        known, scores = set(QUERY_WORDS), dense
    else:
        words, feedback = parts.document_reader.words(documents), parts.feedback
        asked = parts.plain_query_reader.batch(readable(QUERIES)).matrix()
        passages = parts.model.passages(words)
        impacts = parts.model.impacts(passages, parts.spelling)
        rows = postings.lexical_rows(asked, impacts, passages.firsts)
        if parts.fusion is not None:
            counted = np.maximum(1, asked.sum(axis=1))[:, np.newaxis] * dense  # for each known word
            rows = parts.fusion.rows({"lexical": rows, "dense": counted.__getitem__})
        scores = RowRetriever(rows, np.arange(len(documents))).scores(np.arange(len(QUERIES)))
    if feedback:
        scores = Feedback.of(tf_idf(words.matrix()), feedback).added_to(scores)
    says = [not known.isdisjoint(text.replace("\0", " ").split()) for text in readable(QUERIES)]
    return scores * np.array(says)[:, None]


def check_search(found, expected):
    """Scores and order; documents whose scores differ by rounding alone may swap places.

    Left out are the last documents where their score is 0. Returns how many scores are equal.
    """
    hashes = hashing.hash_ids(ids_of(expected[0]))
    place = {f"d{row}".encode(): number for number, row in enumerate(np.argsort(hashes))}
    answers = [found[name].numpy() for name in ("ids", "scores", "grades", "evidence")]
    equal = []
    for ids, scores, grades, evidence, all_scores in zip(*answers, expected, strict=True):
        number = np.count_nonzero(ids != b"")
        assert (evidence == b"nothing") == (number == 0)
        places = np.array([place[id_] for id_ in ids[:number]], int)
        assert len(set(places)) == number
        assert (np.delete(all_scores, places) == 0).all()
        np.testing.assert_allclose(scores[:number], all_scores[places], rtol=1e-5, atol=2e-5)
        assert not scores[number:].any()
        assert not grades[number:].any()
        same = np.diff(scores[:number]) == 0
        assert (np.diff(scores[:number]) <= 0).all()
        assert (np.diff(places)[same] > 0).all()  # the tie rule
        equal += same.tolist()
        if number:
            cut_points = CUT_POINTS.scores, CUT_POINTS.shares
            assert grades[:number].tolist() == published.grades_of_hits(scores[:number], cut_points)
    return np.mean(equal)


@cases("kind", *KINDS)
def test_the_scores_of_a_search_are_those_of_the_house(built, parts, towers, kind):
    expected = house_scores(parts(kind), towers)
    equal = check_search(built(kind).serve(tf.constant(QUERIES, tf.string)), expected)
    assert equal > 0.3  # each document is there twice
    assert np.ptp(expected[0]) > 0.5


@cases(
    "kind, documents, depth",
    ("lexical with feedback", DOCUMENTS[1:4], 1000),
    ("lexical with feedback", DOCUMENTS[1:12], 1000),
    # Hazard: empty documents, of score 0, took the places of those below 0.
    *((kind, [*DOCUMENTS[:20], *[""] * 50], 20) for kind in ("dense", "hybrid")),
)
def test_small_collections_have_feedback_and_hits_too(build, parts, towers, kind, documents, depth):
    expected = house_scores(parts(kind), towers, documents)
    model = build(kind, documents, depth=depth)
    check_search(model.serve(tf.constant(QUERIES)), expected)


@pytest.fixture(scope="module")
def loaded(built, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved")
    built("hybrid with feedback").save(str(path))
    return tf.saved_model.load(str(path))


def test_a_loaded_model_scores_the_same_with_core_operations(loaded, parts, towers):
    found = loaded.signatures["serving_default"](text=tf.constant(QUERIES, tf.string))
    check_search(found, house_scores(parts("hybrid with feedback"), towers))
    assert published.undesired_operations(loaded) == set()
    graph = loaded.signatures["serving_default"].graph.as_graph_def()
    nodes = [graph.node, *(function.node_def for function in graph.library.function)]
    # Queries are split into words once.
    assert [node.op for part in nodes for node in part].count("StringSplit") == 1
    ids, floats = (tf.string, [None, len(DOCUMENTS)]), (tf.float32, [None, len(DOCUMENTS)])
    texts, grades = (tf.string, [None]), (tf.int32, [None, len(DOCUMENTS)])
    hits = {"ids": ids, "scores": floats, "grades": grades, "evidence": texts}
    assert published.described(loaded) == {"serving_default": ({"text": texts}, hits)}


def test_a_query_alone_is_answered_as_in_a_batch(loaded):
    search = loaded.signatures["serving_default"]
    whole = search(text=tf.constant(QUERIES))["scores"].numpy()
    assert search(text=tf.constant([], tf.string))["ids"].shape == (0, len(DOCUMENTS))
    for row, query in [(0, QUERIES[0]), *enumerate(HAZARDS, len(QUERIES) - len(HAZARDS))]:
        (alone,) = search(text=tf.constant([query]))["scores"]
        np.testing.assert_allclose(alone, whole[row], rtol=1e-5, atol=2e-5)


def test_any_bytes_have_finite_scores(loaded):
    found = loaded.signatures["serving_default"](text=tf.constant(published.HOSTILE))
    nothing, empty = (found["evidence"] == b"nothing").numpy(), (found["ids"] == b"").numpy()
    assert 0 < nothing.sum() < len(nothing)
    assert empty[nothing].all()
    assert not empty[~nothing].all(axis=1).any()
    assert np.isfinite(found["scores"]).all()


FEW_SCORES = {(exported_search, "_SCORES_PER_STEP"): 4 * len(DOCUMENTS)}
SMALL_STEPS = {
    (exported_search, "_MOST_QUERIES_PER_STEP"): 4,
    (exported_scorers, "_POSTINGS_PER_STEP"): 1,
    (sparse_tables, "_ROWS_AT_ONCE"): 50,
}


@cases("bounds, common", (FEW_SCORES, 0.0), (SMALL_STEPS, 1.0))
def test_the_scores_do_not_depend_on_the_steps(build, parts, towers, monkeypatch, bounds, common):
    expected = house_scores(parts("lexical with feedback"), towers)
    monkeypatch.setattr(postings, "COMMON", common)
    for place, value in bounds.items():
        monkeypatch.setattr(*place, value)
    model = build("lexical with feedback")
    check_search(model.serve(tf.constant(QUERIES, tf.string)), expected)


@cases("kind", "lexical", "hybrid", "dense")
def test_grades_count_the_known_words_of_a_query(build, parts, kind):
    known = parts("lexical").plain_query_reader.batch(readable(QUERIES)).matrix().sum(axis=1)
    assert known.max() > 2 * np.median(known) > 2
    found = []
    for power in (0.0, 0.5):
        points = CutPoints((0.3, 1.0, 3.0, 9.0, 27.0), (), power=power)
        model = build(kind, cut_points=points, depth=20)
        answer = model.serve(tf.constant(QUERIES, tf.string))
        scores, found_ids = answer["scores"].numpy(), answer["ids"].numpy() != b""
        expected = points.of_hits(scores, 1 if kind == "dense" else known)
        found.append(answer["grades"].numpy())
        np.testing.assert_array_equal(found[-1], np.where(found_ids, expected, 0))
    assert (found[0] != found[1]).any() or kind == "dense"


def test_equal_documents_have_equal_scores_at_any_position(towers):
    # Would fail if the matrix product computed its last columns differently.
    generator = np.random.default_rng(3)
    different = generator.normal(size=(53, DIM)).astype(np.float32)
    positions = generator.integers(0, 53, 1999)
    ids = [f"d{number}" for number in range(1999)]
    collection = Collection.of(ids, {"dense": different[positions]})
    encoders = {"dense": towers["query"]}
    model = build_search_model(collection, encoders, None, cut_points=CUT_POINTS, depth=1999)
    places = hashing.hash_ids(ids)
    for batch in (["qb"], ["qb", "qc qd", "qd"] * 30):
        found = model.serve(tf.constant(batch))
        for row_ids, row_scores in zip(found["ids"].numpy(), found["scores"].numpy(), strict=True):
            rows = np.array([int(id_[1:]) for id_ in row_ids])
            for vector in range(len(different)):
                same = positions[rows] == vector
                assert np.ptp(row_scores[same]) == 0
                hashes = places[rows[same]]
                np.testing.assert_array_equal(hashes, np.sort(hashes))
