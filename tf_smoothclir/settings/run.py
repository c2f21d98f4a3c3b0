"""Every setting of a run, once: flags, `flags.txt` and `config.json` are made from these classes.

Each group is a frozen dataclass whose fields carry their help text and what values they take.
"""

from __future__ import annotations

import dataclasses

from tf_smoothclir.settings.base import Settings, setting

# Settings that change no result: where the data are is not what they are, which is compared itself.
WITHOUT_EFFECT = frozenset(
    {"data_dir", "tfds_data_dir", "cache_dir", "shards_dir", "checkpoint_minutes"}
)
METRICS = ("P_mr@1", "P_mr@5", "P_r@5", "NDCG@5", "MAP", "MRR_mr", "MRR_r")


@dataclasses.dataclass(frozen=True)
class DataSettings(Settings):
    """Which retrieval set."""

    data_dir: str = setting(
        "",
        "Directory of the retrieval set: WikiCLIR layout (wiki_en.queries, wiki_fr.documents,"
        " en2fr.rel) or your own queries, documents and judgments as .tsv or .jsonl. Without it,"
        " the built-in toy world.",
        is_path=True,
    )
    tfds_name: str = setting("", "TensorFlow dataset to read instead, such as wiki_clir/fr.")
    tfds_data_dir: str = setting(
        "", "Where TensorFlow Datasets keeps its data, if not at home.", is_path=True
    )
    query_language: str = setting("en", "Language of the queries, ISO 639-1.")
    document_language: str = setting("fr", "Language of the documents, ISO 639-1.")
    toy_entities: int = setting(2000, "Number of entities in the toy world.", minimum=300)
    split_seed: int = setting(
        13,
        "Splits the queries 3:1:1 where the set has no splits itself; seeds the toy world too.",
        minimum=0,
    )
    cache_dir: str = setting(
        "", "Where prepared texts are kept; empty: ~/.cache/tf_smoothclir.", is_path=True
    )


@dataclasses.dataclass(frozen=True)
class TextSettings(Settings):
    """How texts become token ids."""

    max_query_tokens: int = setting(200, "Longer queries are cut to this many tokens.", minimum=1)
    max_document_tokens: int = setting(
        200, "Longer documents are cut to this many tokens (paper: 200).", minimum=1
    )
    vocabulary_size: int = setting(
        100_000, "Most entries of each vocabulary (paper: 100,000).", minimum=3
    )
    shared_vocabulary: bool = setting(
        False,
        "One vocabulary and one table of word vectors for both languages: names, numbers and all"
        " else that is spelled alike in both is then the same word (paper: no).",
    )
    min_count: int = setting(1, "Words seen less often count as unknown.", minimum=1)
    ngram_buckets: int = setting(
        0,
        "Rows of a table of character n-grams, such as 100,000, whose vectors are added to those of"
        " the words: inflected and unknown words get a vector by their spelling. 0: words alone"
        " (paper).",
        minimum=0,
    )
    min_ngram: int = setting(
        3,
        "Characters of the shortest n-gram of --ngram_buckets; the begin and the end of a word"
        " count as one each.",
        minimum=1,
    )
    max_ngram: int = setting(5, "Characters of the longest n-gram of --ngram_buckets.", minimum=1)

    def __post_init__(self):
        super().__post_init__()
        if self.max_ngram < self.min_ngram:
            raise ValueError(
                f"--max_ngram must be at least --min_ngram, {self.min_ngram}, but is"
                f" {self.max_ngram}."
            )

    def max_tokens(self, role: str) -> int:
        """Returns the longest "query" or "document", in tokens."""
        return self.max_query_tokens if role == "query" else self.max_document_tokens


@dataclasses.dataclass(frozen=True)
class ModelSettings(Settings):
    """The two towers, their similarity and the loss."""

    tower: str = setting(
        "average_pooling",
        "Kind of tower: average_pooling of the word vectors, or the paper's cnn or lstm, which read"
        " word order and take a hundred times as long.",
        choices=("average_pooling", "cnn", "lstm"),
    )
    token_weights: str = setting(
        "none",
        "How average_pooling weighs the words of a text: none gives all the same weight (paper),"
        " idf more to rare words (inverse document frequency), for frozen word vectors; learned"
        " begins with the same weight and trains it, for word vectors that are trained.",
        choices=("none", "idf", "learned"),
    )
    dim: int = setting(64, "Length of the vectors (paper: 64).", minimum=1)
    epsilon: float = setting(
        1.0,
        "Smoothness of the cosine (paper: 1, suggested 0.25 to 1); 0 is plain cosine, for"
        " comparison only.",
        minimum=0.0,
    )
    loss: str = setting(
        "sosl",
        "Loss: sosl (the paper's), or one it is compared with there (mse to three_part_l2) or here"
        " (softmax to list_mle: losses over whole lists, for --batching=lists).",
        choices=(
            "sosl",
            "mse",
            "proportional_odds",
            "three_part_l2",
            "softmax",
            "approx_ndcg",
            "pairwise_hinge",
            "pairwise_logistic",
            "list_mle",
        ),
    )
    temperature: float = setting(
        0.1,
        "What proportional_odds and the losses over lists divide the scores by, above 0; 1 is the"
        " paper's proportional_odds, which has no room between -1 and 1.",
        minimum=0.0,
    )
    thresholds: tuple[float, ...] = setting(
        (0.2, 0.7),
        "Scores at which the grade changes, rising, inside (-1, 1) (paper: 0.2,0.7). K-1 of them"
        " for grades 0..K-1.",
    )
    learn_thresholds: bool = setting(
        False,
        "With --loss=sosl, train the thresholds too, beginning at --thresholds; each grade keeps at"
        " least half of its room. They move to where the scores are, which may rank worse.",
    )
    cut_points: tuple[float, ...] = setting(
        (0.2, 0.55, 0.9),
        "Of three_part_l2 alone: grades 0 and 1 belong below the first and the second, grade 2"
        " above the third (its authors': 0.2,0.55,0.9).",
    )
    initial_vectors: str = setting(
        "random",
        "What word vectors begin with: random numbers, or bilingual: words that stand in the same"
        " training pairs, in either language, begin near each other, and so do their n-grams. The"
        " paper's begin as Polyglot's, by --query_embeddings and --document_embeddings.",
        choices=("random", "bilingual"),
    )
    query_embeddings: str = setting(
        "",
        "File of pre-trained word vectors for the queries: word2vec, GloVe, fastText .vec or .npz.",
        is_path=True,
    )
    document_embeddings: str = setting("", "The same for the documents.", is_path=True)
    train_query_embeddings: bool = setting(
        True, "Train the query word vectors; --no... freezes them."
    )
    train_document_embeddings: bool = setting(
        True, "Train the document word vectors; --no... freezes them."
    )


@dataclasses.dataclass(frozen=True)
class TrainingSettings(Settings):
    """Sampling, optimisation and stopping."""

    negatives: int = setting(
        40,
        "Sampled documents of grade 0 a query, in training and evaluation (paper: 40).",
        minimum=0,
    )
    train_negatives: int = setting(
        -1,
        "Where training is to have another number of them than evaluation; -1: the same.",
        minimum=-1,
    )
    fresh_negatives: bool = setting(
        False, "Sample the training negatives anew each epoch (paper: fixed)."
    )
    hard_negatives: int = setting(
        0,
        "Documents of grade 0 added to each training query that the model itself, after its first"
        " epochs, ranks high in the whole collection: what it confuses teaches it most.",
        minimum=0,
    )
    mine_every: int = setting(
        1, "Epochs after which they are looked for, and then looked for anew.", minimum=1
    )
    mine_ranks: tuple[int, ...] = setting(
        (10, 200),
        "First and last rank, from 1, where they are looked for. Documents before these may be"
        " relevant though nobody judged them.",
    )
    mine_margin: float = setting(
        0.05,
        "They score lower than the relevant document by at least this share of its score; what"
        " scores higher may be relevant too.",
        minimum=0.0,
    )
    optimizer: str = setting(
        "rmsprop",
        "Optimizer. rmsprop is Adam without momentum, as good here and many times faster. adam is"
        " the paper's, whose cost follows the vocabulary, not the batch; lazy_adam touches only the"
        " words of the batch. adagrad is ahead in the first epochs.",
        choices=("rmsprop", "adam", "lazy_adam", "adagrad"),
    )
    learning_rate: float = setting(
        0.0,
        "Step size; 0: the optimizer's own, which is 0.01 (paper: 0.01) but for adagrad's 0.4.",
        minimum=0.0,
    )
    learning_rate_decay: float = setting(
        1.0,
        "Factor on the step size after each epoch (paper: 0.95 for cnn and lstm); 1 keeps it.",
        minimum=0.0,
    )
    average_weights: float = setting(
        0.0,
        "Evaluate and keep not the weights of an epoch but their mean over the epochs, in which"
        " each epoch counts this many times what the next one does: 0.5 suits ten epochs and more"
        " (shorter runs lose by it), 1 is the plain mean, 0 does without (paper).",
        minimum=0.0,
    )
    clip_norm: float = setting(
        5.0, "Largest norm of the gradient; 0 for no clipping (authors' code: 5).", minimum=0.0
    )
    batching: str = setting(
        "pairs",
        "pairs: shuffled pairs of all queries (paper). bucketed: the same, with documents of about"
        " the same length in a batch; faster for --tower=lstm. lists: whole candidate lists, each"
        " query encoded once; faster. in_batch: the same, and every document of a batch has grade 0"
        " for each query that it is not judged for; use a larger --batch_size.",
        choices=("pairs", "bucketed", "lists", "in_batch"),
    )
    batch_size: int = setting(
        128,
        "Pairs in a training batch, about as many with --batching=lists (paper: 128). Workers of"
        " --distribution=multi_worker share it.",
        minimum=1,
    )
    shards_dir: str = setting(
        "",
        "Directory of TFRecord shards by smoothclir-shards, local or remote such as gs://, to"
        " stream the training batches from, with --batching=lists. Validation and evaluation still"
        " read the retrieval set.",
        is_path=True,
    )
    distribution: str = setting(
        "none",
        "none: one process. multi_worker: the processes that TF_CONFIG names train one model"
        " together, each on shards of its own (--shards_dir). See docs/distributed.md.",
        choices=("none", "multi_worker"),
    )
    epochs: int = setting(30, "Passes over the training pairs (paper: 30).", minimum=1)
    patience: int = setting(
        0, "Stop after this many epochs without a better --select_metric; 0: never.", minimum=0
    )
    select_metric: str = setting(
        "NDCG@5", "Validation metric that decides which epoch is kept.", choices=METRICS
    )
    seed: int = setting(13, "Seed of initial weights, order and sampling.", minimum=0)
    checkpoint_minutes: float = setting(
        5.0,
        "Minutes between checkpoints inside an epoch; one is written after each epoch anyway.",
        minimum=0.0,
    )

    def __post_init__(self):
        super().__post_init__()
        ranks = self.mine_ranks
        if len(ranks) != 2 or not 1 <= ranks[0] <= ranks[1]:
            raise ValueError(
                "--mine_ranks must be the first and the last rank, such as 10,200, but is"
                f" {','.join(map(str, ranks))}."
            )
        if self.average_weights > 1:
            raise ValueError(f"--average_weights must be at most 1, but is {self.average_weights}.")


GROUPS = {
    "data": DataSettings,
    "text": TextSettings,
    "model": ModelSettings,
    "training": TrainingSettings,
}


@dataclasses.dataclass(frozen=True)
class RunSettings:
    """All settings of a training run, by group."""

    data: DataSettings = DataSettings()
    text: TextSettings = TextSettings()
    model: ModelSettings = ModelSettings()
    training: TrainingSettings = TrainingSettings()

    @classmethod
    def from_dict(cls, values: dict) -> RunSettings:
        """Restores what `dataclasses.asdict` gave, also after a trip through JSON."""
        return cls(**{group: kind(**values[group]) for group, kind in GROUPS.items()})

    def flag_lines(self) -> list[str]:
        """Returns one `--name=value` for each setting, as a flag file has them."""
        lines = []
        for group in GROUPS:
            for name, value in dataclasses.asdict(getattr(self, group)).items():
                text = ",".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)
                lines.append(f"--{name}={text}")
        return lines
