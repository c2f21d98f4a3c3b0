"""What the objectives of Li and Cheng go together with."""

from __future__ import annotations

from tf_smoothclir.settings.base import Rule

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
