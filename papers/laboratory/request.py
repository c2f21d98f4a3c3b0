"""The flags of smoothclir-reproduce, and what they ask for."""

from __future__ import annotations

import os
from pathlib import Path

from absl import flags

from tf_smoothclir import plugins
from tf_smoothclir.command_line.setting_flags import (
    check_data,
    define_fields,
    define_path,
    define_settings,
    flag,
    group_from_flags,
    settings_from_flags,
)
from tf_smoothclir.papers import li2018 as li2018  # registers their plug-ins
from tf_smoothclir.papers import yu2020 as yu2020
from tf_smoothclir.papers.laboratory.catalogue import EXPERIMENTS
from tf_smoothclir.papers.laboratory.experiment import Study
from tf_smoothclir.papers.laboratory.systems import threshold_grids
from tf_smoothclir.papers.yu2020.options import GIVEN, MAPPED, MatchingOptions
from tf_smoothclir.settings.base import LEAVE_OUT, Rule
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.utils.errors import InputError, input_error

_OUTPUT_DIR = define_path("output_dir", "runs/reproduce", "Where cells, tables and plots go.")
_SEEDS = flag("seeds", (13,), "Seeds such as 13,14,15; each system is trained once with each.")
WORKERS = flag(
    "workers",
    os.cpu_count() or 1,
    "Runs that train at the same time; they share the cores.",
    minimum=1,
)
_TUNE_EPOCHS = flag(
    "tune_epochs",
    5,
    "Epochs of a run that tunes thresholds; with too few, other thresholds win than after a full"
    " run. 0: no tuning; all systems use --thresholds and --cut_points.",
    minimum=0,
)
_THETAS = (
    flag("theta_1", (0.0, 0.2, 0.4), "Values of θ_1 to tune over."),
    flag("theta_2", (0.5, 0.7, 0.9), "Values of θ_2 to tune over."),
)
GROUPS = ("data", "text", "model", "training", "retrieval", *plugins.groups())
_EPOCHS = 10
_DECIDED = ("loss", "tower", "seed", "objective")  # by the experiments
define_fields(MatchingOptions)
define_settings(GROUPS)
flags.FLAGS.set_default("epochs", _EPOCHS)
# What goes together with what, beside the rules of the settings.
RULES = (
    Rule(
        lambda seeds: not seeds or len({*seeds}) < len(seeds) or min(seeds) < 0,
        "the seeds must differ",
        "Separate them by commas, such as 13,14,15",
    ),
    *(
        Rule(
            lambda values: values is not None and len({*values}) < max(1, len(values)),
            "the values must be different numbers",
            "Separate them by commas, such as 0,0.2",
            (theta.name,),
        )
        for theta in _THETAS
    ),
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
            LEAVE_OUT,
            ("tune_epochs", theta.name),
        )
        for theta in _THETAS
    ),
    Rule(
        lambda thresholds: len(thresholds) != 2,
        "the experiments of the paper use grades 0, 1 and 2",
        "Give two",
    ),
)


def requested(arguments: list[str]) -> tuple[list[str], Study]:
    """The experiments that arguments name, and how flags say to run them; all of it is checked."""
    unknown = sorted({*arguments} - {*EXPERIMENTS, "all"})
    if unknown or not arguments:
        raise input_error(
            "EXPERIMENT ...",
            f"unknown: {', '.join(unknown)}" if unknown else "none is named",
            f"Give one or more of: {', '.join(EXPERIMENTS)}, or all",
        )
    names = list(EXPERIMENTS) if "all" in arguments else arguments
    base = settings_from_flags(changed(RunSettings(), {"epochs": _EPOCHS}), varied=_DECIDED)
    matching, tune_epochs = group_from_flags(MatchingOptions), _TUNE_EPOCHS.value
    values = {**base.values(), **matching.values()}
    values |= {own.name: own.value for own in (_SEEDS, _TUNE_EPOCHS)}
    values |= {theta.name: theta.value if theta.present else None for theta in _THETAS}
    for rule in RULES:
        if rule.breaks(values):
            raise rule.error(values)
    for name, row in ((n, row) for n in names for row in EXPERIMENTS[n].rows):
        try:
            row.check(base, tune_epochs)  # before the first run
        except InputError as error:
            raise InputError(f"{name}, {row.name}: {error}") from error
    grids = threshold_grids(*(theta.value for theta in _THETAS)) if tune_epochs else {}
    check_data(base.data)
    for group in (group for name, group in base.groups().items() if name != "data"):
        for field, path in group.values().items():
            is_path = path and type(group).__dataclass_fields__[field].metadata["is_path"]
            if is_path and "://" not in path and not os.path.exists(path):
                raise input_error(f"--{field}={path}", "there is no such file", "Check the path")
    study = Study(base, Path(_OUTPUT_DIR.value), _SEEDS.value, grids, tune_epochs, matching)
    return names, study
