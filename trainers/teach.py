"""Makes a retrieval set of a query log: a foreign encoder judges what nobody judged.

It reads documents.* and queries.* of --data_dir, and judgments.* if there are any, and writes a
set to --output_dir that smoothclir-train takes as its --data_dir. The encoder ranks the documents
for each query without judgments; a translation table learns from its first hits; then both judge
together. Queries that people judged keep their judgments, and they alone are test queries.
"""

from __future__ import annotations

from tf_smoothclir.command_line import command, setting_flags
from tf_smoothclir.settings.encoder import EncoderSettings

setting_flags.define_path("output_dir", "runs/taught", "Directory of the new set.")
setting_flags.flag("overwrite", False, "Replace the set in --output_dir.")
setting_flags.define_fields(EncoderSettings)
setting_flags.define_settings(["data"])


def main(argv) -> None:
    """Makes the set."""
    del argv
    from tf_smoothclir.command_line.teaching import teach_by_flags

    teach_by_flags()


def run() -> None:
    """Entry point of `smoothclir-teach`."""
    command.run_main(main, __doc__, ["data"])


if __name__ == "__main__":
    run()
