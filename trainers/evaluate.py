"""Evaluates a trained run: seven metrics over candidate lists, full retrieval, predicted grades.

The default is the test split of the set that the run was trained on. Data flags choose another set;
the vocabularies stay those of the run. Writes metrics.json and, for other tools, TREC run and qrels
files.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from absl import flags

from tf_smoothclir.command_line import command, setting_flags

_RUN_DIR = flags.DEFINE_string(
    "run_dir", "runs/train", "Run directory of smoothclir-train.", module_name=command.COMMAND
)
_SPLITS = flags.DEFINE_multi_enum(
    "split",
    ["test"],
    ["train", "validation", "test"],
    "Split to evaluate.",
    module_name=command.COMMAND,
)
_OUTPUT_DIR = flags.DEFINE_string(
    "output_dir",
    "",
    "Where metrics.json and the TREC files go; empty: evaluation/ in the run.",
    module_name=command.COMMAND,
)
setting_flags.define_settings(["data"])


def main(argv) -> None:
    """Evaluates the run."""
    del argv
    from tf_smoothclir.data.sources.opening import source_of
    from tf_smoothclir.evaluation.report import confusion_table, metrics_table
    from tf_smoothclir.training.run_directory import RunDirectory
    from tf_smoothclir.utils.files import make_directory, write_json

    run = RunDirectory.load(_RUN_DIR.value)
    # These imports take seconds: report a missing run first.
    from tf_smoothclir.evaluation.evaluate import evaluate_splits, metrics_content
    from tf_smoothclir.training import tasks, train

    settings = run.settings()
    data = setting_flags.settings_from_flags("data", base=settings.data)
    settings = dataclasses.replace(settings, data=data)
    tasks.check_trained(run)
    output_dir = make_directory(Path(_OUTPUT_DIR.value or run.evaluation), "--output_dir")
    tokenized_set = train.tokenized_set_of(source_of(data), settings, run, _SPLITS.value)
    graded = tasks.load_scorer(run, tokenized_set)
    negatives = settings.training.negatives
    evaluations = evaluate_splits(
        tokenized_set.retrieval_set,
        graded.scorer,
        _SPLITS.value,
        negatives=negatives,
        predict_grade=graded.predict_grade,
        trec_dir=output_dir,
    )
    write_json(output_dir / "metrics.json", metrics_content(evaluations, negatives))
    print(metrics_table(evaluations))
    for split, evaluation in evaluations.items():
        if evaluation.confusion is not None:
            print(f"{split}, pairs by grade:\n{confusion_table(evaluation.confusion)}")
    print(f"Metrics: {output_dir}/metrics.json; TREC files: {output_dir}/<split>/")


def run() -> None:
    """Entry point of `smoothclir-evaluate`."""
    command.run_main(main, __doc__, ["data"])


if __name__ == "__main__":
    run()
