"""Trains what ranks documents: two towers, a translation table, or both.

It tokenises the set, trains, evaluates the test split, and writes a run directory with metrics.json
and report.md. Without --data_dir, it trains on the built-in toy world. The default is two towers
with Smooth Cosine Similarity and Smooth Ordinal Search Loss; --preset=paper trains them as the
paper does, more slowly. --preset=best ranks best here. --retriever=lexical learns a translation
table instead, --retriever=hybrid both. To continue after an interruption, give the same command
again.
"""

from __future__ import annotations

import time
from pathlib import Path

from absl import flags, logging

from tf_smoothclir.command_line import command, setting_flags
from tf_smoothclir.settings.run import GROUPS

_OUTPUT_DIR = flags.DEFINE_string(
    "output_dir", "runs/train", "The run directory.", module_name=command.COMMAND
)
_OVERWRITE = flags.DEFINE_boolean(
    "overwrite",
    False,
    "Delete the run in --output_dir and start again.",
    module_name=command.COMMAND,
)
_SECONDS_BEFORE_NEXT_TRY = 1.0  # if another worker is lost again at once
setting_flags.define_preset()
setting_flags.define_settings()


def main(argv) -> None:
    """Trains the model."""
    del argv
    settings = setting_flags.run_settings_from_flags()
    from tf_smoothclir.training.run_directory import RunDirectory

    needs_set = not RunDirectory(Path(_OUTPUT_DIR.value)).finished
    if needs_set and not settings.training.shards_dir:
        setting_flags.check_data_dir(settings.data.data_dir)
    # These imports take seconds: report a missing set first.
    from tf_smoothclir.evaluation.report import print_results
    from tf_smoothclir.training.distributed.workers import WorkerLost
    from tf_smoothclir.training.grades import with_grades_of_set
    from tf_smoothclir.training.train import train

    given = flags.FLAGS["thresholds"].present or settings.training.init_from
    if not given and not settings.training.shards_dir:
        settings = with_grades_of_set(settings, _OUTPUT_DIR.value, overwrite=_OVERWRITE.value)
    try:
        result = train(settings, _OUTPUT_DIR.value, overwrite=_OVERWRITE.value)
    except WorkerLost as lost:
        logging.warning("%s", lost)
        time.sleep(_SECONDS_BEFORE_NEXT_TRY)
        command.restart("--nooverwrite")
    if result:
        print_results(result, ["test"])
        print(f"Report: {_OUTPUT_DIR.value}/report.md")


def run() -> None:
    """Entry point of `smoothclir-train`."""
    command.run_main(main, __doc__, tuple(GROUPS))


if __name__ == "__main__":
    run()
