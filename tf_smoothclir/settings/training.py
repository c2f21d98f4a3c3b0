"""Settings of the training: negatives, optimisation, batches, distribution and stopping."""

import dataclasses

from tf_smoothclir.plugins import DISTRIBUTIONS, OBJECTIVES
from tf_smoothclir.settings.base import LEAVE_OUT, MAX_SEED, Rule, Settings, setting

METRICS = ("P_mr@1", "P_mr@5", "P_r@5", "NDCG@5", "MAP", "MRR_mr", "MRR_r")
COMPARED = ("nDCG@10", "MRR@10", "Recall@100", *METRICS)  # what a comparison begins with
CROSS_VALIDATION = "cross-validation"  # split of all judged queries, each by the model of its fold
OPTIMIZERS = ("rmsprop", "row_rmsprop", "adam", "lazy_adam")
# Settings of how a run starts; one that begins with another run has their defaults.
NOT_BESIDE_INIT_FROM = (
    *("distribution", "query_vocabulary", "document_vocabulary", "initial_vectors"),
    *("query_embeddings", "document_embeddings", "dictionary"),
)
RULES = tuple(
    Rule(
        lambda path, value: bool(path) and value not in ("", "random", "none"),
        "one process trains the vocabularies, vectors and translation table of that run further",
        LEAVE_OUT,
        ("init_from", other),
    )
    for other in NOT_BESIDE_INIT_FROM
)


@dataclasses.dataclass(frozen=True)
class TrainingSettings(Settings):
    """What towers are trained for, sampling, optimisation and stopping."""

    objective: str = setting("ranking", "What the towers are trained for.", choices=OBJECTIVES)
    negatives: int = setting(
        40,
        "Sampled documents of grade 0 per query, in training and evaluation (paper: 40).",
        minimum=0,
    )
    train_negatives: int = setting(
        -1,
        "Sampled documents of grade 0 per query in training only; -1: as many as --negatives.",
        minimum=-1,
    )
    fresh_negatives: bool = setting(
        False, "Sample new training negatives for each epoch (paper: no)."
    )
    hard_negatives: int = setting(
        0,
        "Hard negatives added to each training query: documents of grade 0 that the model itself,"
        " after each epoch, ranks high in the whole collection. 0: none (paper).",
        minimum=0,
    )
    pseudo_queries: int = setting(
        0,
        "Fill up fewer training queries to this many: other documents get a pseudo-query of some of"
        " their words, translated by a table that is learned from the pairs. 0: none (paper).",
        minimum=0,
    )
    optimizer: str = setting(
        "rmsprop",
        "rmsprop: Adam without momentum, as good here and several times faster. row_rmsprop: the"
        " same with one step size for a word vector; for long vectors. adam: the paper's; its cost"
        " grows with the vocabulary. lazy_adam: updates only the words of the batch.",
        choices=OPTIMIZERS,
        searched=OPTIMIZERS,
    )
    learning_rate: float = setting(
        0.0,
        "Learning rate; 0: 0.01, as in the paper.",
        minimum=0.0,
        searched=(0.001, 0.003, 0.01, 0.03, 0.1),
    )
    learning_rate_decay: float = setting(
        1.0,
        "Factor on the learning rate after each epoch (paper: 0.95 for cnn and lstm); 1 keeps it.",
        minimum=0.0,
    )
    clip_norm: float = setting(
        5.0,
        "Largest norm of the gradient; 0: no gradient clipping (authors' code: 5).",
        minimum=0.0,
    )
    batching: str = setting(
        "pairs",
        "pairs: shuffled pairs of query and document (paper). bucketed: pairs with documents of"
        " about the same length; faster for --tower=lstm. lists: whole candidate lists, each query"
        " encoded once. in_batch: as lists, and documents have grade 0 for all other queries.",
        choices=("pairs", "bucketed", "lists", "in_batch"),
    )
    batch_size: int = setting(
        128,
        "Pairs in a training batch (paper: 128); several processes (--distribution) share it.",
        minimum=1,
    )
    distribution: str = setting("none", "Who trains, and on which batches.", choices=DISTRIBUTIONS)
    init_from: str = setting(
        "",
        "Begin with the vocabularies, towers and translation table of this run, and add the words"
        " of the new data. Settings that are not given are those of that run, except for the data.",
        is_path=True,
    )
    epochs: int = setting(30, "Passes over the training pairs (paper: 30).", minimum=1)
    patience: int = setting(
        0, "Stop after this many epochs without a better --select_metric; 0: never.", minimum=0
    )
    select_metric: str = setting(
        "NDCG@5", "Validation metric that decides which epoch is kept.", choices=METRICS
    )
    seed: int = setting(
        13, "Seed of initial weights, shuffling and sampling.", minimum=0, maximum=MAX_SEED
    )
    checkpoint_minutes: float = setting(
        5.0,
        "Minutes between checkpoints inside an epoch; each epoch ends with a checkpoint anyway.",
        minimum=0.0,
        has_effect=False,
    )
