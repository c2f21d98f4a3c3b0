"""A head: learned where the plain cosine is worse, else left out."""

import numpy as np
import pytest

from tests.small_world import SmallWorld
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.foreign_encoders import head as head_module
from tf_smoothclir.foreign_encoders.head import learn_head
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


@pytest.mark.parametrize("loss", [SmoothOrdinalSearchLoss((0.45,)), OrdinalSoftmaxLoss()])
def test_a_head_that_wins_is_kept(loss, monkeypatch):
    monkeypatch.setattr(head_module, "_LOOKS", 16)
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
    assert note.startswith(f"{by_head:.4f} on validation, {without:.4f} without")


@pytest.mark.parametrize(("queries", "noise"), [(400, 0), (198, 1)])
def test_a_head_is_left_out_where_the_cosine_is_as_good_or_nothing_tells(queries, noise):
    found = learn_head(
        encoded(queries, noise), a_set(queries), SmoothOrdinalSearchLoss((0.45,)), 13
    )
    assert found == (None, "")
