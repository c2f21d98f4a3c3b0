"""Reproduces tables and figures of three papers on your sets, with significance tests.

They are those of Liu et al. 2020 and, by the beginnings of their names, of Yu and Allan 2020
(yu2020) and of Li and Cheng 2018 (li2018).

Each experiment is a grid of training runs ("cells"), which run on all cores and are kept in
OUTPUT_DIR/cells. The same command continues interrupted cells and skips finished ones; tables and
figures share their cells. Short runs of the first seed tune the thresholds on validation.
OUTPUT_DIR/EXPERIMENT gets Markdown, CSV, LaTeX and PNG files, OUTPUT_DIR/report.html all of them.
Without --data_dir, the experiments use the built-in toy world. They set loss, tower and seed
themselves: --loss, --tower and --seed have no effect.

Runs for each set: Table 2 has at least 44 short runs (9 pairs of thresholds as far as scores reach
them, 8 triples of cut points, for 5 losses; more where the best lies at an edge) and 5 full runs
per seed; Table 3 adds 2 per seed, Figure 3 none, Figure 4 about 60 short runs and 8 per seed,
Figure 5 adds 8 per seed, gradients 6, related 16, queries 5, fast 8, choices 6, gap 5, options
16 per seed, and the ablation 15 per seed; yu2020_table3 18 small ones, two towers and a
translation table, yu2020_figure1 10. The tables of Li and Cheng 2018, li2018_..., have 7, 6 and 11
more runs per seed. The pages in papers/ have times and results.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from absl import flags, logging

from tf_smoothclir import plugins
from tf_smoothclir.command_line import command, setting_flags
from tf_smoothclir.papers import li2018 as li2018  # registers their plug-ins
from tf_smoothclir.papers import yu2020 as yu2020
from tf_smoothclir.papers.laboratory.catalogue import EXPERIMENTS
from tf_smoothclir.papers.yu2020.options import WORD_VECTORS, MatchingOptions
from tf_smoothclir.settings.combinations import check_combinations
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.utils.errors import input_error

_OWN = {"module_name": command.COMMAND}
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
_GROUPS = ("text", "model", "training", "retrieval", *plugins.groups())
_DECIDED = ("loss", "tower", "seed", "objective")  # by the experiments
setting_flags.define_settings(_GROUPS)
flags.FLAGS.set_default("epochs", 10)


def main(argv) -> None:
    """Runs the experiments that the arguments name."""
    names = _experiments(argv[1:])
    seeds = _numbers(_SEEDS, int)
    base = RunSettings(
        data=DataSettings(
            toy_entities=_TOY_ENTITIES.value,
            max_queries=_MAX_QUERIES.value,
            cache_dir=_CACHE_DIR.value and os.path.abspath(_CACHE_DIR.value),
        ),
    )
    given = {
        group: setting_flags.settings_from_flags(group, varied=_DECIDED, seeds=seeds)
        for group in _GROUPS
    }
    base = RunSettings.from_groups({**base.groups(), **given})
    matching = MatchingOptions(
        _WORD_VECTORS.value, **{field: flag.value for field, flag in _MATCHING.items()}
    )
    check_combinations(base, varied=_DECIDED, seeds=seeds)
    if matching.word_vectors == "towers" and matching.folds:
        raise input_error(
            f"--word_vectors=towers --matching_folds={matching.folds}",
            "towers are trained on the splits of the set, so on queries that folds test",
            "Leave one of the two out",
        )
    if len(base.model.thresholds) != 2:
        raise input_error(
            "--thresholds", "the experiments of the paper use grades 0, 1 and 2", "Give two"
        )
    # These imports take seconds, so the flags are checked first.
    for directory in _DATA_DIRS.value:
        setting_flags.check_data_dir(directory)
    from tf_smoothclir.papers.laboratory.plan import Study, threshold_grids
    from tf_smoothclir.papers.laboratory.reproduce import reproduce
    from tf_smoothclir.papers.laboratory.sets import data_settings, open_sets

    grids = {}
    if _TUNE_EPOCHS.value:
        grids = threshold_grids(_numbers(_THETA_1, float), _numbers(_THETA_2, float))
    directories = list(map(os.path.abspath, _DATA_DIRS.value))
    data = data_settings(base.data, directories, _TFDS_NAMES.value, _LANGUAGES.value)
    study = Study(Path(_OUTPUT_DIR.value), seeds, grids, _TUNE_EPOCHS.value, matching)
    failures = reproduce(
        names,
        open_sets(base, data),
        study,
        processes=_WORKERS.value,
        command=shlex.join(["smoothclir-reproduce", *sys.argv[1:]]),
    )
    print(f"Report: {_OUTPUT_DIR.value}/report.html")
    if failures:
        logging.flush()
        sys.exit("error: these runs failed, all others are done:\n" + "\n".join(failures))


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


def run() -> None:
    """Entry point of `smoothclir-reproduce`."""
    command.run_main(main, __doc__, _GROUPS, arguments=f"{' '.join(EXPERIMENTS)}, or all")


if __name__ == "__main__":
    run()
