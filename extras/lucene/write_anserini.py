"""Writes a collection and queries as Anserini and Pyserini read them, for users of Lucene.

It takes an export that has a lexical model, and writes documents/*.jsonl (a JsonVectorCollection:
each word with an integer impact), topics.tsv and anserini.json. docs/engines.md has the commands
that index and search them: Lucene ranks as the lexical model does, up to rounding and feedback.
"""

from __future__ import annotations

from pathlib import Path

from absl import flags

from tf_smoothclir.command_line import command, setting_flags
from tf_smoothclir.storage.files import make_directory
from tf_smoothclir.utils.errors import input_error

_EXPORT_DIR = setting_flags.define_path(
    "export_dir", "runs/train", "Directory that smoothclir-export wrote a lexical model to."
)
_OUTPUT_DIR = setting_flags.define_path("output_dir", "anserini", "New directory to write.")
_COLLECTION = setting_flags.define_path(
    "collection",
    "",
    "Documents to write, in the formats of smoothclir-index; without it, those of a retrieval set,"
    " by default of the one that the model was trained on.",
)
_QUERIES = setting_flags.define_path(
    "queries",
    "",
    "File of queries, as for smoothclir-search. Without it, the queries of the retrieval set; with"
    " --collection, none.",
)
_BITS_HELP = "Bits of the largest impact. More round less, and make Anserini's index larger."
_BITS = flags.DEFINE_integer("bits", 8, _BITS_HELP, 1, 16, module_name=command.COMMAND)
setting_flags.define_settings(["data"])


def main(argv) -> None:
    """Writes the files."""
    del argv
    output_dir = Path(_OUTPUT_DIR.value)
    make_directory(output_dir.parent, "--output_dir")
    if output_dir.exists():
        raise input_error(f"--output_dir={output_dir}", "it is there already", "Give a new one")
    from tf_smoothclir.data.sources.opening import source_of
    from tf_smoothclir.data.sources.source import Text
    from tf_smoothclir.extras.lucene.anserini import write_anserini
    from tf_smoothclir.index.document_collections import open_collection
    from tf_smoothclir.publishing.exported_lexical import load_lexical
    from tf_smoothclir.search.query_files import read_queries

    lexical, manifest = load_lexical(_EXPORT_DIR.value)
    data = setting_flags.data_like(manifest.data)
    if _QUERIES.value:
        queries = (Text(query.id, "", query.text) for query in read_queries(_QUERIES.value))
    else:
        queries = () if _COLLECTION.value else source_of(data).queries()
    collection = open_collection(_COLLECTION.value, data)
    written = write_anserini(output_dir, lexical, collection, queries, bits=_BITS.value)
    print(f"{output_dir}: {written}")


def run() -> None:
    """Entry point of `smoothclir-anserini`."""
    command.run_main(main, __doc__, ("data",))


if __name__ == "__main__":
    run()
