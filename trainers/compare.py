"""Compares systems with a baseline: differences, intervals, significance tests, effect sizes.

RUN is the directory of a finished smoothclir-train, one that smoothclir-evaluate wrote, such as
RUN/evaluation/by-lexical, or a TREC run file of any system, which needs --qrels. The first RUN is
the baseline. The metrics are the seven of the paper; all queries have the same weight.
"""

from __future__ import annotations

import os
from pathlib import Path

from absl import flags

from tf_smoothclir.command_line import command
from tf_smoothclir.settings.training import METRICS

_SPLIT = flags.DEFINE_enum(
    "split",
    "test",
    ["train", "validation", "test"],
    "Split to compare, where RUN is a run directory.",
    module_name=command.COMMAND,
)
_FULL = flags.DEFINE_boolean(
    "full",
    False,
    "Compare full retrieval instead of re-ranking, where RUN is a run directory.",
    module_name=command.COMMAND,
)
_QRELS = flags.DEFINE_string(
    "qrels", "", "TREC qrels of the runs that are files.", module_name=command.COMMAND
)
_METRICS = flags.DEFINE_multi_enum(
    "metric",
    list(METRICS),
    list(METRICS),
    "Metric to compare by.",
    module_name=command.COMMAND,
)
_BASELINE = flags.DEFINE_string(
    "baseline",
    "",
    "Name of the baseline as in the table; empty: the first run.",
    module_name=command.COMMAND,
)
_SAMPLES = flags.DEFINE_integer(
    "samples",
    100_000,
    "Random sign patterns that the randomisation test draws.",
    lower_bound=1,
    module_name=command.COMMAND,
)
_SEED = flags.DEFINE_integer(
    "seed",
    13,
    "Seed of the randomisation test and of the bootstrap.",
    lower_bound=0,
    module_name=command.COMMAND,
)
_OUTPUT_DIR = flags.DEFINE_string(
    "output_dir",
    "",
    "Directory for comparison.md, .csv, .tex and .json; empty: the table is only printed.",
    module_name=command.COMMAND,
)


def main(argv) -> None:
    """Compares the given runs."""
    from tf_smoothclir.evaluation import compare, comparison_report
    from tf_smoothclir.utils.errors import input_error
    from tf_smoothclir.utils.files import make_directory
    from tf_smoothclir.utils.tables import print_table

    paths = argv[1:]
    names = compare.system_names(paths)
    baseline = compare.checked_baseline(names, _BASELINE.value)
    if _QRELS.value and all(map(os.path.isdir, paths)):
        reason = "every run is a directory, which holds its own judgments"
        raise input_error(f"--qrels={_QRELS.value}", reason, "Leave it out")
    if not any(map(os.path.isdir, paths)):
        for flag in (_FULL, _SPLIT):
            if flag.value != flag.default:
                raise input_error(f"--{flag.name}", "every run is a file", "Leave it out")
    output_dir = make_directory(_OUTPUT_DIR.value, "--output_dir") if _OUTPUT_DIR.value else None
    systems, best_grade = compare.read_systems(dict(zip(names, map(_files, paths))))
    seed, samples = _SEED.value, _SAMPLES.value
    rows = compare.compare(
        systems, baseline=baseline, metrics=_METRICS.value, seed=seed, samples=samples
    )
    rules = comparison_report.legend(
        rows, systems, baseline=baseline, best_grade=best_grade, seed=seed, samples=samples
    )
    print_table(comparison_report.HEADER, comparison_report.table_rows(rows, baseline), keys=2)
    print("".join(f"* {name}: {text}.\n" for name, text in rules.items()), end="")
    if output_dir:
        comparison_report.write_comparison(output_dir, rows, systems, baseline, rules)
        print(f"\nTables: {output_dir}/comparison.md, .csv, .tex, .json")


def _files(path: str) -> tuple[Path, Path]:
    """The TREC run and qrels files of a run."""
    from tf_smoothclir.training.run_directory import RunDirectory
    from tf_smoothclir.utils.errors import input_error

    if not os.path.isdir(path):
        if not _QRELS.value:
            raise input_error(path, "it is not a run directory", "Give its judgments with --qrels")
        return Path(path), Path(_QRELS.value)
    split, prefix = _SPLIT.value, "full." if _FULL.value else ""
    directory = Path(path, split)
    if not directory.is_dir():  # else smoothclir-evaluate wrote it
        directory = RunDirectory.load(path, verify=False).evaluation / split
    run, qrels = directory / f"{prefix}run.trec", directory / f"{prefix}qrels.trec"
    if not run.is_file():
        raise input_error(
            path,
            f"it has no {run.name} of the {split} split",
            f"Finish the training, or run smoothclir-evaluate --run_dir={path} --split={split}",
        )
    return run, qrels


def run() -> None:
    """Entry point of `smoothclir-compare`."""
    command.run_main(main, __doc__, arguments="RUN RUN ...")


if __name__ == "__main__":
    run()
