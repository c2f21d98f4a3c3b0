"""The work of smoothclir-train, smoothclir-evaluate and smoothclir-teach, by their flags."""

import os
import time
from pathlib import Path

from absl import logging

from tf_smoothclir.command_line import command, setting_flags
from tf_smoothclir.command_line.setting_flags import (
    FLAGS,
    given_preset,
    given_settings,
    group_from_flags,
)
from tf_smoothclir.data.sources.opening import query_log_of, source_of
from tf_smoothclir.settings.data import LANGUAGES, DataSettings, EncoderSettings
from tf_smoothclir.settings.presets import preset_settings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.training import CROSS_VALIDATION
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.utils.errors import input_error

_PRINTED = (CROSS_VALIDATION, "test")
_SECONDS_BEFORE_NEXT_TRY = 1.0  # if another process is lost again at once


def train_by_flags(settings: RunSettings) -> None:
    """Trains in --output_dir and prints the metrics of the test split."""
    reads_set = settings.training.distribution == "none"  # else not all processes do
    if reads_set and not RunDirectory(Path(FLAGS.output_dir)).finished:
        setting_flags.check_data(settings.data)
    if settings.retrieval.retriever == settings.retrieval.with_task:
        # TensorFlow keeps the memory of each step for the next: 10 to 40% less work of the
        # processor for long vectors. Where a table is learned before, that memory would add up.
        os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "1")
    # These imports take seconds: report a missing set first.
    from tf_smoothclir.evaluation.report import print_results
    from tf_smoothclir.training.evaluated_sets import needs_table_alone, with_grades_of_set
    from tf_smoothclir.training.processes import ProcessLost
    from tf_smoothclir.training.train import train

    if reads_set and os.path.exists(settings.data.data_dir) and not settings.training.init_from:
        given = given_settings()
        if needs_table_alone(source_of(settings.data), given_preset(), given):
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


def evaluate_by_flags() -> None:
    """Evaluates a run or a foreign encoder, and prints the metrics."""
    run = None if FLAGS.encoder else RunDirectory.load(FLAGS.run_dir, verify=FLAGS.verify)
    # These imports take seconds: report a missing run first.
    from tf_smoothclir.evaluation.report import print_results
    from tf_smoothclir.training.run_evaluation import evaluate_encoder, evaluate_run

    more = {"output_dir": FLAGS.output_dir, "measures": FLAGS.measures}
    if run is None:
        encoder, data = group_from_flags(EncoderSettings), setting_flags.settings_from_flags().data
        content, path = evaluate_encoder(encoder, data, FLAGS.split, **more)
    else:
        data = setting_flags.data_like(run.settings().data)
        more |= {"retriever": FLAGS.retriever, "dim": FLAGS.dim}
        splits = FLAGS.split if FLAGS["split"].present or FLAGS["split_seed"].present else ()
        content, path = evaluate_run(run, data, splits, **more)
    print_results(content, FLAGS.split)
    print(f"Metrics: {path}/metrics.json; TREC files and per_query.tsv: {path}/<split>/")


def teach_by_flags() -> None:
    """Writes a set with the judgments of an encoder; trains on it and exports, if so wanted."""
    if not FLAGS.encoder:
        remedy = "Give one, such as http://localhost:8000/v1; --help lists the kinds"
        raise input_error("--encoder", "there is no teacher", remedy)
    if FLAGS.distill and not FLAGS.run_dir:
        raise input_error("--distill", "no model is trained", "Add --run_dir=RUN")
    given = given_settings()
    of_data = {name: given.pop(name) for name in DataSettings().values() if name in given}
    settings = preset_settings("lexical", of_data)
    setting_flags.check_given_columns(settings.data)
    source = query_log_of(settings.data)
    # These imports take seconds: report a missing set first.
    from tf_smoothclir.foreign_encoders.opening import EncodedSet, encoder_of
    from tf_smoothclir.foreign_encoders.teaching import taught

    encoder = encoder_of(group_from_flags(EncoderSettings))
    judged, labelled = taught(
        source, EncodedSet.of(encoder, source, settings.data.cache_dir), settings.data.split_seed
    )
    path = Path(FLAGS.output_dir)
    judged.keep(path, overwrite=FLAGS.overwrite)
    then = f" Train with smoothclir-train --data_dir={path}" if not FLAGS.run_dir else ""
    print(f"{path}: {encoder.name} judged {labelled:,} queries.{then}")
    if FLAGS.run_dir:
        beside = {name: of_data[name] for name in (*LANGUAGES, "cache_dir") if name in of_data}
        if not FLAGS.distill:  # else the encoder ranks too
            given = {n: value for n, value in given.items() if n not in EncoderSettings().values()}
        _train_and_export({**given, **beside, "data_dir": os.path.abspath(path)})


def _train_and_export(given: dict[str, object]) -> None:
    from tf_smoothclir.evaluation.report import print_results
    from tf_smoothclir.publishing.verified_export import export_verified
    from tf_smoothclir.training.evaluated_sets import with_grades_of_set
    from tf_smoothclir.training.train import train

    settings = preset_settings(given_preset(), given)
    if "thresholds" not in given:
        settings = with_grades_of_set(settings, FLAGS.run_dir, overwrite=FLAGS.overwrite)
    result = train(settings, FLAGS.run_dir, overwrite=FLAGS.overwrite)
    print_results(result, ["test"])
    for part in export_verified(FLAGS.run_dir, ""):
        print(part)
