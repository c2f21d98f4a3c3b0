"""The work of smoothclir-train, by its flags: trains, begins again after a lost one, reports."""

from __future__ import annotations

import os
import time
from pathlib import Path

from absl import logging

from tf_smoothclir.command_line import command
from tf_smoothclir.command_line.setting_flags import FLAGS, check_data, given_settings
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.settings.presets import preset_settings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.training.run_directory import RunDirectory

_PRINTED = ("cross-validation", "test")
_SECONDS_BEFORE_NEXT_TRY = 1.0  # if another process is lost again at once


def train_by_flags(settings: RunSettings) -> None:
    """Trains in --output_dir and prints the metrics of the test split."""
    reads_set = settings.training.distribution == "none"  # else not all processes do
    if reads_set and not RunDirectory(Path(FLAGS.output_dir)).finished:
        check_data(settings.data)
    # These imports take seconds: report a missing set first.
    from tf_smoothclir.evaluation.report import print_results
    from tf_smoothclir.training.grades import needs_table_alone, with_grades_of_set
    from tf_smoothclir.training.processes import ProcessLost
    from tf_smoothclir.training.train import train

    if reads_set and os.path.exists(settings.data.data_dir) and not settings.training.init_from:
        given, preset = given_settings(), FLAGS.preset if FLAGS["preset"].present else ""
        if needs_table_alone(source_of(settings.data), preset, given):
            settings = preset_settings("lexical", given)
    if reads_set and not (FLAGS["thresholds"].present or settings.training.init_from):
        settings = with_grades_of_set(settings, FLAGS.output_dir, overwrite=FLAGS.overwrite)
    try:
        result = train(settings, FLAGS.output_dir, overwrite=FLAGS.overwrite, folds=FLAGS.folds)
    except ProcessLost as lost:
        logging.warning("%s", lost)
        time.sleep(_SECONDS_BEFORE_NEXT_TRY)
        command.restart("--nooverwrite")
    if result:
        print_results(result, [split for split in _PRINTED if split in result])
        print(f"Report: {FLAGS.output_dir}/report.md")
