"""Runs that begin with vectors made of the judged pairs."""

from __future__ import annotations

import numpy as np
import pytest

from tests.training.test_trainer import begin, start, train_until_killed, trained
from tf_smoothclir.data.prepared import ROLES
from tf_smoothclir.data.source import SPLITS
from tf_smoothclir.evaluation.encoding import Encoder


def mean_rank_of_mates(settings, path):
    """Where training queries rank their document of grade 2 before any training; best is 1."""
    prepared, trainer = begin(settings, path)
    encoded, judged = Encoder(trainer.model, prepared)(), prepared.retrieval_set
    train = judged.splits == SPLITS.index("train")
    pairs = train[judged.query_rows] & (judged.grades == 2)
    queries, mates = judged.query_rows[pairs], judged.document_rows[pairs]
    scores = encoded.queries[queries] @ encoded.documents.T
    return (scores > scores[np.arange(len(queries)), mates][:, None]).sum(axis=1).mean() + 1


@pytest.mark.parametrize("more", [{}, {"shared_vocabulary": True, "ngram_buckets": 50}])
def test_training_begins_with_translations_near_each_other(more, tiny, tmp_path):
    random = mean_rank_of_mates(tiny(dim=64, **more), tmp_path / "random")
    bilingual = mean_rank_of_mates(
        tiny(dim=64, initial_vectors="bilingual", **more), tmp_path / "bilingual"
    )
    assert bilingual < 0.6 * random


@pytest.mark.parametrize("role", ROLES)
def test_words_without_a_pair_begin_as_without_the_option(role, tiny, tmp_path):
    _, random = start(tiny(), tmp_path / "random")
    _, bilingual = start(tiny(initial_vectors="bilingual"), tmp_path / "bilingual")
    tables = [getattr(m, f"{role}_tower").embeddings.numpy() for m in (random, bilingual)]
    same = (tables[0] == tables[1]).all(axis=1)
    assert same[:2].all()  # padding and unknown
    assert not same[2:].all()


def test_ngrams_begin_with_zeros(tiny, tmp_path):
    _, model = start(tiny(initial_vectors="bilingual", ngram_buckets=50), tmp_path / "run")
    for role in ROLES:
        assert not getattr(model, f"{role}_tower").ngram_embeddings.numpy().any()


def test_a_killed_run_goes_on_and_does_not_begin_anew(tiny, tmp_path):
    settings = tiny(initial_vectors="bilingual")
    _, expected = trained(settings, tmp_path / "whole")
    train_until_killed(start(settings, tmp_path / "killed")[0], 11)
    _, found = trained(settings, tmp_path / "killed")
    for old, new in zip(expected, found):
        np.testing.assert_array_equal(old, new)
