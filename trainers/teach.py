"""Makes a retrieval set of a query log: a foreign encoder judges what nobody judged.

It reads documents.* and queries.* of --data_dir, and judgments.* if there are any, and writes a
set to --output_dir that smoothclir-train takes as its --data_dir. The encoder ranks the documents
for each query without judgments; its first hit counts as the best document, with a weight by its
lead over the second. Queries that people judged keep theirs, and they alone are test queries.
With --run_dir, a model is trained on the set and exported there too, as smoothclir-train and
smoothclir-export do. To continue after an interruption, give the same command again: no text is
encoded twice.
"""

from tf_smoothclir.command_line import command, setting_flags
from tf_smoothclir.settings.run import GROUPS

setting_flags.define_path("output_dir", "runs/taught", "Directory of the new set.")
setting_flags.define_path(
    "run_dir", "", "Where to train on the set and to export the model; empty: neither is done."
)
setting_flags.flag("overwrite", False, "Replace the set in --output_dir, and the run in --run_dir.")
setting_flags.define_run_settings()


def main(_argv) -> None:
    """Makes the set."""
    from tf_smoothclir.command_line.training import teach_by_flags

    teach_by_flags()


def run() -> None:
    """Entry point of `smoothclir-teach`."""
    command.run_main(main, __doc__, tuple(GROUPS))


if __name__ == "__main__":
    run()
