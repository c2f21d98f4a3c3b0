"""Answers queries in one language with documents in the other, by the exported towers.

The collection is that of the index of smoothclir-index; where there is none, the set that the
towers were trained with is indexed first. Queries come from --query, from --queries, or, one a
line, from standard input.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from absl import flags

from tf_smoothclir.command_line import command, setting_flags
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.files import make_directory

_EXPORT_DIR, _INDEX_DIR = setting_flags.define_index_flags()
_QUERY = flags.DEFINE_multi_string("query", [], "A query", module_name=command.COMMAND)
_QUERIES = flags.DEFINE_string(
    "queries",
    "",
    "File of queries: an id, a tab and a text a line, or a text alone.",
    module_name=command.COMMAND,
)
_TOP_K = flags.DEFINE_integer(
    "top_k", 10, "Documents shown a query.", lower_bound=1, module_name=command.COMMAND
)
_JSON = flags.DEFINE_boolean(
    "json", False, "Print one JSON object a query.", module_name=command.COMMAND
)
_TREC_RUN = flags.DEFINE_string(
    "trec_run",
    "",
    "Write the results to this file, in the format of TREC runs, instead of printing them.",
    module_name=command.COMMAND,
)
_TAG = flags.DEFINE_string(
    "tag", "tf_smoothclir", "Name of the system in --trec_run.", module_name=command.COMMAND
)
_EXPLAIN = flags.DEFINE_boolean(
    "explain",
    False,
    "Show which words of a document carry its score (average pooling only).",
    module_name=command.COMMAND,
)
_SERVER = flags.DEFINE_string(
    "server",
    "",
    "Encode the queries by this TensorFlow Serving, such as localhost:8500 (gRPC) or"
    " http://localhost:8501 (REST), instead of here.",
    module_name=command.COMMAND,
)
_WIDTH = flags.DEFINE_integer(
    "width", 150, "Characters of a text shown.", lower_bound=1, module_name=command.COMMAND
)
setting_flags.define_settings(["data"])
_BATCH = 256


def main(argv) -> None:
    """Searches as the flags say."""
    del argv
    _check_flags()
    from tf_smoothclir.search.query_files import RunFile, numbered, read_queries
    from tf_smoothclir.search.searcher import open_searcher
    from tf_smoothclir.text.batches import in_batches

    searcher = open_searcher(
        _EXPORT_DIR.value,
        _INDEX_DIR.value,
        setting_flags.data_like,
        server=_SERVER.value,
    )
    given = _QUERY.value or _typed()
    queries = read_queries(_QUERIES.value) if _QUERIES.value else numbered(given)
    run_file = RunFile()
    # What a person types is answered line by line.
    for batch in in_batches(queries, _BATCH if _QUERIES.value or _TREC_RUN.value else 1):
        found = searcher.search([query.text for query in batch], _TOP_K.value)
        for query, results in zip(batch, found):
            if _TREC_RUN.value:
                run_file.add(query.id, results)
            else:
                _show(searcher, query, results)
    if _TREC_RUN.value:
        run_file.write(_TREC_RUN.value, _TAG.value)


def _typed() -> Iterator[str]:
    """Yields the lines of standard input; when the first one is asked for, not before."""
    sys.stdin.reconfigure(errors="surrogateescape")  # `numbered` mends what is no UTF-8
    yield from map(str.rstrip, sys.stdin)


def _check_flags() -> None:
    """Checks what would come to light after the search only, or not at all."""
    if _TREC_RUN.value:
        make_directory(Path(_TREC_RUN.value).parent, "--trec_run")
        if Path(_TREC_RUN.value).is_dir():
            raise input_error(f"--trec_run={_TREC_RUN.value}", "it is a directory", "Name a file")
    if _TAG.value.split() != [_TAG.value]:
        raise input_error(f"--tag={_TAG.value}", "TREC runs want one word", "Leave out white space")


def _show(searcher, query, results) -> None:
    from tf_smoothclir.search.display import print_results

    explanations = searcher.explain(query.text, results) if _EXPLAIN.value else None
    if _JSON.value:
        found = [dataclasses.asdict(result) for result in results]
        for answer, explanation in zip(found, explanations or ()):
            answer["explanation"] = dataclasses.asdict(explanation)
        answer = {"query": query.text, "results": found}
        if _QUERIES.value:
            answer = {"id": query.id, **answer}
        print(json.dumps(answer, ensure_ascii=False))
    else:
        bold = sys.stdout.isatty()
        print_results(query.text, results, _WIDTH.value, explanations, bold=bold)
    sys.stdout.flush()


def run() -> None:
    """Entry point of `smoothclir-search`."""
    command.run_main(main, __doc__, ["data"])


if __name__ == "__main__":
    run()
