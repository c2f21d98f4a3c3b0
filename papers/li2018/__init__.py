"""Li and Cheng 2018, "Learning Neural Representation for CLIR with Adversarial Framework".

A plug-in: `--plugin=tf_smoothclir.papers.li2018` brings the objectives, towers and settings of the
adversarial model and of the earlier models that it is compared with.
"""

from __future__ import annotations

from tf_smoothclir.papers.li2018.settings import OBJECTIVE_RULES, AdversarialSettings
from tf_smoothclir.plugins import register

for _name, _task, _help in (
    (
        "adversarial",
        "task:AdversarialTask",
        "queries, translations of them and documents are encoded so that documents rank right for"
        " both and a discriminator cannot tell the three apart (Li and Cheng 2018).",
    ),
    (
        "s2net",
        "pair_tasks:S2NetTask",
        "a projection of terms, learned from pairs (Yih et al. 2011).",
    ),
    (
        "bae",
        "pair_tasks:BaeTask",
        "a bilingual autoencoder (Chandar et al. 2014); needs --tower=linear.",
    ),
    ("xcnn", "pair_tasks:XcnnTask", "sums of tanh, in two stages (Gupta et al. 2017)."),
):
    register(
        "objective",
        _name,
        f"{__name__}.{_task}",
        help=_help,
        settings=AdversarialSettings,
        rules=OBJECTIVE_RULES,
    )
register(
    "tower",
    "max_lstm",
    f"{__name__}.towers:MaxLSTMTower",
    help="the largest states of an LSTM (Li and Cheng 2018).",
    facts={"is_recurrent": True},
)
# Towers of one objective each: --tune=tower does not try them.
_BAGS = {"accepted_token_weights": ("none", "idf"), "is_searched": False}
register(
    "tower",
    "linear",
    f"{__name__}.towers:LinearTower",
    help="the sum of word vectors, for --objective=s2net and bae.",
    facts={**_BAGS, "trains_words_alone": True},
)
register(
    "tower",
    "word_tanh",
    f"{__name__}.towers:WordTanhTower",
    help="the sum of tanh over words, for --objective=xcnn.",
    facts=_BAGS,
)
