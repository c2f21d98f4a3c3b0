"""Indexes a collection for search with exported models, on disk or in an engine.

The collection is the one given by --collection or, without it, a retrieval set: by default the one
that the models were trained on. An index on disk is built in one go; --update encodes only what has
changed since. Documents are added, replaced and removed one by one in an engine (--engine=milvus).
"""

from pathlib import Path

from tf_smoothclir.command_line import command, setting_flags, shipping_flags
from tf_smoothclir.command_line.setting_flags import FLAGS
from tf_smoothclir.storage.files import make_directory
from tf_smoothclir.utils.printing import visible_lines

shipping_flags.define_building_flags()


def main(_argv) -> None:
    """Indexes the collection, or changes it."""
    setting_flags.check_export_dir()
    index_dir = Path(FLAGS.index_dir or Path(FLAGS.export_dir, "index"))
    if FLAGS.engine == "embedded":
        make_directory(index_dir.parent, "--index_dir")
    # This import takes seconds: report a missing directory first.
    from tf_smoothclir.command_line.indexing import index_by_flags

    print(visible_lines(index_by_flags(index_dir)))


def run() -> None:
    """Entry point of `smoothclir-index`."""
    command.run_main(main, __doc__, ["data"])


if __name__ == "__main__":
    run()
