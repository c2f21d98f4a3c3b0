"""The networks that can re-rank, by the name that `--reranker` has for them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tf_smoothclir.interaction.learning import HINGE, SOFTMAX, LearningSettings
from tf_smoothclir.interaction.networks.base import InteractionNetwork
from tf_smoothclir.interaction.networks.conv_knrm import ConvKnrm
from tf_smoothclir.interaction.networks.drmm import Drmm
from tf_smoothclir.interaction.networks.knrm import Knrm
from tf_smoothclir.interaction.networks.late_interaction import LateInteraction
from tf_smoothclir.interaction.networks.match_pyramid import MatchPyramid
from tf_smoothclir.interaction.networks.word_tables import WordTables

# From the tables and `[query words]` weights of words, such as by their frequency.
Build = Callable[[WordTables, np.ndarray], InteractionNetwork]

NETWORKS: dict[str, Build] = {
    "late_interaction": LateInteraction,
    "knrm": lambda tables, _: Knrm(tables),
    "drmm": lambda tables, _: Drmm(tables),
    "match_pyramid": lambda tables, _: MatchPyramid(tables),
    "conv_knrm": lambda tables, _: ConvKnrm(tables),
}
# How each is learned. Networks over features that are computed once can afford many epochs.
LEARNING = {
    "late_interaction": LearningSettings(
        SOFTMAX,
        learning_rate=0.01,
        epochs=5,
        patience=2,
        vector_rate=0.003,
        tries_related=True,
    ),
    "knrm": LearningSettings(HINGE, epochs=20, patience=5),
    "drmm": LearningSettings(HINGE, epochs=20, patience=5),
    "match_pyramid": LearningSettings(HINGE, epochs=3, patience=2),
    "conv_knrm": LearningSettings(HINGE, epochs=3, patience=2),
}
