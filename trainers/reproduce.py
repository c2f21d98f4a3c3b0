"""Reproduces the tables and figures of Liu et al. 2020 on your sets, with significance tests.

Each experiment is a grid of training runs ("cells"), worked through on all cores and kept in
OUTPUT_DIR/cells: what is finished is not done again, what was interrupted continues when the same
command is given again, and tables and figures share their cells. Thresholds are tuned on validation
by short runs of the first seed. OUTPUT_DIR/EXPERIMENT has Markdown, CSV, LaTeX and PNG files,
OUTPUT_DIR/report.html all of it. Without --data_dir everything is about the built-in toy world.
The experiments decide about loss, tower and seed, whatever --loss, --tower and --seed say.

Runs for each set: Table 2 has 44 short ones (9 pairs of thresholds, 8 triples of cut points, for 5
losses) and 5 full ones a seed; Table 3 adds 2 a seed, Figure 3 none, Figure 4 has 72 short ones and
8 a seed more, Figure 5 8 a seed, the ablation of what goes beyond the paper 14 a seed. BUILD.md
says how long they take.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from absl import flags, logging

from tf_smoothclir.command_line import command, setting_flags
from tf_smoothclir.experiments.catalogue import EXPERIMENTS
from tf_smoothclir.settings.combinations import check_combinations
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.utils.errors import input_error

_OWN = {"module_name": command.COMMAND}
_OUTPUT_DIR = flags.DEFINE_string(
    "output_dir", "runs/reproduce", "Where cells, tables and plots go.", **_OWN
)
_DATA_DIRS = flags.DEFINE_multi_string(
    "data_dir", [], "Directory of a retrieval set; may be given more than once.", **_OWN
)
_TFDS_NAMES = flags.DEFINE_multi_string(
    "tfds_name", [], "TensorFlow dataset such as wiki_clir/fr; may be given more than once.", **_OWN
)
_LANGUAGES = flags.DEFINE_multi_string(
    "document_language",
    [],
    "Language of the documents; may be given more than once. Only needed where a directory has"
    " several languages; without a directory it names toy worlds.",
    **_OWN,
)
_CACHE_DIR = flags.DEFINE_string(
    "cache_dir", "", "Where prepared texts are kept; empty: ~/.cache/tf_smoothclir.", **_OWN
)
_TOY_ENTITIES = flags.DEFINE_integer(
    "toy_entities", 2000, "Number of entities in the toy world.", lower_bound=300, **_OWN
)
_SEEDS = flags.DEFINE_list(
    "seeds", ["13"], "Each system is trained once with each, such as 13,14,15.", **_OWN
)
_WORKERS = flags.DEFINE_integer(
    "workers",
    os.cpu_count() or 1,
    "Runs at the same time, each with its share of the cores.",
    lower_bound=1,
    **_OWN,
)
_TUNE_EPOCHS = flags.DEFINE_integer(
    "tune_epochs",
    5,
    "Epochs of a run that helps to choose thresholds; too few choose others than are best in the"
    " end. 0: no tuning, all have --thresholds and --cut_points.",
    lower_bound=0,
    **_OWN,
)
_THETA_1 = flags.DEFINE_list("theta_1", ["0", "0.2", "0.4"], "Values of θ_1 to try.", **_OWN)
_THETA_2 = flags.DEFINE_list("theta_2", ["0.5", "0.7", "0.9"], "Values of θ_2 to try.", **_OWN)
_GROUPS = ("text", "model", "training")
_DECIDED = ("loss", "tower", "seed")  # by the experiments
setting_flags.define_settings(_GROUPS)
flags.FLAGS.set_default("epochs", 10)


def main(argv) -> None:
    """Makes the experiments that the arguments name."""
    names = _experiments(argv[1:])
    seeds = _numbers(_SEEDS, int)
    base = RunSettings(
        data=DataSettings(
            toy_entities=_TOY_ENTITIES.value,
            cache_dir=_CACHE_DIR.value and os.path.abspath(_CACHE_DIR.value),
        ),
        **{
            group: setting_flags.settings_from_flags(group, varied=_DECIDED, seeds=seeds)
            for group in _GROUPS
        },
    )
    check_combinations(base, varied=_DECIDED, seeds=seeds)
    if len(base.model.thresholds) != 2:
        raise input_error(
            "--thresholds", "the experiments of the paper have the grades 0, 1 and 2", "Give two"
        )
    # Takes seconds: not before the flags are right.
    from tf_smoothclir.experiments.plan import Study, threshold_grids
    from tf_smoothclir.experiments.reproduce import reproduce
    from tf_smoothclir.experiments.sets import data_settings, open_sets

    grids = {}
    if _TUNE_EPOCHS.value:
        grids = threshold_grids(_numbers(_THETA_1, float), _numbers(_THETA_2, float))
    directories = list(map(os.path.abspath, _DATA_DIRS.value))
    data = data_settings(base.data, directories, _TFDS_NAMES.value, _LANGUAGES.value)
    study = Study(Path(_OUTPUT_DIR.value), seeds, grids, _TUNE_EPOCHS.value)
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
        sys.exit("error: these runs failed, the rest is done:\n" + "\n".join(failures))


def _experiments(arguments: list[str]) -> list[str]:
    unknown = sorted({*arguments} - {*EXPERIMENTS, "all"})
    if unknown or not arguments:
        raise input_error(
            "EXPERIMENT ...",
            f"there is none called {', '.join(unknown)}" if unknown else "none is named",
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
            "these are not different numbers" if kind is float else "these are not different seeds",
            "Give them with commas between, such as " + ("0,0.2" if kind is float else "13,14,15"),
        )
    return numbers


def run() -> None:
    """Entry point of `smoothclir-reproduce`."""
    command.run_main(main, __doc__, _GROUPS, arguments=f"{' '.join(EXPERIMENTS)}, or all")


if __name__ == "__main__":
    run()
