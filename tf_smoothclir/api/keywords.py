"""The keywords of `train` that are settings, with their types: for editors and type checkers.

The settings themselves, with defaults, help and range, are in `settings/`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Union

from tf_smoothclir.api.given import Judgments, Texts

PathText = Union[str, "os.PathLike[str]"]


class SettingKeywords(TypedDict, total=False):
    """All settings of a run, by the names of their flags."""

    # data
    data_dir: PathText
    tfds_name: str
    tfds_data_dir: PathText
    ir_dataset: str
    query_language: str
    document_language: str
    max_queries: int
    max_train_queries: int
    related_per_query: float
    max_skipped: float
    toy_entities: int
    split_seed: int
    cache_dir: PathText
    # text
    max_query_tokens: int
    max_document_tokens: int
    vocabulary_size: int
    shared_vocabulary: bool
    query_vocabulary: PathText
    document_vocabulary: PathText
    min_count: int
    ngram_buckets: int
    ngram_rows_per_word: int
    min_ngram: int
    max_ngram: int
    # model
    tower: str
    published_towers: bool
    token_weights: str
    position_weights: str
    dim: int
    matryoshka_dims: Sequence[int]
    epsilon: float
    loss: Any
    temperature: float
    lower_grade_weight: float
    thresholds: Sequence[float]
    cut_points: Sequence[float]
    initial_vectors: str
    query_embeddings: PathText
    document_embeddings: PathText
    embeddings_encoding: str
    train_query_embeddings: bool
    train_document_embeddings: bool
    # training
    objective: str
    negatives: int
    train_negatives: int
    fresh_negatives: bool
    hard_negatives: int
    mine_every: int
    mine_ranks: Sequence[int]
    mine_margin: float
    pseudo_queries: int
    optimizer: str
    learning_rate: float
    learning_rate_decay: float
    average_weights: float
    clip_norm: float
    batching: str
    batch_size: int
    distribution: str
    init_from: PathText
    epochs: int
    patience: int
    select_metric: str
    seed: int
    checkpoint_minutes: float
    # retrieval
    retriever: str
    ranker: str
    psq_alpha: float
    psq_beta: float
    query_translation: str
    dictionary: PathText
    dictionary_direction: str
    fusion: str
    reranker: str
    rerank_depth: int


class TrainKeywords(SettingKeywords, total=False):
    """What `tune` and `HyperModel` take as `train` does: a set, towers and settings."""

    queries: Texts
    documents: Texts
    judgments: Judgments
    splits: Mapping[str, str]
    query_tower: Any
    document_tower: Any
