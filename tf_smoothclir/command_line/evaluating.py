"""The work of smoothclir-evaluate, by its flags."""

from __future__ import annotations

from absl import flags

from tf_smoothclir.command_line import setting_flags
from tf_smoothclir.settings.data import EncoderSettings
from tf_smoothclir.training.run_directory import RunDirectory

FLAGS = flags.FLAGS
_RUN_FLAGS = ("retriever", "dim", "output_dir", "measures")


def evaluate_by_flags() -> None:
    """Evaluates a run or a foreign encoder, and prints the metrics."""
    evaluate = _evaluate_encoder if FLAGS.encoder else _evaluate_run
    content, path = evaluate()
    from tf_smoothclir.evaluation.report import print_results

    print_results(content, FLAGS.split)
    print(f"Metrics: {path}/metrics.json; TREC files and per_query.tsv: {path}/<split>/")


def _evaluate_run():
    run = RunDirectory.load(FLAGS.run_dir, verify=FLAGS.verify)
    # This import takes seconds: report a missing run first.
    from tf_smoothclir.training.run_evaluation import evaluate_run

    data = setting_flags.data_like(run.settings().data)
    more = {name: FLAGS[name].value for name in _RUN_FLAGS}
    return evaluate_run(run, data, FLAGS.split, **more)


def _evaluate_encoder():
    from tf_smoothclir.training.run_evaluation import evaluate_encoder

    encoder = setting_flags.group_from_flags(EncoderSettings)
    data = setting_flags.settings_from_flags().data
    more = {"output_dir": FLAGS.output_dir, "measures": FLAGS.measures}
    return evaluate_encoder(encoder, data, FLAGS.split, **more)
