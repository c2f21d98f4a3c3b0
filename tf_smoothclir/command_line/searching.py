"""The work of smoothclir-search, by its flags: queries in, hits printed or written."""

import dataclasses
import sys
from collections.abc import Iterator

from absl import logging

from tf_smoothclir.command_line import setting_flags
from tf_smoothclir.command_line.setting_flags import FLAGS
from tf_smoothclir.command_line.shipping_flags import where_to_search
from tf_smoothclir.evaluation.trec import write_run
from tf_smoothclir.index.metadata import plain
from tf_smoothclir.search.display import NONE_LEFT, print_hits
from tf_smoothclir.search.opening import open_search
from tf_smoothclir.search.query_files import numbered, ranking_of, read_queries
from tf_smoothclir.utils.parallel import in_batches
from tf_smoothclir.utils.printing import print_json

_BATCH = 256


def answer_queries() -> None:
    """Prints the hits of each query, or writes those of all to --trec_run."""
    search = open_search(
        FLAGS.export_dir,
        FLAGS.index_dir,
        setting_flags.data_like,
        retriever=FLAGS.retriever,
        version=FLAGS.version,
        **where_to_search(),
    )
    if (FLAGS.json or FLAGS.trec_run) and search.leaves_none():
        logging.warning(NONE_LEFT)
    given = FLAGS.query or _typed()
    queries = read_queries(FLAGS.queries) if FLAGS.queries else numbered(given)
    rankings = []
    # Typed queries are answered line by line.
    for batch in in_batches(queries, _BATCH if FLAGS.queries or FLAGS.trec_run else 1):
        answers = search.search([query.text for query in batch], FLAGS.top_k)
        for query, hits in zip(batch, answers):
            if FLAGS.trec_run:
                rankings.append(ranking_of(query.id, hits))
            else:
                _show(search, query, hits)
    if FLAGS.trec_run:
        write_run(FLAGS.trec_run, rankings)


def _typed() -> Iterator[str]:
    """Yields the lines of standard input; reads nothing before the first one is needed."""
    sys.stdin.reconfigure(errors="surrogateescape")  # `numbered` replaces what is not UTF-8
    yield from map(str.rstrip, sys.stdin)


def _show(search, query, hits) -> None:
    explanations = search.explain(query.text, hits) if FLAGS.explain else None
    if FLAGS.json:
        results = [dataclasses.asdict(hit) for hit in hits]
        for answer in results:
            answer["metadata"] = plain(answer["metadata"])
        for answer, explanation in zip(results, explanations or ()):
            answer["explanation"] = dataclasses.asdict(explanation)
        answer = {"query": query.text, **dataclasses.asdict(hits.reading), "results": results}
        if FLAGS.queries:
            answer = {"id": query.id, **answer}
        print_json(answer)
    else:
        none_left = not hits and search.leaves_none()
        more = {"bold": sys.stdout.isatty(), "reading": hits.reading, "none_left": none_left}
        print_hits(query.text, hits, FLAGS.width, explanations, **more)
    sys.stdout.flush()
