"""Evaluates a trained run: seven metrics over candidate lists, full retrieval, predicted grades.

It ranks with the retriever of the run. The default is the test split of the set that the run was
trained on. Data flags choose another set, whose figures get a directory of their own; the
vocabularies stay those of the run. Writes metrics.json and, for other tools, TREC run and qrels
files.

With --first_stage=A, the run is evaluated as a re-ranker: full/... are then the metrics of the top
ranks of run A in the order of this run's scores. Everything else is the run's own.
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
    "Where metrics.json and the TREC files go; empty: evaluation/ in the run, in it dim-64/ with"
    " --dim=64, by-lexical/ with --retriever=lexical, over-A/ with --first_stage=A, and"
    " on-NAME-DIGEST/ of another retrieval set.",
    module_name=command.COMMAND,
)
_FIRST_STAGE = flags.DEFINE_string(
    "first_stage",
    "",
    "Run directory whose top ranks --run_dir re-ranks; trained on the same retrieval set. Empty:"
    " --run_dir ranks the whole collection.",
    module_name=command.COMMAND,
)
_RERANK_DEPTH = flags.DEFINE_integer(
    "rerank_depth",
    100,
    "Documents per query that --first_stage passes on.",
    lower_bound=1,
    module_name=command.COMMAND,
)
_DIM = flags.DEFINE_integer(
    "dim",
    0,
    "Evaluates the first so many numbers of the vectors: one of the --matryoshka_dims of the run."
    " 0: all of them.",
    lower_bound=0,
    module_name=command.COMMAND,
)
_RETRIEVER = setting_flags.define_retriever()
_VERIFY = setting_flags.define_verify()
setting_flags.define_settings(["data"])


def main(argv) -> None:
    """Evaluates the run."""
    del argv
    from tf_smoothclir.data.sources.opening import source_of
    from tf_smoothclir.training.run_directory import RunDirectory
    from tf_smoothclir.utils.files import make_directory, write_json

    run, first_stage = RunDirectory.load(_RUN_DIR.value, verify=_VERIFY.value), None
    output_dir, ranking = run.evaluation, ""
    if _DIM.value:
        output_dir /= f"dim-{_DIM.value}"
    retriever = "" if _RETRIEVER.value == "auto" else _RETRIEVER.value
    if retriever:
        output_dir /= f"by-{retriever}"
    if _FIRST_STAGE.value:
        first_stage = RunDirectory.load(_FIRST_STAGE.value, "--first_stage", verify=_VERIFY.value)
        output_dir /= f"over-{first_stage.path.resolve().name}"
        ranking = f"first {_RERANK_DEPTH.value} ranks of {first_stage.path}, re-ranked by this run"
    # These imports take seconds: report a missing run first.
    from tf_smoothclir.evaluation.evaluate import evaluate_splits, metrics_content
    from tf_smoothclir.evaluation.report import print_results
    from tf_smoothclir.protocols.scorer import TwoStageRetriever
    from tf_smoothclir.training import retrievers, run_checks, train, two_stages

    settings = run.settings()
    data = setting_flags.settings_from_flags("data", base=settings.data)
    settings = dataclasses.replace(settings, data=data)
    source = source_of(data)
    run_checks.check_cut(settings, _DIM.value)
    if retriever:
        run_checks.check_retriever(settings, retriever)
    run_checks.check_trained(run)
    if first_stage:
        two_stages.check_first_stage(first_stage, run, source)
    if not run.was_trained_on(source.fingerprint()):
        output_dir /= f"on-{source.name.replace('/', '-')}-{source.fingerprint()[:8]}"
    output_dir = make_directory(Path(_OUTPUT_DIR.value or output_dir), "--output_dir")
    tokenized_set = train.tokenized_set_of(source, settings, run, _SPLITS.value)
    retrieval_set, negatives = tokenized_set.retrieval_set, settings.training.negatives
    graded = retrievers.load_scorer(run, tokenized_set, _DIM.value, retriever)
    scorer = graded.scorer
    if first_stage:
        found = two_stages.load_first_stage(first_stage, retrieval_set, data.cache_dir)
        scorer = TwoStageRetriever(found, scorer, retrieval_set, ranks=_RERANK_DEPTH.value)
    evaluations = evaluate_splits(
        retrieval_set,
        scorer,
        _SPLITS.value,
        negatives=negatives,
        trec_dir=output_dir,
    )
    evaluations = {split: e.graded(graded.cut_points) for split, e in evaluations.items()}
    content = metrics_content(evaluations, negatives, ranking=ranking)
    write_json(output_dir / "metrics.json", content)
    print_results(content, list(evaluations))
    print(f"Metrics: {output_dir}/metrics.json; TREC files: {output_dir}/<split>/")


def run() -> None:
    """Entry point of `smoothclir-evaluate`."""
    command.run_main(main, __doc__, ["data"])


if __name__ == "__main__":
    run()
