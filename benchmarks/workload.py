"""A synthetic workload: token ids in the shape of the paper's data, without texts."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.pipeline import PIPELINES
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.source import Judgment, Source, Text
from tf_smoothclir.data.tokenized_set import RaggedWriter, TokenizedSet
from tf_smoothclir.protocols.task import PAIRS, Batches
from tf_smoothclir.settings.model import ModelSettings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.settings.training import TrainingSettings
from tf_smoothclir.training.steps import StepLoop
from tf_smoothclir.training.trainer import STEPS_PER_CALL
from tf_smoothclir.two_tower.builder import build_model
from tf_smoothclir.two_tower.scorer import TwoTowerTask

# Token frequencies fall as rank^-0.91: a batch of 128 pairs of 20 and 150 tokens then touches about
# 11,000 different rows of two tables of 100,000.
ZIPF = 0.91
_NEGATIVES = 40
FIRST_TOKEN = 2  # after padding and unknown
_VALIDATION_QUERIES = 20
_ROWS_AT_ONCE = 1 << 14


@dataclasses.dataclass(frozen=True)
class Workload:
    """Sizes; the defaults are the paper's, except for the number of queries and documents."""

    # Training queries, each with 13.6 judged documents on average and 40 sampled.
    queries: int = 2000
    documents: int = 20_000  # number of documents in the collection
    vocabulary: int = 100_000  # rows of each table
    # Number of different tokens that occur: the first ones, as in a vocabulary in order of
    # frequency; 0 for all.
    tokens_in_use: int = 0
    rows_apart: int = 1  # distance in the tables between tokens in use; 1 for adjacent rows
    # Share of tokens that are not in use, drawn evenly from the rows after those.
    rare_tokens: float = 0.0
    query_tokens: int = 20  # mean length; lengths are uniform between 1/2 and 3/2 of it
    document_tokens: int = 150  # mean length; lengths are uniform between 2/3 and 4/3 of it
    same_lengths: bool = False  # whether all texts have the mean length instead
    batch_size: int = 128  # pairs in a batch
    dim: int = 64  # dimension of the vectors
    tower: str = "average_pooling"

    def settings(self, **training) -> RunSettings:
        """Settings with these sizes and the given training settings."""
        return RunSettings(
            model=ModelSettings(dim=self.dim, tower=self.tower),
            training=TrainingSettings(batch_size=self.batch_size, negatives=_NEGATIVES, **training),
        )


class SyntheticSource(Source):
    """Queries and documents with ids and judgments but without texts."""

    name = "synthetic"
    query_language, document_language = "en", "fr"

    def __init__(self, workload: Workload):
        """Judges 13 or 14 documents for each query, 13.6 on average."""
        self._workload = workload
        self._queries = workload.queries + _VALIDATION_QUERIES

    def queries(self):
        """Yields ids with empty texts."""
        return (Text(f"q{row}", "", "") for row in range(self._queries))

    def documents(self):
        """Yields ids with empty texts."""
        return (Text(f"d{row}", "", "") for row in range(self._workload.documents))

    def judgments(self):
        """Yields one document of grade 2 for each query, and 12 or 13 of grade 1."""
        for query in range(self._queries):
            for place in range(13 + (query % 5 < 3)):
                document = (query * 37 + place) % self._workload.documents
                yield Judgment(f"q{query}", f"d{document}", 1 if place else 2)

    def splits(self):
        """The last queries as the validation split, the others as the training split."""
        training = self._workload.queries
        return {
            f"q{row}": "train" if row < training else "validation" for row in range(self._queries)
        }

    def place(self, stream, index):
        """Names a record."""
        return f"{stream}:{index}"

    def fingerprint(self):
        """A text that identifies the sizes."""
        return repr(self._workload)


def tokenized_set_of(workload: Workload, directory: Path) -> TokenizedSet:
    """Writes token stores of Zipf-distributed ids into `directory`.

    The same sizes give the same ids.
    """
    retrieval_set = RetrievalSet.load(SyntheticSource(workload))
    generator = np.random.default_rng(13)
    for role, texts, mean, spread in (
        ("query", retrieval_set.query_ids, workload.query_tokens, 1 / 2),
        ("document", retrieval_set.document_ids, workload.document_tokens, 1 / 3),
    ):
        spread = 0 if workload.same_lengths else spread
        low, high = int(mean * (1 - spread)), int(mean * (1 + spread))
        lengths = generator.integers(low, high + 1, len(texts))
        with RaggedWriter(directory, role, "<i4") as writer:
            for begin in range(0, len(lengths), _ROWS_AT_ONCE):
                part = lengths[begin : begin + _ROWS_AT_ONCE]
                writer.add(FIRST_TOKEN + _ranks(workload, generator, part.sum()), part)
    return TokenizedSet(retrieval_set, directory, directory, TextSettings())


def _ranks(workload: Workload, generator: np.random.Generator, count: int) -> np.ndarray:
    """`[count]` int64, rows of a table from its first word on."""
    in_use = workload.tokens_in_use or workload.vocabulary - FIRST_TOKEN
    ranks = workload.rows_apart * zipf_ranks(generator, count, in_use)
    if workload.rare_tokens:
        rare = generator.random(len(ranks)) < workload.rare_tokens
        others = workload.rows_apart * in_use, workload.vocabulary - FIRST_TOKEN
        ranks[rare] = generator.integers(*others, rare.sum())
    return ranks


def training_loop(workload: Workload, settings: RunSettings, directory: Path):
    """Builds a model, its input and its training loop, as the trainer does."""
    training = settings.training
    tokenized_set = tokenized_set_of(workload, directory)
    lists = candidate_lists(
        tokenized_set.retrieval_set, "train", negatives=training.negatives, seed=training.seed
    )
    pipeline = PIPELINES[training.batching](
        tokenized_set, batch_size=training.batch_size, seed=training.seed
    )
    model = two_tower(workload, settings)
    batches = iter(pipeline.epoch(lists, 0).repeat())
    train_steps = StepLoop(TwoTowerTask(model, training, Batches()))

    def train(calls: int) -> int:
        results = [train_steps(batches, STEPS_PER_CALL) for _ in range(calls)]
        return sum(int(result[PAIRS].sum()) for result in results)

    return model, batches, train


def zipf_ranks(generator: np.random.Generator, count: int, in_use: int) -> np.ndarray:
    """`[count]` int64 token ranks from 0, drawn by frequency."""
    ends = np.cumsum(np.arange(1, in_use + 1) ** -ZIPF)
    return np.searchsorted(ends, generator.random(count) * ends[-1], side="right")


def two_tower(workload: Workload, settings: RunSettings):
    """The compiled model of the package for a workload."""
    rows = ["token"] * workload.vocabulary
    return build_model(settings, {"query": rows, "document": rows})
