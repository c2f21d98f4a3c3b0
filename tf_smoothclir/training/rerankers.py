"""The re-ranker of a run: learned once, kept in its directory, loaded from then on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from tf_smoothclir.data.tokenized_set import TokenizedSet
from tf_smoothclir.interaction.reranker import Reranker
from tf_smoothclir.interaction.reranker_learning import learn_reranker
from tf_smoothclir.interaction.word_codes import WordCodes
from tf_smoothclir.protocols.scorer import Retriever
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.training.run_directory import RunDirectory


class Vectors(Protocol):
    """Word vectors of both languages, `[words, dim]`, in one space."""

    queries: np.ndarray
    documents: np.ndarray


def learned_reranker(
    settings: RunSettings,
    run: RunDirectory,
    tokenized_set: TokenizedSet,
    first_stage: Retriever,
    word_vectors: Callable[[], Vectors],
) -> Reranker:
    """Learns the re-ranker of a run, or loads the one that is there."""
    if not run.reranker.is_dir():
        vectors = word_vectors()
        reranker = learn_reranker(
            settings.retrieval.reranker,
            WordCodes.of(vectors.queries, vectors.documents),
            tokenized_set,
            first_stage,
            depth=settings.retrieval.rerank_depth,
            seed=settings.training.seed,
        )
        with run.writing(run.reranker) as path:
            reranker.save(path)
    return Reranker.load(run.reranker)
