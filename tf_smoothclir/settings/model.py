"""Settings of the model: towers, similarity, loss and initial word vectors."""

import dataclasses

from tf_smoothclir.plugins import LOSSES, TOWERS
from tf_smoothclir.settings.base import Rule, Settings, setting, value_text
from tf_smoothclir.settings.text import one_file_for_both

RULES = (
    Rule(
        lambda initial_vectors, query_embeddings, document_embeddings: (
            initial_vectors != "random" and bool(query_embeddings or document_embeddings)
        ),
        "word vectors can start in one way only",
        "Leave out --initial_vectors or the files",
    ),
    one_file_for_both("embeddings"),
    Rule(
        lambda shared_vocabulary, train_query_embeddings, train_document_embeddings: (
            shared_vocabulary and train_query_embeddings != train_document_embeddings
        ),
        "both languages share one embedding table, which is either trained or frozen",
        "Give both flags, or none",
    ),
)


@dataclasses.dataclass(frozen=True)
class ModelSettings(Settings):
    """The two towers, their similarity and the loss."""

    tower: str = setting(
        "average_pooling",
        "Kind of tower. The paper has average_pooling, cnn and lstm; --published_towers builds cnn"
        " and lstm as its authors do.",
        choices=TOWERS,
        searched=TOWERS,
    )
    published_towers: bool = setting(
        False,
        "Build cnn and lstm as the authors' code does: windows of the cnn inside the text, no tanh"
        " at its output; the forward LSTM read at the first word.",
    )
    token_weights: str = setting(
        "none",
        "How average_pooling weights words. none: all alike (paper). idf: rare words count more:"
        " for frozen vectors. learned: starts with equal weights and trains them.",
        choices=("none", "idf", "learned"),
    )
    position_weights: str = setting(
        "none",
        "How average_pooling weights words by where they stand. none: all positions alike (paper)."
        " learned: starts with equal weights and trains them, one profile for each tower.",
        choices=("none", "learned"),
    )
    dim: int = setting(
        64, "Length of the vectors (paper: 64).", minimum=1, maximum=16_384, searched=(32, 64, 128)
    )
    matryoshka_dims: tuple[int, ...] = setting(
        (),
        "Rising numbers such as 64,128,256, to which the vectors can be cut without another"
        " training. Those from --dim on have no effect. Empty: none (paper).",
    )
    epsilon: float = setting(
        1.0,
        "Smoothness of the cosine (paper: 1; it suggests 0.25 to 1). 0 is the plain cosine, for"
        " comparison only.",
        minimum=0.0,
        # The paper suggests 0.25 to 1, and plots 0 to 2 (Figure 4).
        searched=(0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0),
    )
    loss: str = setting(
        "sosl",
        "Loss. Those over lists need --batching=lists or in_batch.",
        choices=LOSSES,
        searched=LOSSES,
    )
    temperature: float = setting(
        0.1,
        "Divides the scores in cumulative_logits and in the losses over candidate lists; above 0.",
        minimum=0.0,
        searched=(0.05, 0.1, 0.2, 0.5, 1.0),
    )
    lower_grade_weight: float = setting(
        0.1,
        "Only for --loss=ordinal_softmax: how much a relevant document counts against one of the"
        " next higher grade.",
        minimum=0.0,
        maximum=1.0,
    )
    thresholds: tuple[float, ...] = setting(
        (0.2, 0.7),
        "Scores at which the grade changes: K-1 rising numbers inside (-1, 1) for grades 0..K-1"
        " (paper: 0.2,0.7). Left out of a training, as many as the grades of the judgments need.",
        searched=(*(level / 10 for level in range(10)), 0.95),  # rising ones of these
    )
    cut_points: tuple[float, ...] = setting(
        (0.2, 0.55, 0.9),
        "Only for --loss=three_part_l2: grade 0 belongs below the first, grade 1 below the second,"
        " grade 2 above the third (its authors: 0.2,0.55,0.9).",
    )
    initial_vectors: str = setting(
        "random",
        "Initial word vectors. random: random numbers. bilingual: words of the same training pairs,"
        " in either language, start near each other, and so do their n-grams.",
        choices=("random", "bilingual"),
    )
    query_embeddings: str = setting(
        "",
        "File of pre-trained word vectors for the queries: word2vec text, GloVe or fastText .vec.",
        is_path=True,
    )
    document_embeddings: str = setting(
        "", "File of pre-trained word vectors for the documents, in the same formats.", is_path=True
    )
    train_query_embeddings: bool = setting(
        True, "Train the word vectors of the queries; --notrain_query_embeddings freezes them."
    )
    train_document_embeddings: bool = setting(
        True, "Train the word vectors of the documents; --notrain_document_embeddings freezes them."
    )

    objects: str = setting(
        "",
        "The objects that Python gave for --loss=given and --tower=given; see `settings.given`.",
        python_only=True,
    )

    def __post_init__(self):
        super().__post_init__()
        dims = self.matryoshka_dims
        if any(dim < 1 for dim in dims) or sorted(set(dims)) != list(dims):
            raise ValueError(
                "--matryoshka_dims must be rising numbers from 1 on, such as 64,128,256, but is"
                f" {value_text(dims)}."
            )

    @property
    def shorter_dims(self) -> tuple[int, ...]:
        """The lengths that vectors can be cut to, rising, all below `dim`."""
        return tuple(dim for dim in self.matryoshka_dims if dim < self.dim)
