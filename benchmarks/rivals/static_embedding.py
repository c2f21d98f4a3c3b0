"""sentence-transformers' StaticEmbedding, trained from random vectors by its authors' recipe.

The recipe is that of "Train 400x faster Static Embedding Models with Sentence Transformers"
(Aarsen, 2025): MultipleNegativesRankingLoss in a MatryoshkaLoss, batches without duplicates, a
learning rate of 0.2 with a warm-up. The tokeniser is trained on the set: nothing is downloaded.
"""

from __future__ import annotations

import functools
import itertools
import tempfile
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.rivals.rival import Ready, best_documents, unit_vectors
from benchmarks.rivals.texts import RivalTexts
from tf_smoothclir.lexical.validation import Validation

_RATES = (0.1, 0.3)
_FEW_STEPS, _MORE_STEPS = 100, 400
_DIMENSIONS = (512, 256, 128, 64)
_BATCH = 512
_PIECES = 30_522  # BERT's
_SEED = 13


def variants(texts: RivalTexts) -> Iterator[Ready]:
    """Yields a model of few steps for each learning rate, and one of more for the better rate."""
    validation, qualities = Validation(texts.retrieval_set), {}
    for rate in _RATES:
        ready = _ready(texts, rate, _FEW_STEPS)
        qualities[rate] = validation(ready.rows)
        yield ready
    yield _ready(texts, max(qualities, key=qualities.get), _MORE_STEPS)


def _ready(texts: RivalTexts, rate: float, steps: int) -> Ready:
    begin = time.monotonic()
    model = _trained(texts, rate, steps)
    queries, documents = (_encoded(model, lines) for lines in (texts.queries, texts.documents))
    seconds = time.monotonic() - begin

    def rows(query_rows):
        return queries[query_rows] @ documents.T

    def answer(query):
        return best_documents(documents @ _encoded(model, [query])[0])

    epochs = steps * _batch(texts) / len(texts.pairs)
    setting = f"rate {rate:g}, {epochs:.0f} epochs"
    return Ready(rows, answer, seconds, setting, functools.partial(_encoded, model))


def _trained(texts: RivalTexts, rate: float, steps: int):
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer import losses
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from sentence_transformers.training_args import BatchSamplers
    from transformers import set_seed

    set_seed(_SEED)
    module = StaticEmbedding(_tokenizer(texts), embedding_dim=_DIMENSIONS[0])
    model = SentenceTransformer(modules=[module], device="cpu")
    loss = losses.MatryoshkaLoss(
        model, losses.MultipleNegativesRankingLoss(model), matryoshka_dims=list(_DIMENSIONS)
    )
    pairs = {
        "anchor": [texts.queries[row] for row in texts.pairs[:, 0]],
        "positive": [texts.documents[row] for row in texts.pairs[:, 1]],
    }
    with tempfile.TemporaryDirectory() as directory:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=directory,
            max_steps=steps,
            per_device_train_batch_size=_batch(texts),
            learning_rate=rate,
            warmup_steps=0.1,
            batch_sampler=BatchSamplers.NO_DUPLICATES,
            use_cpu=True,
            seed=_SEED,
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        SentenceTransformerTrainer(
            model=model, args=arguments, train_dataset=Dataset.from_dict(pairs), loss=loss
        ).train()
    return model


def _batch(texts: RivalTexts) -> int:
    return min(_BATCH, len(texts.pairs))


def _tokenizer(texts: RivalTexts):
    """Trains one WordPiece tokeniser on the training queries and all documents."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordPieceTrainer(
        vocab_size=_PIECES, special_tokens=["[UNK]"], show_progress=False
    )
    training = texts.retrieval_set.queries_in("train")
    lines = itertools.chain((texts.queries[row] for row in training), texts.documents)
    tokenizer.train_from_iterator(lines, trainer)
    return tokenizer


def _encoded(model, lines: list[str]) -> np.ndarray:
    """`[lines, dimensions]` float32 of length 1, 0 for a line without a known word."""
    return unit_vectors(model.encode(lines, show_progress_bar=False, batch_size=1024))
