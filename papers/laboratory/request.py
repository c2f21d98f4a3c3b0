"""The flags of smoothclir-reproduce, and the experiments that they ask for."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

from absl import flags

from tf_smoothclir import plugins
from tf_smoothclir.command_line import setting_flags
from tf_smoothclir.papers import li2018 as li2018  # registers their plug-ins
from tf_smoothclir.papers import yu2020 as yu2020
from tf_smoothclir.papers.laboratory.catalogue import EXPERIMENTS
from tf_smoothclir.papers.yu2020.options import WORD_VECTORS, MatchingOptions
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.rule import Rule
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.utils.errors import input_error

_OWN = {"module_name": setting_flags.COMMAND}
_OUTPUT_DIR = flags.DEFINE_string(
    "output_dir", "runs/reproduce", "Where cells, tables and plots go.", **_OWN
)
_DATA_DIRS = flags.DEFINE_multi_string("data_dir", [], "Directory of a retrieval set.", **_OWN)
_TFDS_NAMES = flags.DEFINE_multi_string(
    "tfds_name", [], "TensorFlow dataset such as wiki_clir/fr.", **_OWN
)
_LANGUAGES = flags.DEFINE_multi_string(
    "document_language",
    [],
    "Document language. Needed only for a directory with several languages;"
    " without a directory, it names toy worlds.",
    **_OWN,
)
_CACHE_DIR = flags.DEFINE_string(
    "cache_dir", "", "Where tokenized sets are kept; empty: ~/.cache/tf_smoothclir.", **_OWN
)
_TOY_ENTITIES = flags.DEFINE_integer(
    "toy_entities", 2000, "Size of the toy world, in entities.", lower_bound=300, **_OWN
)
_MAX_QUERIES = flags.DEFINE_integer(
    "max_queries",
    0,
    "Use only this many judged queries of each set (the authors: 25,000). 0: all queries.",
    lower_bound=0,
    **_OWN,
)
_SEEDS = flags.DEFINE_list(
    "seeds", ["13"], "Seeds such as 13,14,15; each system is trained once with each.", **_OWN
)
_WORKERS = flags.DEFINE_integer(
    "workers",
    os.cpu_count() or 1,
    "Runs that train at the same time; they share the cores.",
    lower_bound=1,
    **_OWN,
)
_TUNE_EPOCHS = flags.DEFINE_integer(
    "tune_epochs",
    5,
    "Epochs of a run that tunes thresholds; with too few, other thresholds win than after a full"
    " run. 0: no tuning; all systems use --thresholds and --cut_points.",
    lower_bound=0,
    **_OWN,
)
_THETA_1 = flags.DEFINE_list("theta_1", ["0", "0.2", "0.4"], "Values of θ_1 to tune over.", **_OWN)
_THETA_2 = flags.DEFINE_list(
    "theta_2", ["0.5", "0.7", "0.9"], "Values of θ_2 to tune over.", **_OWN
)
_MATCHING_FLAGS = {
    "epochs": ("matching_epochs", "At most so many epochs of DRMM and K-NRM (paper: 50)."),
    "patience": (
        "matching_patience",
        "Epochs of a matching model without a better one after which training ends. 0: never.",
    ),
    "query_words": ("matching_query_words", "Words of a query that DRMM and K-NRM read."),
    "document_words": (
        "matching_document_words",
        "Words of a document that DRMM and K-NRM read (paper: 500).",
    ),
    "pyramid_epochs": (
        "pyramid_epochs",
        "At most so many epochs of MatchPyramid, Conv-KNRM and late interaction. 0 leaves their"
        " rows out.",
    ),
    "pyramid_query_words": (
        "pyramid_query_words",
        "Words of a query that these three read: their time grows with them.",
    ),
    "pyramid_document_words": ("pyramid_document_words", "The same of documents."),
    "folds": (
        "matching_folds",
        "Experiments of yu2020: folds of a rotating cross-validation, where each query is a test"
        " query once (paper: 5); this takes as many times as long. 0: the splits of the set.",
    ),
}
_DEFAULTS = MatchingOptions()
_MATCHING = {
    field: flags.DEFINE_integer(name, getattr(_DEFAULTS, field), text, lower_bound=0, **_OWN)
    for field, (name, text) in _MATCHING_FLAGS.items()
}
_WORD_VECTORS = flags.DEFINE_enum(
    "word_vectors",
    _DEFAULTS.word_vectors,
    sorted(WORD_VECTORS),
    "Word vectors of the experiments of yu2020. "
    + ". ".join(f"{name}: {text}" for name, text in WORD_VECTORS.items())
    + ".",
    **_OWN,
)
GROUPS = ("text", "model", "training", "retrieval", *plugins.groups())
_EPOCHS = 10
_DECIDED = ("loss", "tower", "seed", "objective")  # by the experiments
setting_flags.define_settings(GROUPS)
flags.FLAGS.set_default("epochs", _EPOCHS)
# What goes together with what, beside the rules of the settings; see `_values`.
RULES = (
    Rule(
        lambda seeds, retriever: retriever != "dense",
        "the experiments decide what ranks; the ablation has rows of each retriever",
        "Leave it out",
    ),
    Rule(
        lambda seeds, distribution: distribution != "none",
        "the experiments train each run in one process",
        "Leave it out",
    ),
    Rule(
        lambda word_vectors, matching_folds: word_vectors == "towers" and matching_folds > 0,
        "towers are trained on the splits of the set, so on queries that folds test",
        "Leave one of the two out",
    ),
    *(
        Rule(
            lambda epochs, values: epochs == 0 and values is not None,
            "--tune_epochs=0 tunes no thresholds, so there are none to try",
            "Leave one of the two out",
            ("tune_epochs", theta),
        )
        for theta in ("theta_1", "theta_2")
    ),
)


@dataclasses.dataclass(frozen=True)
class Request:
    """What a command asks for; everything is checked, nothing is loaded.

    Attributes:
        base: The settings that the experiments change.
        thetas: Values of θ_1 and of θ_2; empty: none are tuned.
    """

    names: list[str]
    base: RunSettings
    seeds: tuple[int, ...]
    matching: MatchingOptions
    thetas: tuple[tuple[float, ...], ...]
    tune_epochs: int
    directories: list[str]
    tfds_names: list[str]
    languages: list[str]
    output_dir: Path
    workers: int

    @classmethod
    def of(cls, arguments: list[str]) -> Request:
        """The request of the flags and of the names of experiments."""
        names, seeds = _experiments(arguments), _numbers(_SEEDS, int)
        base = _base_settings()
        matching = MatchingOptions(
            _WORD_VECTORS.value, **{field: flag.value for field, flag in _MATCHING.items()}
        )
        values = {
            **base.values(),
            "seeds": seeds,
            "word_vectors": matching.word_vectors,
            "matching_folds": matching.folds,
            "tune_epochs": _TUNE_EPOCHS.value,
            **{flag.name: flag.value if flag.present else None for flag in (_THETA_1, _THETA_2)},
        }
        for rule in RULES:
            if rule.breaks(values):
                raise rule.error(values)
        if len(base.model.thresholds) != 2:
            reason = "the experiments of the paper use grades 0, 1 and 2"
            raise input_error("--thresholds", reason, "Give two")
        for directory in _DATA_DIRS.value:
            setting_flags.check_data_dir(directory)
        return cls(
            names,
            base,
            seeds,
            matching,
            tuple(_numbers(flag, float) for flag in (_THETA_1, _THETA_2) if _TUNE_EPOCHS.value),
            _TUNE_EPOCHS.value,
            list(map(os.path.abspath, _DATA_DIRS.value)),
            _TFDS_NAMES.value,
            _LANGUAGES.value,
            Path(_OUTPUT_DIR.value),
            _WORKERS.value,
        )


def _base_settings() -> RunSettings:
    """The settings of the flags, without those that each experiment decides."""
    data = DataSettings(
        toy_entities=_TOY_ENTITIES.value,
        max_queries=_MAX_QUERIES.value,
        cache_dir=_CACHE_DIR.value and os.path.abspath(_CACHE_DIR.value),
    )
    base = changed(RunSettings(data=data), {"epochs": _EPOCHS})
    return setting_flags.settings_from_flags(base, varied=_DECIDED)


def _experiments(arguments: list[str]) -> list[str]:
    unknown = sorted({*arguments} - {*EXPERIMENTS, "all"})
    if unknown or not arguments:
        raise input_error(
            "EXPERIMENT ...",
            f"unknown: {', '.join(unknown)}" if unknown else "none is named",
            f"Give one or more of: {', '.join(EXPERIMENTS)}, or all",
        )
    return list(EXPERIMENTS) if "all" in arguments else arguments


def _numbers(flag: flags.FlagHolder, kind: type) -> tuple:
    try:
        numbers = tuple(map(kind, flag.value))
    except ValueError:
        numbers = ()
    if not numbers or len(set(numbers)) < len(numbers) or (kind is int and min(numbers) < 0):
        raise input_error(
            f"--{flag.name}={','.join(flag.value)}",
            "the values must be different numbers" if kind is float else "the seeds must differ",
            "Separate them by commas, such as " + ("0,0.2" if kind is float else "13,14,15"),
        )
    return numbers
