"""Settings of the adversarial model and of the models that it is compared with."""

from __future__ import annotations

import dataclasses

from tf_smoothclir.settings.base import Settings, setting

_GAMMAS = (0.01, 0.1, 1.0, 10.0, 100.0)  # the paper's values


@dataclasses.dataclass(frozen=True)
class AdversarialSettings(Settings):
    """What `--objective=adversarial` and its rivals are trained with."""

    gamma1: float = setting(
        0.1,
        "Only for --objective=adversarial: weight of the translation constraint, the squared"
        " distance of a query and its translation.",
        minimum=0.0,
        searched=_GAMMAS,
    )
    gamma2: float = setting(
        1.0,
        "Only for --objective=adversarial: weight of the matching constraint of queries and"
        " documents.",
        minimum=0.0,
        searched=_GAMMAS,
    )
    gamma3: float = setting(
        1.0,
        "Only for --objective=adversarial: weight of the matching constraint of translated queries"
        " and documents.",
        minimum=0.0,
        searched=_GAMMAS,
    )
    beta: float = setting(
        10.0,
        "For --objective=adversarial and s2net: factor on the difference of two similarities"
        " in a logistic loss. With 1, differences of cosines are too small to matter.",
        minimum=0.0,
        searched=(1.0, 5.0, 10.0, 20.0),
    )
    adversarial_weight: float = setting(
        0.1,
        "Only for --objective=adversarial: weight of the discriminator's log-likelihood in the loss"
        " of the towers (paper: 1, beside sums over all texts where these are means). 0: the towers"
        " do not mind the discriminator.",
        minimum=0.0,
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
    regularization: float = setting(
        1.0,
        "Only for --objective=adversarial: weight of the norms of the matrices behind the word"
        " vectors (paper: 1), over the number of training queries, because the paper's other losses"
        " are sums over these.",
        minimum=0.0,
    )
    opening_epochs: int = setting(
        0,
        "For --objective=adversarial and xcnn: so many of --epochs, the first, use queries made of"
        " documents; the documents that BM25 finds are relevant to them. With adversarial, the"
        " other epochs then train queries and documents alone, as in the paper. 0: no such epochs.",
        minimum=0,
    )
