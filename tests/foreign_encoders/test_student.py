"""A student: it learns how an encoder reads queries, from whatever the encoder is asked."""

import numpy as np
import pytest

import tf_smoothclir as sc
from tests.foreign_encoders import stand_in
from tf_smoothclir.encoder.tokenizer import tokens_of
from tf_smoothclir.encoder.word_evidence import ngram_buckets
from tf_smoothclir.foreign_encoders import student_learning
from tf_smoothclir.foreign_encoders.head import Head
from tf_smoothclir.foreign_encoders.protocol import unit_vectors
from tf_smoothclir.foreign_encoders.student import NGRAMS
from tf_smoothclir.foreign_encoders.student_learning import learn_student, pieces_of
from tf_smoothclir.publishing.exported_head import ExportedHead
from tf_smoothclir.settings.data import DataSettings, EncoderSettings
from tf_smoothclir.settings.presets import preset_settings
from tf_smoothclir.training.run_evaluation import evaluate_encoder
from tf_smoothclir.utils.errors import InputError

DIM = 70  # more than are solved at once
WORDS = [f"{begin}{end}" for begin in "bcdfgklmnp" for end in ("ador", "emil", "ixun", "ota")]


def vectors_of_words():
    random = np.random.default_rng(7)
    return dict(zip(WORDS, random.normal(size=(len(WORDS), DIM))))


OF_WORDS = vectors_of_words()


def encode(texts):
    """What all texts have in common, and the sum of the vectors of their words."""
    sums = [sum((OF_WORDS[word] for word in text.split()), np.zeros(DIM)) for text in texts]
    return unit_vectors(5 + np.array(sums))


def some_queries(number, seed):
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, 4, replace=False)) for _ in range(number)]


def similarity(student, texts, centre):
    """The mean cosine of its vectors and those of the encoder without what all have in common."""
    centred = unit_vectors(encode(texts) - centre)
    return np.mean(np.sum(student.queries(texts) * centred, axis=1))


def test_it_reads_queries_that_it_has_never_seen_as_the_encoder_does():
    queries, asked = some_queries(30, seed=1), []

    def encoding(texts):
        asked.extend(texts)
        return encode(texts)

    student = learn_student(encoding, queries, seed=13)
    assert {*WORDS, *queries} <= {*asked}  # each word alone too
    centre = encode(queries).mean(axis=0)
    assert similarity(student, some_queries(50, seed=2), centre) > 0.9
    again = learn_student(encode, queries, seed=13)
    np.testing.assert_array_equal(student.queries(queries), again.queries(queries))


def test_words_that_it_does_not_know_are_read_by_their_characters():
    student = learn_student(encode, some_queries(30, seed=1), seed=13)
    known, unknown = student.queries(["bador", "badors"])
    assert known @ unknown > 0.5
    assert not student.queries(["", " "]).any()


def test_its_tables_are_those_of_ridge_regression(monkeypatch):
    """Oracle: the normal equations, solved at once."""
    monkeypatch.setattr(student_learning, "_SPANS", 0)
    queries = ["bador cemil cemil", "cemil dota", "fixun"]
    texts = [*queries, "cemil", "bador", "dota"]  # and "fixun", which is a query
    words = sorted({word for text in texts for word in tokens_of(text)})
    features = np.zeros((len(texts), len(words) + NGRAMS.buckets))
    for row, text in enumerate(texts):
        counts = [text.split().count(word) for word in words]
        having = [sum(word in other.split() for other in texts) for word in words]
        weights = counts * np.log(1 + len(texts) / np.array(having))
        weights /= np.linalg.norm(weights)
        features[row, : len(words)] = weights
        for word, weight in zip(words, weights):
            buckets, (number,) = ngram_buckets([word], NGRAMS.buckets, 2, 5)
            np.add.at(features[row, len(words) :], buckets, weight / np.sqrt(number))
    targets = encode(texts) - encode(queries).mean(axis=0)
    counted = np.diag([1, 1, 1, 0.4, 0.4, 0.4])
    # (XᵀAX + λI)⁻¹XᵀA = Xᵀ(XXᵀ + λA⁻¹)⁻¹, of six rows in place of 32,772.
    kernel = features @ features.T
    expected = kernel @ np.linalg.solve(kernel + 0.1 * np.linalg.inv(counted), targets)
    found = learn_student(encode, queries, seed=13).queries(texts)
    np.testing.assert_allclose(found, unit_vectors(expected), atol=2e-3)  # tanh, and float32


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("What is a blue-green alga?", {"What", "is", "a", "blue-green", "alga?"}),
        ("全文検索", {"全", "文", "検", "索"}),
        ("- !", set()),
        ("", set()),
    ],
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


@pytest.mark.parametrize("has_head", [True, False])
def test_a_model_server_reads_as_it_does(has_head):
    student = learn_student(stand_in.encode, ["red apple", "green apples", "Ärger 本日"], seed=1)
    head = None
    if has_head:
        vectors = unit_vectors(np.random.default_rng(5).random((40, stand_in.DIM)))
        head = Head.of(vectors, vectors, seed=5)
    part = ExportedHead(head, student)
    texts = ["red apples", "apple " * 600, "äpfel 日本", "", "🍎", "\0"]
    expected = student.queries(texts)
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
        preset_settings("lexical", {"distill": True})
    with pytest.raises(InputError, match=r"--distill: there are no queries .*need no judgments"):
        learn_student(encode, [], seed=13)
    with pytest.raises(InputError, match="--distill: a student is learned in training"):
        evaluate_encoder(EncoderSettings("x.npz", distill=True), DataSettings(), ["test"])
    ids, vectors = np.arange(30).astype(str), np.ones((30, 4))
    arrays = {"query_ids": ids, "document_ids": ids, "queries": vectors, "documents": vectors}
    np.savez(tmp_path / "vectors.npz", **arrays)
    given = {"encoder": str(tmp_path / "vectors.npz"), "distill": True, "preset": "lexical"}
    with pytest.raises(
        InputError, match=r"can encode no others\. Train with an encoder that reads"
    ):
        sc.train(tiny_dir, output_dir=tmp_path / "run", **given)
    given = "--encoder=tests.foreign_encoders.stand_in:encode", "--distill"
    log = f"--data_dir={tiny_dir}", f"--output_dir={tmp_path}/taught"
    done = commands.run("trainers.teach", *given, *log)
    assert "--distill: no model is trained. Add --run_dir=RUN" in done.stderr
