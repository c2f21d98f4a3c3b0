"""Trains a model that ranks documents: a translation table, two towers, or both.

It tokenises the set, trains, evaluates the test split, and writes a run directory with metrics.json
and report.md. Without --data_dir, it trains on the built-in toy world. The default, --preset=best,
trains two towers and learns a translation table; --retriever=dense or lexical takes one of them.
--preset=paper trains the towers of the paper, with Smooth Cosine Similarity and Smooth Ordinal
Search Loss, as the paper does. To continue after an interruption, give the same command again.
"""

from absl import flags

from tf_smoothclir.command_line import command, setting_flags
from tf_smoothclir.settings.run import GROUPS

setting_flags.define_run_directory("runs/train")
setting_flags.define_run_settings()
_FOLDS = (
    "Measure by cross-validation, too: in so many parts, each judged query is tested once. 0 for"
    " none. Default: 5 where the set has no splits of its own and few queries for a test."
)
flags.DEFINE_integer("folds", None, _FOLDS, lower_bound=0, module_name=command.COMMAND)


def main(_argv) -> None:
    """Trains the model."""
    settings = setting_flags.run_settings_from_flags()
    from tf_smoothclir.command_line.training import train_by_flags

    train_by_flags(settings)


def run() -> None:
    """Entry point of `smoothclir-train`."""
    command.run_main(main, __doc__, tuple(GROUPS))


if __name__ == "__main__":
    run()
