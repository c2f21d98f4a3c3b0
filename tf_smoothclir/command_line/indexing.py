"""The work of smoothclir-index, by its flags: an index on disk, or a collection in an engine."""

import functools
from pathlib import Path

from tf_smoothclir.command_line import setting_flags
from tf_smoothclir.command_line.setting_flags import FLAGS
from tf_smoothclir.command_line.shipping_flags import engine_address
from tf_smoothclir.engines.milvus import Milvus
from tf_smoothclir.engines.milvus_building import build_collection, change_collection
from tf_smoothclir.index.builder import build_index, export_halves
from tf_smoothclir.index.document_collections import open_collection, open_files, read_ids


def index_by_flags(index_dir: Path) -> str:
    """Builds or changes what the flags name; returns a line that says what is there now."""
    engine = engine_address()
    halves, export = export_halves(FLAGS.export_dir, FLAGS.index_type, version=FLAGS.version)
    data = setting_flags.data_like(export.data)
    if FLAGS.add or FLAGS.remove:
        add = open_files(FLAGS.add, "--add", data) if FLAGS.add else None
        remove = read_ids(FLAGS.remove) if FLAGS.remove else ()
        work = functools.partial(change_collection, add=add, remove=remove)
    else:
        collection = open_collection(FLAGS.collection, data)
        options = {"data": None if FLAGS.collection else data, "overwrite": FLAGS.overwrite}
        if engine is None:
            options["update"] = FLAGS.update
            return f"{index_dir}: {build_index(index_dir, collection, halves, export, **options)}"
        work = functools.partial(
            build_collection, collection=collection, kind=FLAGS.index_type, **options
        )
    with Milvus(engine.uri) as milvus:
        changed = work(milvus, engine.collection, halves=halves, export=export)
        return f"{engine.uri} {engine.collection}: {len(changed)} documents"
