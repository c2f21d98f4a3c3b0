"""A head: hubs taken away, a matrix learned where that helps, left out where the cosine is best."""

import numpy as np
import pytest

from tests.small_world import SmallWorld
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.foreign_encoders import head_learning
from tf_smoothclir.foreign_encoders.head import Head
from tf_smoothclir.foreign_encoders.head_learning import learn_head
from tf_smoothclir.foreign_encoders.opening import EncodedSet
from tf_smoothclir.foreign_encoders.protocol import unit_vectors
from tf_smoothclir.lexical.validation import Validation
from tf_smoothclir.losses.listwise import OrdinalSoftmaxLoss
from tf_smoothclir.losses.ordinal import SmoothOrdinalSearchLoss

DIM = 8


def a_set(queries):
    """Each query has a mate among twice as many documents; half are for training."""
    splits = ["train", "validation"]
    return RetrievalSet.load(
        SmallWorld(
            queries=[(f"q{n}", f"query {n}") for n in range(queries)],
            documents=[(f"d{n}", f"document {n}") for n in range(2 * queries)],
            judgments=[(f"q{n}", f"d{n}", 1) for n in range(queries)],
            splits={f"q{n}": splits[n % 2] for n in range(queries)},
        ),
        num_grades=2,
    )


def encoded(queries, noise):
    """Queries are their mates, but for noise in some of their numbers."""
    random = np.random.default_rng(13)
    documents = random.normal(size=(2 * queries, DIM))
    mates = documents[:queries].copy()
    mates[:, : DIM // 2] += noise * random.normal(size=(queries, DIM // 2))
    return EncodedSet("e", *map(unit_vectors, (mates, documents)))


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
    with_hubs = EncodedSet("e", unit_vectors(vectors.queries + common), documents)
    head = Head.of(with_hubs.queries[::2], documents, 13)
    right, by_head = (
        one.retriever(retrieval_set).scores(np.arange(queries)).argmax(axis=1) == np.arange(queries)
        for one in (with_hubs, head.over(with_hubs))
    )
    assert np.mean(by_head) > np.mean(right) + 0.2
    chosen, _ = learn_head(with_hubs, retrieval_set, SmoothOrdinalSearchLoss((0.45,)), 13)
    assert chosen is not None


@pytest.mark.parametrize("loss", [SmoothOrdinalSearchLoss((0.45,)), OrdinalSoftmaxLoss()])
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


@pytest.mark.parametrize(("queries", "noise"), [(400, 0), (198, 1)])
def test_a_head_is_left_out_where_the_cosine_is_as_good_or_nothing_tells(queries, noise):
    found = learn_head(
        encoded(queries, noise), a_set(queries), SmoothOrdinalSearchLoss((0.45,)), 13
    )
    assert found == (None, "")
