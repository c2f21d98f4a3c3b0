"""The flags of smoothclir-reproduce, and the experiments that they ask for."""

from __future__ import annotations

import dataclasses
import functools
import os
from pathlib import Path

from absl import flags

from tf_smoothclir import plugins
from tf_smoothclir.command_line import setting_flags
from tf_smoothclir.data.sources.file_source import checked_directory
from tf_smoothclir.papers import li2018 as li2018  # registers their plug-ins
from tf_smoothclir.papers import yu2020 as yu2020
from tf_smoothclir.papers.laboratory.catalogue import EXPERIMENTS
from tf_smoothclir.papers.yu2020.options import GIVEN, MAPPED, WORD_VECTORS, MatchingOptions
from tf_smoothclir.settings.base import Rule
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.utils.errors import InputError, input_error


def _own(kind: str):
    """What defines a flag of the command's own."""
    return functools.partial(getattr(flags, f"DEFINE_{kind}"), module_name=setting_flags.COMMAND)


_strings, _integer, _list, _enum = map(_own, ("multi_string", "integer", "list", "enum"))
_OUTPUT_DIR = setting_flags.define_path(
    "output_dir", "runs/reproduce", "Where cells, tables and plots go."
)
_DATA_DIRS = setting_flags.define_path("data_dir", [], "Directory of a retrieval set.", many=True)
_TFDS_NAMES = _strings("tfds_name", [], "TensorFlow dataset such as wiki_clir/fr.")
_LANGUAGES = _strings(
    "document_language",
    [],
    "Document language. Needed only for a directory with several languages;"
    " without a directory, it names toy worlds.",
)
_CACHE_DIR = setting_flags.define_path(
    "cache_dir", "", "Where tokenized sets are kept; empty: ~/.cache/tf_smoothclir."
)
_TOY_ENTITIES = _integer(
    "toy_entities", 2000, "Size of the toy world, in entities.", lower_bound=300
)
_MAX_QUERIES = _integer(
    "max_queries",
    0,
    "Use only this many judged queries of each set (the authors: 25,000). 0: all queries.",
    lower_bound=0,
)
_SEEDS = _list("seeds", ["13"], "Seeds such as 13,14,15; each system is trained once with each.")
_WORKERS = _integer(
    "workers",
    os.cpu_count() or 1,
    "Runs that train at the same time; they share the cores.",
    lower_bound=1,
)
_TUNE_EPOCHS = _integer(
    "tune_epochs",
    5,
    "Epochs of a run that tunes thresholds; with too few, other thresholds win than after a full"
    " run. 0: no tuning; all systems use --thresholds and --cut_points.",
    lower_bound=0,
)
_THETA_1 = _list("theta_1", ["0", "0.2", "0.4"], "Values of θ_1 to tune over.")
_THETA_2 = _list("theta_2", ["0.5", "0.7", "0.9"], "Values of θ_2 to tune over.")
_MATCHING_FLAGS = {
    "epochs": ("matching_epochs", "At most so many epochs of DRMM and K-NRM (paper: 50)."),
    "pyramid_epochs": (
        "pyramid_epochs",
        "At most so many epochs of MatchPyramid and late interaction. 0 leaves their rows out.",
    ),
    "pyramid_query_words": (
        "pyramid_query_words",
        "Words of a query that these two read: their time grows with them.",
    ),
    "pyramid_document_words": ("pyramid_document_words", "The same of documents."),
    "folds": (
        "matching_folds",
        "Experiments of yu2020: folds of a rotating cross-validation, where each query is a test"
        " query once (paper: 5); this takes as many times as long. 0: the splits of the set.",
    ),
}
_MATCHING = {
    field: _integer(name, getattr(MatchingOptions, field), text, lower_bound=0)
    for field, (name, text) in _MATCHING_FLAGS.items()
}
_WORD_VECTORS = _enum(
    "word_vectors",
    MatchingOptions.word_vectors,
    sorted(WORD_VECTORS),
    "Word vectors of the experiments of yu2020. "
    + ". ".join(f"{name}: {text}" for name, text in WORD_VECTORS.items())
    + ".",
)
GROUPS = ("text", "model", "training", "retrieval", *plugins.groups())
_EPOCHS = 10
_DECIDED = ("loss", "tower", "seed", "objective")  # by the experiments
setting_flags.define_settings(GROUPS)
flags.FLAGS.set_default("epochs", _EPOCHS)
# What goes together with what, beside the rules of the settings.
RULES = (
    Rule(
        lambda seeds, retriever: retriever != "dense",
        "the experiments decide what ranks",
        "Leave it out",
    ),
    Rule(
        lambda seeds, distribution: distribution != "none",
        "the experiments train each run in one process",
        "Leave it out",
    ),
    Rule(
        lambda word_vectors, query_embeddings, document_embeddings: (
            word_vectors in (GIVEN, MAPPED) and not (query_embeddings and document_embeddings)
        ),
        "there are no vectors",
        "Give --query_embeddings and --document_embeddings, and their --dim",
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
    """What a command asks for; everything is checked, nothing is loaded."""

    names: list[str]
    base: RunSettings  # the settings that the experiments change
    seeds: tuple[int, ...]
    matching: MatchingOptions
    thetas: tuple[tuple[float, ...], ...]  # values of θ_1 and of θ_2; empty: none are tuned
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
        for name, row in ((n, row) for n in names for row in EXPERIMENTS[n].rows):
            try:
                row.check(base, _TUNE_EPOCHS.value)  # before the first run
            except InputError as error:
                raise InputError(f"{name}, {row.name}: {error}") from error
        for directory in _DATA_DIRS.value:
            if not Path(directory).is_file():
                checked_directory(directory)
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
    base = setting_flags.settings_from_flags(base, varied=_DECIDED)
    for group in base.groups().values():
        for field in dataclasses.fields(group):
            path = field.metadata["is_path"] and getattr(group, field.name)
            if path and "://" not in path and not os.path.exists(path):
                where = f"--{field.name}={path}"
                raise input_error(where, "there is no such file", "Check the path")
    return base


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
