"""Prints statistics of a retrieval set: queries, documents, judgments, lengths.

They include those of Table 1 of the paper.
"""

from __future__ import annotations

import json

from absl import flags

from tf_smoothclir.command_line import command, setting_flags

_JSON = flags.DEFINE_boolean(
    "json", False, "Print JSON instead of a table.", module_name=command.COMMAND
)
_THRESHOLDS = setting_flags.define_thresholds()
setting_flags.define_settings(["data"])


def main(argv) -> None:
    """Prints the statistics of the set."""
    del argv
    from tf_smoothclir.data.retrieval_set import RetrievalSet
    from tf_smoothclir.data.sources.opening import source_of
    from tf_smoothclir.data.statistics import collection_statistics

    data = setting_flags.settings_from_flags("data")
    source = source_of(data)
    # Finds errors in the set before anything is printed.
    RetrievalSet.load(source, num_grades=len(_THRESHOLDS.value) + 1, seed=data.split_seed)
    statistics = collection_statistics(source)
    print(json.dumps(statistics.to_dict(), indent=2) if _JSON.value else statistics.to_markdown())


def run() -> None:
    """Entry point of `smoothclir-stats`."""
    command.run_main(main, __doc__, ["data"])


if __name__ == "__main__":
    run()
