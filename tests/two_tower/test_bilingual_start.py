"""Runs that begin with vectors made of the judged pairs."""

import numpy as np
import pytest

from tests.training.test_trainer import begin, start, weights
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.two_tower import builder
from tf_smoothclir.two_tower.scorer import SetEncoder


def mean_rank_of_mates(settings, path):
    """Of the document of grade 2, before any training; best is 1."""
    tokenized_set, trainer = begin(settings, path)
    encoded, judged = SetEncoder(trainer.task.model, tokenized_set)(), tokenized_set.retrieval_set
    train = judged.splits == SPLITS.index("train")
    pairs = train[judged.query_rows] & (judged.grades == 2)
    queries, mates = judged.query_rows[pairs], judged.document_rows[pairs]
    scores = encoded.queries[queries] @ encoded.documents.T
    return (scores > scores[np.arange(len(queries)), mates][:, None]).sum(axis=1).mean() + 1


@pytest.mark.parametrize("more", [{}, {"shared_vocabulary": True, "ngram_buckets": 50}])
def test_translations_start_near_each_other(more, tiny, tmp_path):
    random, bilingual = (
        mean_rank_of_mates(tiny(dim=64, initial_vectors=kind, **more), tmp_path / kind)
        for kind in ("random", "bilingual")
    )
    assert bilingual < 0.6 * random


def test_vectors_of_words_of_pairs_start_and_those_of_cnn_as_short_as_random_ones(tiny, tmp_path):
    models = [
        start(tiny(initial_vectors="bilingual", tower=tower), tmp_path / tower)[1]
        for tower in ("average_pooling", "cnn", "lstm")
    ]
    for role in ROLES:
        tables = [getattr(model, f"{role}_tower").embeddings.numpy() for model in models]
        assert not tables[0][:2].any()  # padding and unknown
        assert tables[0][2:].any()
        np.testing.assert_allclose(tables[1], 0.1 * tables[0], rtol=1e-6)
        np.testing.assert_array_equal(tables[2], tables[0])


def test_ngrams_start_near_their_words(tiny, tmp_path, monkeypatch):
    settings = tiny(initial_vectors="bilingual", shared_vocabulary=True, ngram_buckets=10_000)
    tokenized_set, trainer = begin(settings, tmp_path / "run")
    tower, ngrams = trainer.task.model.query_tower, tokenized_set.ngrams("query")
    # Of one word alone, an n-gram is that word, but shorter.
    buckets = ngrams.values[: ngrams.offsets[tower.vocabulary_size]]
    word = next(w for w in range(2, tower.vocabulary_size) if tower.embeddings[w].numpy().any())
    alone = [b for b in ngrams[word] if np.count_nonzero(buckets == b) == 1]
    assert alone
    for bucket in alone:
        np.testing.assert_allclose(
            tower.ngram_embeddings[bucket], 0.3 * tower.embeddings[word], rtol=1e-5, atol=1e-6
        )
    monkeypatch.setattr(builder, "_DIMS_AT_ONCE", 3)  # the last piece is shorter
    _, pieced = start(settings, tmp_path / "pieces")
    for whole, of_pieces in zip(weights(trainer.task.model), weights(pieced)):
        np.testing.assert_allclose(of_pieces, whole, rtol=1e-6)
