"""A head over vectors; a student that learns how an encoder reads queries."""

import numpy as np
import pytest

import tf_smoothclir as sc
from tests.cases import cases
from tests.foreign_encoders import stand_in
from tests.small_world import numbered_set
from tf_smoothclir import InputError, SmoothOrdinalSearchLoss
from tf_smoothclir.encoder import tokenizer, word_evidence
from tf_smoothclir.foreign_encoders import head_learning, opening, student_learning
from tf_smoothclir.foreign_encoders.head import Head
from tf_smoothclir.foreign_encoders.head_learning import learn_head
from tf_smoothclir.foreign_encoders.protocol import unit_vectors
from tf_smoothclir.foreign_encoders.student import NGRAMS
from tf_smoothclir.foreign_encoders.student_learning import learn_student, pieces_of
from tf_smoothclir.lexical.validation import Validation
from tf_smoothclir.losses.listwise import OrdinalSoftmaxLoss
from tf_smoothclir.publishing.exported_head import ExportedHead
from tf_smoothclir.settings import data, presets
from tf_smoothclir.training.run_evaluation import evaluate_encoder

DIM = 8
WORD_DIM = 70  # more than are solved at once
WORDS = [f"{begin}{end}" for begin in "bcdfgklmnp" for end in ("ador", "emil", "ixun", "ota")]
OF_WORDS = dict(zip(WORDS, np.random.default_rng(7).normal(size=(len(WORDS), WORD_DIM))))


def a_set(queries):
    """Each query has a mate among twice as many documents; half are for training."""
    mates = [(each, each, 1) for each in range(queries)]
    return numbered_set(queries, 2 * queries, mates, splits=["train", "validation"], grades=2)


def encoded(queries, noise):
    """Queries are their mates, but for noise in some of their numbers."""
    random = np.random.default_rng(13)
    documents = random.normal(size=(2 * queries, DIM))
    mates = documents[:queries].copy()
    mates[:, : DIM // 2] += noise * random.normal(size=(queries, DIM // 2))
    return opening.EncodedSet("e", *map(unit_vectors, (mates, documents)))


def test_a_score_is_that_of_csls_over_centred_vectors():
    random = np.random.default_rng(13)
    queries, documents = (unit_vectors(random.normal(1, 1, size=(n, DIM))) for n in (40, 9))
    head = Head.of(queries, documents, seed=13)

    def normalised(vector, vectors):
        f = 10 * (vector - vectors.mean(axis=0))
        return f / (np.linalg.norm(f) + 1)

    expected = np.zeros((40, 9))
    for column, document in enumerate(documents):
        scores = [normalised(q, queries) @ normalised(document, documents) for q in queries]
        expected[:, column] = np.array(scores) - np.mean(sorted(scores)[-5:]) / 2
    found = head.vectors("query", queries) @ head.vectors("document", documents).T
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_documents_are_not_first_for_having_much_of_what_all_texts_have_in_common():
    queries, retrieval_set, vectors = 240, a_set(240), encoded(240, noise=0.5)
    common = np.eye(1, DIM)
    shares = np.random.default_rng(1).random((2 * queries, 1))
    documents = unit_vectors(vectors.documents + shares * common)
    with_hubs = opening.EncodedSet("e", unit_vectors(vectors.queries + common), documents)
    head = Head.of(with_hubs.queries[::2], documents, 13)
    right, by_head = (
        one.retriever(retrieval_set).scores(np.arange(queries)).argmax(axis=1) == np.arange(queries)
        for one in (with_hubs, head.over(with_hubs))
    )
    assert np.mean(by_head) > np.mean(right) + 0.2
    chosen, _ = learn_head(with_hubs, retrieval_set, SmoothOrdinalSearchLoss((0.45,)), 13)
    assert chosen is not None


@cases("loss", SmoothOrdinalSearchLoss((0.45,)), OrdinalSoftmaxLoss())
def test_a_head_that_wins_is_kept(loss, monkeypatch):
    monkeypatch.setattr(head_learning, "_LOOKS", 16)
    retrieval_set, vectors = a_set(400), encoded(400, noise=2)
    head, note = learn_head(vectors, retrieval_set, loss, 13)
    again, _ = learn_head(vectors, retrieval_set, loss, 13)
    validation = Validation(retrieval_set)
    without, by_head, by_again = (
        validation(one.retriever(retrieval_set).scores)
        for one in (vectors, head.over(vectors), again.over(vectors))
    )
    assert by_head > without + 0.08
    assert by_again == by_head
    assert note == f"{by_head:.4f} on validation, {without:.4f} without"


@cases("queries, noise", (400, 0), (198, 1))
def test_a_head_is_left_out_where_the_cosine_is_as_good_or_nothing_tells(queries, noise):
    loss = SmoothOrdinalSearchLoss((0.45,))
    assert learn_head(encoded(queries, noise), a_set(queries), loss, 13) == (None, "")


def encode(texts):
    """What all texts have in common, and the sum of the vectors of their words."""
    sums = [sum((OF_WORDS[word] for word in text.split()), np.zeros(WORD_DIM)) for text in texts]
    return unit_vectors(5 + np.array(sums))


def some_queries(number, seed):
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, 4, replace=False)) for _ in range(number)]


def similarity(student, texts, centre):
    """The mean cosine of its vectors and those of the encoder without what all have in common."""
    centred = unit_vectors(encode(texts) - centre)
    return np.mean(np.sum(student.encoder.encode(texts) * centred, axis=1))


def test_it_reads_queries_that_it_has_never_seen_as_the_encoder_does():
    queries, asked = some_queries(30, seed=1), []

    def encoding(texts):
        asked.extend(texts)
        return encode(texts)

    student = learn_student(encoding, queries, seed=13)
    assert {*WORDS, *queries} <= {*asked}  # each word alone too
    assert similarity(student, some_queries(50, seed=2), encode(queries).mean(axis=0)) > 0.9
    again = learn_student(encode, queries, seed=13)
    np.testing.assert_array_equal(student.encoder.encode(queries), again.encoder.encode(queries))


def test_words_that_it_does_not_know_are_read_by_their_characters():
    student = learn_student(encode, some_queries(30, seed=1), seed=13)
    known, unknown = student.encoder.encode(["bador", "badors"])
    assert known @ unknown > 0.5
    assert not student.encoder.encode(["", " "]).any()


def test_its_tables_are_those_of_ridge_regression(monkeypatch):
    """Oracle: the normal equations, solved at once."""
    monkeypatch.setattr(student_learning, "_SPANS", 0)
    queries = ["bador cemil cemil", "cemil dota", "fixun"]
    texts = [*queries, "cemil", "bador", "dota"]  # and "fixun", which is a query
    words = sorted({word for text in texts for word in tokenizer.tokens_of(text)})
    features = np.zeros((len(texts), len(words) + NGRAMS.buckets))
    for row, text in enumerate(texts):
        counts = [text.split().count(word) for word in words]
        having = [sum(word in other.split() for other in texts) for word in words]
        weights = counts * np.log(1 + len(texts) / np.array(having))
        weights /= np.linalg.norm(weights)
        features[row, : len(words)] = weights
        for word, weight in zip(words, weights):
            buckets, (number,) = word_evidence.ngram_buckets([word], NGRAMS.buckets, 2, 5)
            np.add.at(features[row, len(words) :], buckets, weight / np.sqrt(number))
    targets = encode(texts) - encode(queries).mean(axis=0)
    counted = np.diag([1, 1, 1, 0.4, 0.4, 0.4])
    # (XᵀAX + λI)⁻¹XᵀA = Xᵀ(XXᵀ + λA⁻¹)⁻¹, of six rows in place of 32,772.
    kernel = features @ features.T
    expected = kernel @ np.linalg.solve(kernel + 0.1 * np.linalg.inv(counted), targets)
    found = learn_student(encode, queries, seed=13).encoder.encode(texts)
    np.testing.assert_allclose(found, unit_vectors(expected), atol=2e-3)  # tanh, and float32


@cases(
    "query, words",
    ("What is a blue-green alga?", {"What", "is", "a", "blue-green", "alga?"}),
    ("全文検索", {"全", "文", "検", "索"}),
    ("- !", set()),
    ("", set()),
)
def test_an_encoder_is_asked_for_words_and_words_in_a_row(query, words):
    pieces = pieces_of([query], seed=1)
    assert {piece for piece in pieces if len(piece.split()) == 1 and piece in words} == words
    assert all(piece in query and piece != query for piece in pieces)
    assert len(pieces) > len(words) or not words
    assert pieces == pieces_of([query], seed=1)


def test_an_encoder_is_not_asked_without_end(monkeypatch):
    monkeypatch.setattr(student_learning, "_MOST_PIECES", 5)
    pieces = pieces_of(["a b c", "a b d", "a e"], seed=1)
    assert len(pieces) == 5
    assert pieces[:2] == ["a", "b"]  # the most frequent


@cases("has_head", True, False)
def test_a_model_server_reads_as_it_does(has_head):
    student = learn_student(stand_in.encode, ["red apple", "green apples", "Ärger 本日"], seed=1)
    head = None
    if has_head:
        vectors = unit_vectors(np.random.default_rng(5).random((40, stand_in.DIM)))
        head = Head.of(vectors, vectors, seed=5)
    part = ExportedHead(head, student)
    texts = ["red apples", "apple " * 600, "äpfel 日本", "", "🍎", "\0"]
    expected = student.encoder.encode(texts)
    if has_head:
        expected = head.vectors("query", expected)
    found = part.signatures["query"](text=np.array(texts, object))["vector"]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    (documents,) = part.signatures["document"](vector=3 * expected[:1, : stand_in.DIM]).values()
    by_head = unit_vectors(expected[:1, : stand_in.DIM])
    expected = head.vectors("document", by_head) if has_head else by_head
    np.testing.assert_allclose(documents, expected, atol=1e-5)


def test_a_student_needs_an_encoder_that_reads_texts_and_a_training(tmp_path, commands, tiny_dir):
    with pytest.raises(InputError, match=r"--distill .*there is no encoder to learn from"):
        presets.preset_settings("lexical", {"distill": True})
    with pytest.raises(InputError, match=r"--distill: there are no queries .*need no judgments"):
        learn_student(encode, [], seed=13)
    with pytest.raises(InputError, match="--distill: a student is learned in training"):
        evaluate_encoder(data.EncoderSettings("x.npz", distill=True), data.DataSettings(), ["test"])
    ids, vectors = np.arange(30).astype(str), np.ones((30, 4))
    arrays = {"query_ids": ids, "document_ids": ids, "queries": vectors, "documents": vectors}
    np.savez(tmp_path / "vectors.npz", **arrays)
    given = {"encoder": str(tmp_path / "vectors.npz"), "distill": True, "preset": "lexical"}
    with pytest.raises(InputError, match=r"can encode no others\. Train with an encoder that rea"):
        sc.train(tiny_dir, output_dir=tmp_path / "run", **given)
    given = "--encoder=tests.foreign_encoders.stand_in:encode", "--distill"
    log = f"--data_dir={tiny_dir}", f"--output_dir={tmp_path}/taught"
    done = commands.run("trainers.teach", *given, *log)
    assert "--distill: no model is trained. Add --run_dir=RUN" in done.stderr
