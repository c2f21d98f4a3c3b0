"""Prints statistics of a retrieval set: Table 1 of the paper, then lengths and vocabularies.

A document is partly relevant if its grade is 1 or more, but not the highest one.
"""

import json

from absl import flags

from tf_smoothclir.command_line import command, setting_flags

_JSON = flags.DEFINE_boolean(
    "json", False, "Print JSON instead of a table.", module_name=command.COMMAND
)
setting_flags.define_settings(["data"])


def main(_argv) -> None:
    """Prints the statistics of the set."""
    from tf_smoothclir.data import statistics
    from tf_smoothclir.data.sources.opening import query_log_of
    from tf_smoothclir.training.evaluated_sets import set_of_other_grades
    from tf_smoothclir.utils.printing import print_table

    data = setting_flags.settings_from_flags().data
    # Finds errors in the set before anything is printed.
    loaded = set_of_other_grades(query_log_of(data), data.split_seed)
    counted = statistics.collection_statistics(loaded)
    if _JSON.value:
        print(json.dumps(counted, indent=2))
        return
    row = statistics.table_1(counted, str(loaded.document_languages))
    print_table(statistics.TABLE_1, [row], title=counted["name"])
    print_table(["", counted["name"]], statistics.details(counted))


def run() -> None:
    """Entry point of `smoothclir-stats`."""
    command.run_main(main, __doc__, ["data"])


if __name__ == "__main__":
    run()
