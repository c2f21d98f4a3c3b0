"""What the experiments train: the systems of each table and figure."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping

from tf_smoothclir.settings.base import value_text
from tf_smoothclir.settings.presets import PAPER_TOWERS, PRESETS, changed
from tf_smoothclir.settings.run import RunSettings

EPSILONS = tuple(step / 4 for step in range(9))  # 0 to 2
# Of 3PartL2.
CUT_POINTS = tuple(itertools.product((0.0, 0.2), (0.4, 0.55), (0.7, 0.9)))
QUERIES = (500, 1000, 2000, 4000, 8000, 0)  # of all splits; 0 is all that --max_queries leaves
NEGATIVES = tuple(range(20, 101, 10))  # the paper's nine sets


@dataclasses.dataclass(frozen=True)
class System:
    """One row of a table, or one curve or point of a figure."""

    name: str  # as shown in the table
    # setting -> value, the changes to the base settings; "epochs" never raises them
    changes: Mapping[str, object]
    # setting -> value, the changes for which `tuned` is tuned on validation; None if nothing is
    # tuned
    tuned_with: Mapping[str, object] | None = None
    # the setting with the scores between the grades: "thresholds" or "cut_points"
    tuned: str = "thresholds"
    # what of a run the figures are of: a half of a hybrid ("dense", "lexical"), vectors that are
    # cut ("dense-64"); "" for what it ranks with
    part: str = ""

    def settings(self, base: RunSettings, more: Mapping[str, object] | None = None) -> RunSettings:
        """The settings of its runs, `more` among them."""
        epochs = min(self.changes.get("epochs", base.training.epochs), base.training.epochs)
        return changed(base, {**self.changes, "epochs": epochs, **(more or {})})


_SOSL = {"loss": "sosl", "tower": "average_pooling"}


def _loss(name: str, loss: str, tuned: str = "thresholds", **options) -> System:
    changes = {**_SOSL, "loss": loss, **options}
    return System(name, changes, changes, tuned)


def _tower(name: str, tower: str, **changes) -> System:
    return System(name, {**_SOSL, "tower": tower, **changes}, _SOSL)


LOSSES = (
    _loss("SOSL", "sosl"),
    _loss("3PartL2", "three_part_l2", tuned="cut_points"),
    _loss("MSE", "mse"),
    _loss("PO", "proportional_odds"),
    _loss("Cumulative logits", "cumulative_logits", temperature=0.1),
)
# Mean number of documents of grade 1 per query; -1 is the whole set.
RELATED = (0.5, 1.0, 1.75, 2.5, -1.0)
FEWER_RELATED = tuple(
    dataclasses.replace(
        system,
        name=f"{system.name}, {'all' if mean < 0 else f'{mean:g}'}",
        changes={**system.changes, "related_per_query": mean},
    )
    for mean in RELATED
    for system in LOSSES[:4]
)
# Norms of mean losses are far below the authors' 5; on real sets, many steps reach the second.
CLIP_NORMS = {"clipped at 5": 5.0, "clipped at 0.0003": 0.0003, "not clipped": 0.0}
CLIPPING = tuple(
    System(
        f"ε = {epsilon:g}, {clipping}",
        {**_SOSL, "epsilon": epsilon, "clip_norm": norm},
        {**_SOSL, "epsilon": epsilon},
    )
    for epsilon in (0.0, 0.25, 1.0)
    for clipping, norm in CLIP_NORMS.items()
)
_ADAM = {**_SOSL, "optimizer": "adam"}


def _departure(name: str, tower: str = "average_pooling", **changes) -> System:
    """The paper's setting for a tower with some settings changed."""
    paper = {"published_towers": True, **PAPER_TOWERS[tower]} if tower in PAPER_TOWERS else {}
    return System(name, {**_ADAM, "tower": tower, **paper, **changes}, _ADAM)


DEPARTURES = (
    _departure("Average pooling: the paper's"),
    _departure("Adam without momentum", optimizer="rmsprop"),
    _departure("lazy Adam", optimizer="lazy_adam"),
    _departure("not clipped", clip_norm=0.0),
    _departure("batches of whole lists", batching="lists"),
    _departure("CNN: the authors'", "cnn"),
    _departure("CNN of --preset=fast", "cnn", published_towers=False),
    _departure("LSTM: the authors'", "lstm"),
    _departure("LSTM of --preset=fast", "lstm", published_towers=False),
)
# What the paper says without figures. Vectors of one language cannot start a table of both.
_RANDOM = {"query_embeddings": "", "document_embeddings": ""}
CHOICES = (
    _departure("Average pooling: the paper's"),
    _departure("batches of whole lists", batching="lists"),
    _departure("random word vectors", **_RANDOM),
    *(
        _departure(f"{name}, {modules}", tower, shared_vocabulary=shared, **_RANDOM)
        for name, tower in (("CNN", "cnn"), ("LSTM", "lstm"))
        for modules, shared in (("two modules", False), ("one module", True))
    ),
)
TOWERS = (
    _tower("Average pooling", "average_pooling"),
    _tower("DSSM-CNN", "cnn", published_towers=True, **PAPER_TOWERS["cnn"]),
    _tower("DSSM-LSTM", "lstm", published_towers=True, **PAPER_TOWERS["lstm"]),
)
_DENSE = PRESETS["dense"]


def _dense(*names: str) -> dict[str, object]:
    """These settings with their values in --preset=dense."""
    return {name: _DENSE[name] for name in names}


def _option(name: str, changes: Mapping[str, object]) -> System:
    return System(name, {**_SOSL, **changes})


def _changed(flags: str, changes: Mapping[str, object]) -> System:
    """--preset=dense with some settings changed."""
    return _option(f"--preset=dense {flags}", {**_DENSE, **changes})


def _cut_to(dim: int) -> System:
    """--preset=dense, read from its one run with vectors that are cut."""
    return System(f"--preset=dense, cut to {dim}", {**_SOSL, **_DENSE}, part=f"dense-{dim}")


# What --preset=dense is trained without, one after the other. All with 64 dimensions, as the paper
# has: a training then takes a fifth of the time.
_LEFT_OUT = {
    "position_weights": "none",
    "initial_vectors": "random",
    "ngram_buckets": 0,
    "token_weights": "none",
    "hard_negatives": 0,
    "loss": "sosl",
}
_SMALL = {"dim": 64}
OPTIONS = (
    _option("Paper", {}),
    _option("Shared vocabulary", _dense("shared_vocabulary")),
    _option("Character n-grams", _dense("ngram_buckets", "ngram_rows_per_word", "min_ngram")),
    _option("Dimension 512", _dense("dim")),
    _option("Dimension 512, cut to fewer", _dense("dim", "matryoshka_dims")),
    _option("One step size for a word vector", _dense("optimizer")),
    _option("Learned token weights", _dense("token_weights")),
    _option("Learned position weights", _dense("position_weights")),
    _option("Fresh negatives", {"fresh_negatives": True}),
    _option("In-batch negatives", _dense("batching", "train_negatives")),
    _option("Ordinal softmax", _dense("loss", "batching", "train_negatives")),
    _option("Hard negatives", _dense("hard_negatives")),
    _option("Larger batches and steps", _dense("batch_size", "learning_rate")),
    _option("Falling learning rate", _dense("learning_rate_decay")),
    _option("Bilingual initial vectors", _dense("initial_vectors")),
    _option("--preset=dense", _DENSE),
)
_FEW = {**_SMALL, "max_train_queries": 2000}
ABLATION = (
    _option("Paper", {}),
    _option("Paper --position_weights=learned", _dense("position_weights")),
    _changed("--dim=64", _SMALL),
    *(
        _changed(f"--dim=64 --{name}={value_text(value)}", {**_SMALL, name: value})
        for name, value in _LEFT_OUT.items()
    ),
    _changed("--dim=64 --max_train_queries=2000", _FEW),
    _changed("--dim=64 --max_train_queries=2000 --pseudo_queries=0", {**_FEW, "pseudo_queries": 0}),
    _option("--preset=dense", _DENSE),
    *map(_cut_to, reversed(_DENSE["matryoshka_dims"])),
    _changed("--matryoshka_dims=", {"matryoshka_dims": ()}),
    *(_option(f"--preset={name}", PRESETS[name]) for name in ("lexical", "best")),
)
TRAINING_QUERIES = (500, 1000, 2000, 4000, 0)  # 0: all
# One training gives three rows: a hybrid, and its parts.
LEARNING_CURVES = tuple(
    System(
        f"{name}, {number or 'all'}",
        {**_SOSL, **PRESETS["best"], "max_train_queries": number},
        part=part,
    )
    for number in TRAINING_QUERIES
    for name, part in (("towers", "dense"), ("table", "lexical"), ("hybrid", ""))
)
SMOOTHNESS = tuple(
    System(f"{e:g}", {**_SOSL, "epsilon": e}, {**_SOSL, "epsilon": e}) for e in EPSILONS
)
MORE_NEGATIVES = tuple(System(str(n), {**_SOSL, "negatives": n}, _SOSL) for n in NEGATIVES)
FEWER_QUERIES = tuple(
    System(f"{count or 'all'}", {**_SOSL, **({"max_queries": count} if count else {})}, _SOSL)
    for count in QUERIES
)
# Beside the systems of Yu and Allan 2020.
YU2020_SYSTEMS = tuple(
    _option(f"{name}, --preset={preset} (ours)", PRESETS[preset])
    for name, preset in (("Two towers", "dense"), ("PSQ", "lexical"))
)
