"""The losses, towers, objectives, re-rankers, distributions and families of the package itself.

Named, not imported: flags and their checks need no TensorFlow. What is said of a class here, such
as `needs_lists`, is what its attribute of this name says.
"""

from tf_smoothclir.plugins import LOSSES, TOWERS, register, with_parts
from tf_smoothclir.settings.base import LEAVE_OUT, Rule
from tf_smoothclir.settings.data import EncoderSettings


def _given_by_python(kind: str) -> Rule:
    return Rule(
        lambda value, objects: value == "given" and not objects,
        "only Python can give an object",
        "Name a loss or tower; --plugin=MODULE brings your own",
        (kind, "objects"),
    )


_LOSS_RULES = (
    Rule(
        lambda loss, batching: (
            LOSSES.plugin(loss).fact("needs_lists", False) and batching not in ("lists", "in_batch")
        ),
        "this loss compares the documents of a whole candidate list",
        "Add --batching=lists",
    ),
    _given_by_python("loss"),
)


def _is(tower: str, fact: str) -> bool:
    return bool(TOWERS.plugin(tower).fact(fact, False))


_TOWER_RULES = (
    Rule(
        lambda token_weights, tower: (
            token_weights not in TOWERS.plugin(tower).fact("accepted_token_weights", ("none",))
        ),
        "such a tower does not weight words, or not in this way",
        LEAVE_OUT,
    ),
    Rule(
        lambda position_weights, tower: (
            position_weights != "none" and not _is(tower, "weighs_positions")
        ),
        "a tower that reads word order knows positions",
        LEAVE_OUT,
    ),
    Rule(
        lambda matryoshka_dims, tower: bool(matryoshka_dims) and not _is(tower, "can_be_cut"),
        "the first numbers of a vector come from layers that need all of it",
        LEAVE_OUT,
    ),
    Rule(
        lambda tower, of_tokens, of_positions, *trained: (
            _is(tower, "trains_words_alone")
            and not any(trained)
            and "learned" not in (of_tokens, of_positions)
        ),
        "such a tower has only its word vectors, so nothing is left to train",
        "Train at least one of the two",
        (
            *("tower", "token_weights", "position_weights"),
            *("train_query_embeddings", "train_document_embeddings"),
        ),
    ),
    _given_by_python("tower"),
    *(
        Rule(
            lambda tower, value: tower == "given" and value not in ("", 0, "random"),
            "a layer that Python gave has word vectors of its own, by the ids of words",
            LEAVE_OUT,
            ("tower", name),
        )
        for name in ("ngram_buckets", "initial_vectors", "query_embeddings", "document_embeddings")
    ),
)


def _loss(name: str, place: str, text: str, *settings: str, **facts) -> None:
    where, facts["settings"] = f"tf_smoothclir.losses.{place}", settings or ("thresholds",)
    register("loss", name, where, help=text, rules=_LOSS_RULES, facts=facts)


def _lists(name: str, place: str, text: str, *more: str) -> None:
    _loss(name, place, f"lists, {text}", "temperature", *more, needs_lists=True)


def _tower(name: str, place: str, text: str, **facts) -> None:
    where = f"tf_smoothclir.towers.{place}"
    register("tower", name, where, help=text, rules=_TOWER_RULES, facts=facts)


_loss("sosl", "ordinal:SmoothOrdinalSearchLoss", "Smooth Ordinal Search Loss (Liu et al. 2020).")
_loss("mse", "ordinal:SegmentMeanSquaredError", "squared distance to the grade's segment.")
_loss("proportional_odds", "ordinal:ProportionalOdds", "that of the authors' code.")
_loss("three_part_l2", "ordinal:ThreePartL2", "3PartL2 (Nigam et al. 2019).", "cut_points")
_of_logits = "thresholds", "temperature"
_loss("cumulative_logits", "ordinal:CumulativeLogits", "McCullagh's odds.", *_of_logits)
_lists("ordinal_softmax", "listwise:OrdinalSoftmaxLoss", "by grade.", "lower_grade_weight")
_lists("softmax", "listwise:SoftmaxLoss", "as one cross entropy.")
register("loss", "given", "tf_smoothclir.losses.base:GivenLoss", help="", facts={"settings": ()})
_tower(
    "average_pooling",
    "average_pooling:AveragePoolingTower",
    "the mean of the word vectors.",
    accepted_token_weights=("none", "idf", "learned"),
    weighs_positions=True,
    can_be_cut=True,
    trains_words_alone=True,
)
_tower("cnn", "cnn:CNNTower", "reads word order, and takes many times as long.")
_tower("lstm", "lstm:LSTMTower", "the same.", is_recurrent=True)
_tower("given", "given:GivenTower", "")  # by Python alone
register(
    "objective",
    "ranking",
    "tf_smoothclir.training.tasks:ranking_task",
    help="--loss over judged pairs or candidate lists.",
)
register(
    "distribution",
    "none",
    "tf_smoothclir.training.processes:single_process",
    help="one process, on the whole set.",
)
register("reranker", "none", None, help="the order of the first stage stays.")
register(
    "reranker",
    "late_interaction",
    "tf_smoothclir.interaction.networks.late_interaction:LateInteraction",
    help="each query word looks for its best match in the document, by position and with its"
    " neighbour; fast.",
    rules=(
        Rule(
            lambda rerank_depth, reranker: rerank_depth != 100 and reranker == "none",
            "nothing orders these documents again",
            "Add --reranker=late_interaction, or leave --rerank_depth out",
        ),
    ),
)


def _family(
    name: str, where: str, text: str, rules: tuple = (), settings: type | None = None, **facts
) -> None:
    where = f"tf_smoothclir.families.{where}"
    register("family", name, where, help=text, rules=rules, settings=settings, facts=facts)


_family("dense", "dense:Dense", "the two towers (paper).", has_task=True)
_family(
    "lexical",
    "lexical:Lexical",
    "a translation table learned from the training pairs; no towers.",
    has_table=True,
    with_encoder="lexical+encoder",
)
_family(
    "hybrid",
    "hybrid:Hybrid",
    "both in one ranking; the validation queries decide how much each counts, and what counts for"
    " nothing.",
    parts=("dense", "lexical"),
    with_encoder="hybrid+encoder",
)
_ENCODER_RULES = (
    Rule(
        lambda retriever, encoder: "encoder" in with_parts(retriever) and not encoder,
        "no encoder is named",
        "Add --encoder=http://..., FILE.npz or another; --help lists the kinds",
    ),
    Rule(
        lambda encoder, retriever: bool(encoder) and "encoder" not in with_parts(retriever),
        "nothing ranks by it",
        "Add --retriever=hybrid, lexical or encoder, or leave --preset out",
    ),
    Rule(
        lambda distill, encoder: distill and not encoder,
        "there is no encoder to learn from",
        "Add --encoder=http://... or another; --help lists the kinds",
    ),
)
_family(
    "encoder",
    "encoder:ForeignEncoderFamily",
    "--encoder as it is, by the cosine of its vectors.",
    _ENCODER_RULES,
    EncoderSettings,
)
_family(
    "lexical+encoder",
    "hybrid:TableWithEncoder",
    "what --encoder makes of lexical.",
    parts=("lexical", "encoder"),
)
_family(
    "hybrid+encoder",
    "hybrid:WithEncoder",
    "what --encoder makes of hybrid.",
    parts=("dense", "lexical", "encoder"),
)
_BY_RERANKER = Rule(
    lambda retriever: retriever == "reranked",
    "it orders what another retriever ranks first",
    "Name that one, and add --reranker=late_interaction",
)
_family("reranked", "reranked:Reranked", "", (_BY_RERANKER,))
