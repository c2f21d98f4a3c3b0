"""Evaluates a trained run: full retrieval, seven metrics over candidate lists, predicted grades.

It ranks with the retriever of the run. The default is the test split of the set that the run was
trained on. Data flags choose another set, whose figures get a directory of their own; the
vocabularies stay those of the run. Writes metrics.json, the metrics of each query, and TREC run and
qrels files for other tools: to evaluation/ in the run, in it to dim-64/ with --dim=64, by-lexical/
with --retriever=lexical, and on-NAME-DIGEST/ of another retrieval set.

With --encoder, a foreign encoder is measured in place of a run, on the set that the data flags
name: runs/<name of the encoder>/ gets the files, which smoothclir-compare takes like those of runs.
"""

from absl import flags

from tf_smoothclir.command_line import command, setting_flags
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.settings.data import EncoderSettings

_OWN = {"module_name": command.COMMAND}
_OUTPUT_DIR = "Where all files go; empty: evaluation/ in the run, or a directory in it."
_DIM = "Cuts the vectors to this length, one of the run's --matryoshka_dims. 0: not cut."
setting_flags.define_path("run_dir", "runs/train", "A run of smoothclir-train.")
flags.DEFINE_multi_enum("split", ["test"], SPLITS, "Split to evaluate.", **_OWN)
setting_flags.define_path("output_dir", "", _OUTPUT_DIR)
flags.DEFINE_integer("dim", 0, _DIM, lower_bound=0, **_OWN)
_MEASURES = "Further measures of full retrieval, of ir_measures, such as nDCG@20,RR,P(rel=2)@5."
flags.DEFINE_list("measures", [], _MEASURES, **_OWN)
setting_flags.define_retriever()
setting_flags.define_verify()
setting_flags.define_fields(EncoderSettings)
setting_flags.define_settings(["data"])


def main(_argv) -> None:
    """Evaluates the run, or a foreign encoder."""
    from tf_smoothclir.command_line.training import evaluate_by_flags

    evaluate_by_flags()


def run() -> None:
    """Entry point of `smoothclir-evaluate`."""
    command.run_main(main, __doc__, ["data"])


if __name__ == "__main__":
    run()
