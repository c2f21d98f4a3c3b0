"""Settings of a search for other settings."""

from __future__ import annotations

import dataclasses

from tf_smoothclir.settings.base import Settings, setting


@dataclasses.dataclass(frozen=True)
class Search(Settings):
    """How to search."""

    tune: tuple[str, ...] = setting(
        ("thresholds",),
        "Settings to search: thresholds (rising, from 0.1 to 0.9 in steps of 0.1), epsilon (0.1 to"
        " 2), learning_rate (0.001 to 0.1), dim (32, 64, 128), temperature (0.05 to 1), loss and"
        " optimizer (all choices), tower (average_pooling, cnn, lstm, max_lstm); with"
        " --objective=adversarial, gamma1, gamma2, gamma3 (0.01 to 100), beta (1 to 20),"
        " adversarial_weight (0 to 1); with --retriever=lexical or hybrid, psq_alpha (0.003 to"
        " 0.3), psq_beta (0 to 0.7).",
    )
    search: str = setting(
        "grid",
        "grid: all combinations in order, as in the paper. random: in random order, each at most"
        " once. bayesian: guided by a Gaussian process. hyperband: many short trials, the best ones"
        " repeated with more epochs, up to --epochs.",
        choices=("grid", "random", "bayesian", "hyperband"),
    )
    max_trials: int = setting(
        36,
        "Most trials; the whole grid of thresholds for three grades has 36. May be raised later.",
        minimum=1,
    )
    folds: int = setting(
        0,
        "Folds of cross-validation over the training and validation queries. 0 or 1: no"
        " cross-validation, but the validation split of the set.",
        minimum=0,
    )
