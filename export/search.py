"""Answers queries in one language with documents in the other, with exported models.

Searches what smoothclir-index wrote. If there is no index, the set that the models were trained on
is indexed first. Queries come from --query, from --queries, or from standard input, one per line.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from absl import flags

from tf_smoothclir.command_line import command, engine_flags, setting_flags
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.files import make_directory

_EXPORT_DIR, _INDEX_DIR = setting_flags.define_index_flags()
_QUERY = flags.DEFINE_multi_string(
    "query", [], "A query; repeat the flag for more.", module_name=command.COMMAND
)
_QUERIES = flags.DEFINE_string(
    "queries",
    "",
    "File of queries, one per line: an id, a tab and a text, or a text alone.",
    module_name=command.COMMAND,
)
_TOP_K = flags.DEFINE_integer(
    "top_k", 10, "Documents per query.", lower_bound=1, module_name=command.COMMAND
)
_JSON = flags.DEFINE_boolean(
    "json", False, "Print one JSON object per query.", module_name=command.COMMAND
)
_TREC_RUN = flags.DEFINE_string(
    "trec_run",
    "",
    "Write the hits to this TREC run file instead of printing them.",
    module_name=command.COMMAND,
)
_TAG = flags.DEFINE_string(
    "tag", "tf_smoothclir", "Name of the system in --trec_run.", module_name=command.COMMAND
)
_EXPLAIN = flags.DEFINE_boolean(
    "explain",
    False,
    "Show which words of a document its score comes from and, of a lexical or hybrid retriever,"
    " which words of the query they met, by which probability. Of towers alone, average pooling"
    " only.",
    module_name=command.COMMAND,
)
_SERVER = flags.DEFINE_string(
    "server",
    "",
    "Encode the queries with the TensorFlow Serving at this address, such as localhost:8500 (gRPC)"
    " or http://localhost:8501 (REST), instead of in this process.",
    module_name=command.COMMAND,
)
_RETRIEVER = setting_flags.define_retriever()
_WIDTH = flags.DEFINE_integer(
    "width", 150, "Characters of a text that are shown.", lower_bound=1, module_name=command.COMMAND
)
engine_flags.define_engine_flags(searches=True)
setting_flags.define_settings(["data"])
_BATCH = 256


def main(argv) -> None:
    """Answers the queries."""
    del argv
    _check_flags()
    from tf_smoothclir.search.opening import open_search
    from tf_smoothclir.search.query_files import RunFile, numbered, read_queries
    from tf_smoothclir.text.batches import in_batches

    search = open_search(
        _EXPORT_DIR.value,
        _INDEX_DIR.value,
        setting_flags.data_like,
        server=_SERVER.value,
        engine=engine_flags.engine_address(),
        retriever=_RETRIEVER.value,
    )
    given = _QUERY.value or _typed()
    queries = read_queries(_QUERIES.value) if _QUERIES.value else numbered(given)
    run_file = RunFile()
    # Typed queries are answered line by line.
    for batch in in_batches(queries, _BATCH if _QUERIES.value or _TREC_RUN.value else 1):
        found = search.search([query.text for query in batch], _TOP_K.value)
        readings = search.read([query.text for query in batch])
        for query, hits, reading in zip(batch, found, readings):
            if _TREC_RUN.value:
                run_file.add(query.id, hits)
            else:
                _show(search, query, hits, reading)
    if _TREC_RUN.value:
        run_file.write(_TREC_RUN.value, _TAG.value)


def _typed() -> Iterator[str]:
    """Yields the lines of standard input; reads nothing before the first one is needed."""
    sys.stdin.reconfigure(errors="surrogateescape")  # `numbered` replaces what is not UTF-8
    yield from map(str.rstrip, sys.stdin)


def _check_flags() -> None:
    """Reports mistakes that would show only after seconds, or never."""
    if _TREC_RUN.value:
        make_directory(Path(_TREC_RUN.value).parent, "--trec_run")
        if Path(_TREC_RUN.value).is_dir():
            raise input_error(f"--trec_run={_TREC_RUN.value}", "it is a directory", "Name a file")
    if _TAG.value.split() != [_TAG.value]:
        raise input_error(
            f"--tag={_TAG.value}", "the tag of a TREC run is one word", "Leave out white space"
        )
    if not _SERVER.value:
        setting_flags.check_export_dir()


def _show(search, query, hits, reading) -> None:
    from tf_smoothclir.search.display import print_hits

    explanations = search.explain(query.text, hits) if _EXPLAIN.value else None
    if _JSON.value:
        found = [dataclasses.asdict(hit) for hit in hits]
        for answer, explanation in zip(found, explanations or ()):
            answer["explanation"] = dataclasses.asdict(explanation)
        answer = {"query": query.text, **dataclasses.asdict(reading), "results": found}
        if _QUERIES.value:
            answer = {"id": query.id, **answer}
        print(json.dumps(answer, ensure_ascii=False))
    else:
        bold = sys.stdout.isatty()
        print_hits(query.text, hits, _WIDTH.value, explanations, bold=bold, reading=reading)
    sys.stdout.flush()


def run() -> None:
    """Entry point of `smoothclir-search`."""
    command.run_main(main, __doc__, ["data"])


if __name__ == "__main__":
    run()
