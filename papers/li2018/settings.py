"""Settings of the adversarial model and of those it is compared with, and what they go with."""

from __future__ import annotations

import dataclasses

from tf_smoothclir.settings.base import Rule, Settings, setting

_GAMMAS = (0.01, 0.1, 1.0, 10.0, 100.0)  # the paper's values
_OURS = ("adversarial", "s2net", "bae", "xcnn")
# Who has the settings that can be searched.
_SEARCHED = {
    **dict.fromkeys(("gamma1", "gamma2", "gamma3", "adversarial_weight"), ("adversarial",)),
    "beta": ("adversarial", "s2net"),
}
_LEAVE_OUT = "Leave one of the two out"
# What only --objective=ranking can use, with the values that others accept too.
_BESIDE_OBJECTIVE = (
    ("distribution", ("none",), "it draws its batches from the whole set, in one process"),
    ("batching", ("pairs", "bucketed"), "it does not train on candidate lists"),
    ("loss", ("sosl",), "it has a loss of its own"),
    ("pseudo_queries", (0,), "it makes queries of documents by --opening_epochs"),
    ("hard_negatives", (0,), "it draws the other documents itself"),
    ("matryoshka_dims", ((),), "its losses need whole vectors"),
    ("shared_vocabulary", (False,), "it has an encoder for each language"),
)
OBJECTIVE_RULES = (
    *(
        Rule(
            lambda objective, value, own=own: objective in _OURS and value not in own,
            reason,
            _LEAVE_OUT,
            ("objective", other),
        )
        for other, own, reason in _BESIDE_OBJECTIVE
    ),
    Rule(
        lambda objective, tower: objective == "bae" and tower != "linear",
        "an autoencoder rebuilds the words of a text from the sum of their vectors",
        "Add --tower=linear",
    ),
    Rule(
        lambda objective, ngram_buckets: objective == "bae" and ngram_buckets > 0,
        "an autoencoder rebuilds words, not n-grams",
        _LEAVE_OUT,
    ),
    Rule(
        lambda objective, opening_epochs: objective == "xcnn" and not opening_epochs,
        "its document tower learns from queries made of documents alone",
        "Add --opening_epochs, such as half of --epochs",
    ),
    Rule(
        lambda objective, optimizer: objective == "xcnn" and optimizer in ("adam", "lazy_adam"),
        "their momentum would move the document tower, which stays as it is in the second stage",
        "Leave --optimizer out",
    ),
    Rule(
        lambda objective, adversarial_weight, discriminator_steps: (
            objective == "adversarial" and adversarial_weight > 0 and discriminator_steps == 0
        ),
        "there is no discriminator whose likelihood could count",
        "Add --adversarial_weight=0, or raise --discriminator_steps",
    ),
    Rule(
        lambda objective, opening_epochs, epochs: (
            objective in _OURS and 0 < epochs <= opening_epochs
        ),
        "no epoch is left for the judged queries",
        "Raise --epochs",
    ),
    Rule(
        lambda tune, objective: any(objective not in _SEARCHED.get(n, (objective,)) for n in tune),
        "this objective does not have one of these settings",
        "Add --objective=adversarial",
    ),
)


def _weight(default: float, of: str, searched: tuple[float, ...] = _GAMMAS) -> float:
    text = f"Only for --objective=adversarial: weight of {of}."
    return setting(default, text, minimum=0.0, searched=searched)


@dataclasses.dataclass(frozen=True)
class AdversarialSettings(Settings):
    """What `--objective=adversarial` and its rivals are trained with."""

    gamma1: float = _weight(
        0.1, "the translation constraint, the squared distance of a query and its translation"
    )
    gamma2: float = _weight(1.0, "the matching constraint of queries and documents")
    gamma3: float = _weight(1.0, "the matching constraint of translated queries and documents")
    beta: float = setting(
        10.0,
        "For --objective=adversarial and s2net: factor on the difference of two similarities"
        " in a logistic loss. With 1, differences of cosines are too small to matter.",
        minimum=0.0,
        searched=(1.0, 5.0, 10.0, 20.0),
    )
    adversarial_weight: float = _weight(
        0.1,
        "the discriminator's log-likelihood in the loss of the towers (paper: 1, beside sums over"
        " all texts where these are means). 0: the towers do not mind the discriminator",
        searched=(0.0, 0.01, 0.1, 1.0),
    )
    discriminator_steps: int = setting(
        1,
        "Only for --objective=adversarial: steps of the discriminator before each step of the"
        " towers (paper: k, without a value). 0: no discriminator.",
        minimum=0,
    )
    discriminator_rate: float = setting(
        0.001,
        "Only for --objective=adversarial: learning rate of the discriminator, which Adam trains."
        " 0: Adam's own, 0.01.",
        minimum=0.0,
    )
    regularization: float = _weight(
        1.0,
        "the norms of the matrices behind the word vectors (paper: 1), over the number of training"
        " queries, because the paper's other losses are sums over these",
        searched=(),
    )
    opening_epochs: int = setting(
        0,
        "For --objective=adversarial and xcnn: so many of --epochs, the first, use queries made of"
        " documents; the documents that BM25 finds are relevant to them. With adversarial, the"
        " other epochs then train queries and documents alone, as in the paper. 0: no such epochs.",
        minimum=0,
    )
