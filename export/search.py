"""Answers queries in one language with documents in the other, by the exported towers.

The collection, by default the one that the towers were trained with, is encoded once and kept as an
index; queries come from --query or, one a line, from standard input.
"""

from __future__ import annotations

import dataclasses
import json
import sys

from absl import flags

from tf_smoothclir import command

_EXPORT_DIR = flags.DEFINE_string(
    "export_dir",
    "runs/train",
    "Where smoothclir-export wrote the towers.",
    module_name=command.COMMAND,
)
_INDEX_DIR = flags.DEFINE_string(
    "index_dir", "", "The index; empty: index/ in --export_dir.", module_name=command.COMMAND
)
_QUERIES = flags.DEFINE_multi_string(
    "query", [], "A query; may be given more than once.", module_name=command.COMMAND
)
_TOP_K = flags.DEFINE_integer(
    "top_k", 10, "Documents shown a query.", lower_bound=1, module_name=command.COMMAND
)
_JSON = flags.DEFINE_boolean(
    "json", False, "Print one JSON object a query.", module_name=command.COMMAND
)
_WIDTH = flags.DEFINE_integer(
    "width", 150, "Characters of a text shown.", lower_bound=1, module_name=command.COMMAND
)
command.define_settings(["data"])


def main(argv) -> None:
    """Searches as the flags say."""
    del argv
    from tf_smoothclir.serving.display import print_results
    from tf_smoothclir.serving.index import open_searcher
    from tf_smoothclir.settings import DataSettings

    searcher = open_searcher(
        _EXPORT_DIR.value,
        _INDEX_DIR.value,
        lambda trained_on: command.settings_from_flags("data", base=DataSettings(**trained_on)),
    )
    for query in _QUERIES.value or map(str.rstrip, sys.stdin):
        results = searcher.search([query], _TOP_K.value)[0]
        if _JSON.value:
            answer = {"query": query, "results": [dataclasses.asdict(r) for r in results]}
            print(json.dumps(answer, ensure_ascii=False))
        else:
            print_results(query, results, _WIDTH.value)
        sys.stdout.flush()


def run() -> None:
    """Entry point of `smoothclir-search`."""
    command.run_main(main, __doc__, ["data"])


if __name__ == "__main__":
    run()
