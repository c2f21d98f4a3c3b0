"""Answers queries in one language with documents in the other, with exported models.

Searches what smoothclir-index wrote. If there is no index, the set that the models were trained on
is indexed first. Queries come from --query, from --queries, or from standard input, one per line.
"""

from __future__ import annotations

from tf_smoothclir.command_line import command, shipping_flags

shipping_flags.define_search_flags()


def main(argv) -> None:
    """Answers the queries."""
    del argv
    shipping_flags.check_search_flags()
    # This import takes seconds: report a wrong flag first.
    from tf_smoothclir.command_line.searching import answer_queries

    answer_queries()


def run() -> None:
    """Entry point of `smoothclir-search`."""
    command.run_main(main, __doc__, ["data"])


if __name__ == "__main__":
    run()
