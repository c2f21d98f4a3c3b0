"""Foreign encoders: adapters, and vectors that are kept."""

import itertools
import threading
import types
from concurrent import futures

import numpy as np
import pytest
from tensorflow import keras

from tests.cases import cases
from tests.foreign_encoders import stand_in
from tests.small_world import SmallWorld
from tf_smoothclir.foreign_encoders import endpoint as endpoint_module
from tf_smoothclir.foreign_encoders.endpoint import EndpointEncoder
from tf_smoothclir.foreign_encoders.opening import EncodedSet, encoder_of
from tf_smoothclir.foreign_encoders.python_encoders import PythonEncoder
from tf_smoothclir.foreign_encoders.vector_store import VectorFile, VectorStore
from tf_smoothclir.settings.data import EncoderSettings
from tf_smoothclir.utils.errors import InputError

TEXTS = ["aab", "", "bcd", "αβγ", "a" * 5000]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    pauses = []
    # `time.sleep` itself would be another one for the threads that other tests have left, too.
    monkeypatch.setattr(endpoint_module, "time", types.SimpleNamespace(sleep=pauses.append))
    return pauses


def unit(vectors):
    lengths = np.sqrt((vectors**2).sum(axis=1, keepdims=True))
    return vectors / np.where(lengths == 0, 1, lengths)


def counting(calls):
    """The stand-in, which notes the texts of each call."""

    def encode(texts):
        calls.append(list(texts))
        return stand_in.encode(texts)

    return encode


def test_an_endpoint_is_asked_in_batches_and_again_where_that_may_help(no_pauses, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    with stand_in.endpoint(refusals=[503, 429]) as (asked, url):
        encoder = EndpointEncoder(url + "/", "small", query_prefix="query: ", texts_per_request=2)
        vectors = encoder.encode("query", TEXTS)
    np.testing.assert_allclose(vectors, stand_in.encode(["query: " + text for text in TEXTS]))
    assert [len(body["input"]) for *_, body in asked] == [2, 2, 2, 2, 1]  # the first thrice
    assert {(path, key) for path, key, _ in asked} == {("/v1/embeddings", "Bearer secret")}
    assert {body["model"] for *_, body in asked} == {"small"}
    assert no_pauses == [0.5, 1.0]


@cases(
    "refusals, answer, message",
    ([401], None, "401 Unauthorized"),
    ([500] * 9, None, "500 Internal Server Error"),
    ([], {"data": []}, "does not hold 5 vectors"),
    ([], {"data": [{"index": n, "embedding": [1.0] * n} for n in range(5)]}, "same length"),
    ([], {"data": [{"index": n, "embedding": [float("nan")]} for n in range(5)]}, "5 vectors"),
    ([], ["no"], "5 vectors"),
)
def test_an_endpoint_that_answers_something_else_is_an_error(refusals, answer, message):
    with stand_in.endpoint(refusals, answer) as (asked, url):
        with pytest.raises(InputError, match=message):
            EndpointEncoder(url, "small").encode("document", TEXTS)
        assert len(asked) == (6 if len(refusals) > 6 else 1)


def test_an_endpoint_that_is_not_there_is_an_error():
    with pytest.raises(InputError, match="does not answer"):
        EndpointEncoder("http://127.0.0.1:9/v1", "small").encode("document", ["a"])


@cases(
    "model",
    stand_in.encode,
    types.SimpleNamespace(encode=stand_in.encode),
    types.SimpleNamespace(query=stand_in.encode, passage=stand_in.encode),
    types.SimpleNamespace(encode_query=stand_in.encode, encode_document=stand_in.encode),
    types.SimpleNamespace(
        embed_query=lambda text: stand_in.encode([text])[0], embed_documents=stand_in.encode
    ),
)
def test_functions_and_objects_of_libraries_encode(model):
    encoder = PythonEncoder(model, query_prefix="q ", document_prefix="d ")
    np.testing.assert_array_equal(encoder.encode("query", ["ab"]), stand_in.encode(["q ab"]))
    np.testing.assert_array_equal(encoder.encode("document", ["ab"]), stand_in.encode(["d ab"]))


def test_a_keras_model_of_strings_encodes():
    """Hazard: Keras takes a list of two texts for two inputs."""
    words = ["a", "b", "c"]
    inputs = keras.Input((), dtype="string")
    ids = keras.layers.TextVectorization(vocabulary=words, output_sequence_length=2)(inputs)
    outputs = keras.layers.GlobalAveragePooling1D()(keras.layers.Embedding(5, 3)(ids))
    model = keras.Model(inputs, outputs)
    encoder, (table,) = PythonEncoder(model, name="k", query_prefix="a "), model.get_weights()
    found = encoder.encode("document", ["b c", "c a"]), encoder.encode("query", ["b", "c"])
    a, b, c = table[2:]
    np.testing.assert_allclose(found[0], [(b + c) / 2, (c + a) / 2], rtol=1e-5)
    np.testing.assert_allclose(found[1], [(a + b) / 2, (a + c) / 2], rtol=1e-5)


@cases("made", np.zeros(3), np.zeros((2, 3)), np.zeros((3, 0)), np.array([["a"]] * 3))
def test_a_function_that_returns_something_else_is_an_error(made):
    with pytest.raises(InputError, match="one vector of numbers for each text"):
        PythonEncoder(lambda texts: made).encode("query", ["a", "b", "c"])


def test_each_text_is_encoded_once_whatever_is_killed(tmp_path):
    calls = []
    encoder = PythonEncoder(counting(calls), digest="counting")
    assert VectorStore(encoder, tmp_path).vectors("query", []).shape == (0, 0)  # none is known
    for _ in range(2):
        vectors = VectorStore(encoder, tmp_path).vectors("document", [*TEXTS, "aab"])
    np.testing.assert_allclose(vectors, unit(stand_in.encode([*TEXTS, "aab"])), rtol=0, atol=1e-6)
    assert sorted(itertools.chain(*calls)) == sorted(TEXTS)
    VectorStore(encoder, tmp_path).vectors("query", ["aab"])  # of another role
    assert calls[-1] == ["aab"]
    # Hazard: a process is killed between the vector and its key, or within either.
    (directory,) = (tmp_path / "encoders").iterdir()
    keys = (directory / "document.keys").read_bytes()
    (directory / "document.keys").write_bytes(keys[: 3 * 16 + 5])
    calls.clear()
    found = VectorStore(encoder, tmp_path).vectors("document", TEXTS)
    np.testing.assert_array_equal(found, vectors[:5])
    assert len([*itertools.chain(*calls)]) == 2


def test_who_encodes_by_the_same_store_waits_for_the_other(tmp_path):
    def encode(texts):
        entered.set()
        assert may_go_on.wait(60)
        return stand_in.encode(texts)

    def vectors():
        return VectorStore(PythonEncoder(encode, digest="1"), tmp_path).vectors("query", TEXTS)

    entered, may_go_on = threading.Event(), threading.Event()
    with futures.ThreadPoolExecutor() as executor:
        first = executor.submit(vectors)
        assert entered.wait(60)
        second = executor.submit(vectors)
        with pytest.raises(futures.TimeoutError):
            second.result(timeout=0.2)
        may_go_on.set()
        np.testing.assert_array_equal(first.result(), second.result())


@cases("others, warned", (-1.0, True), (1.001, False))
def test_a_function_that_changed_under_its_name_encodes_again(tmp_path, caplog, others, warned):
    """Hazard: `first.encode` and `second.encode` of one class have the same name."""

    def made(factor):
        def encode(texts):
            asked.append(len(texts))
            return [[len(text), factor * text.count("a") + 1] for text in texts]

        return PythonEncoder(encode)

    asked, texts = [], ["a" * length for length in range(1, 31)]
    first = VectorStore(made(1.0), tmp_path).vectors("query", texts)
    second = VectorStore(made(others), tmp_path)
    given = second.vectors("query", texts)
    of_others = VectorStore(made(others), tmp_path / "new")
    expected = of_others.vectors("query", texts) if warned else first
    np.testing.assert_array_equal(given, expected)
    assert ("All queries are encoded again" in caplog.text) == warned
    assert asked[:2] == [30, 8]  # a few texts tell
    before = len(asked)
    second.vectors("query", texts)
    assert len(asked) == before


def test_other_prefixes_and_models_have_vectors_of_their_own():
    encoders = [
        PythonEncoder(stand_in.encode, query_prefix=prefix, digest=digest)
        for prefix in ("", "query: ") for digest in ("", "1")
    ]  # fmt: skip
    assert len({encoder.digest for encoder in encoders}) == 4


def test_a_file_has_vectors_by_id(tmp_path):
    path = tmp_path / "vectors.npz"
    arrays = {"query_ids": ["q1", "q2"], "queries": stand_in.encode(["ab", "c"])}
    arrays |= {"document_ids": ["d1"], "documents": stand_in.encode(["abc"])}
    np.savez(path, **arrays)
    encoder = encoder_of(EncoderSettings(encoder=str(path)))
    expected = unit(stand_in.encode(["c", "ab"]))
    np.testing.assert_allclose(encoder.vectors("query", ["q2", "q1"]), expected, atol=1e-6)
    with pytest.raises(InputError, match="no vector for 1 of 2 documents, such as 'd2'"):
        encoder.vectors("document", ["d1", "d2"])
    of_two = {"query_ids": ["q1"]}, {"queries": [["a"] * stand_in.DIM] * 2}
    nan = {"queries": np.full((2, stand_in.DIM), np.nan)}
    for wrong, message in zip((*of_two, nan), ("do not fit", "queries <U1", "2 of 2 vectors hold")):
        np.savez(path, **{**arrays, **wrong})
        with pytest.raises(InputError, match=message):
            VectorFile(path)


@cases(
    "vector, message",
    (np.ones(stand_in.DIM + 1), f"{stand_in.DIM + 1} numbers, those of documents {stand_in.DIM}"),
    *((np.full(stand_in.DIM, x), "8 of 8 vectors hold NaN") for x in (np.nan, np.inf, 1e30, 1e99)),
)
def test_vectors_that_nothing_can_be_compared_with_are_an_error(vector, message, tmp_path):
    model = types.SimpleNamespace(
        encode_queries=lambda texts: [vector] * len(texts), encode_documents=stand_in.encode
    )
    with pytest.raises(InputError, match=f"^encoder SimpleNamespace: .*{message}"):
        EncodedSet.of(PythonEncoder(model), SmallWorld(), tmp_path)


@cases(
    "name, message",
    ("e5", "names no encoder"),
    ("tests.foreign_encoders.stand_in:nothing", "cannot be imported"),
    ("tests.foreign_encoders.stand_in:DIM", "neither a function"),
)
def test_what_is_no_encoder_is_an_error(name, message):
    with pytest.raises(InputError, match=message):
        encoder_of(EncoderSettings(encoder=name))
