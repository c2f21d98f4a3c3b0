"""The work of smoothclir-index, by its flags: an index on disk, or a collection in an engine."""

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
    if FLAGS.add or FLAGS.remove:
        return _change(engine)
    halves, export = export_halves(FLAGS.export_dir, FLAGS.index_type)
    data = setting_flags.data_like(export.data)
    collection = open_collection(FLAGS.collection, data)
    options = {"data": None if FLAGS.collection else data, "overwrite": FLAGS.overwrite}
    if engine is None:
        options["update"] = FLAGS.update
        manifest = build_index(index_dir, collection, halves, export, **options)
        return f"{index_dir}: {manifest}"
    with Milvus(engine.uri) as milvus:
        built = build_collection(
            milvus, engine.collection, collection, halves, export, kind=FLAGS.index_type, **options
        )
        return _size_of(engine, built)


def _change(engine) -> str:
    halves, export = export_halves(FLAGS.export_dir)
    data = setting_flags.data_like(export.data)
    add = open_files(FLAGS.add, "--add", data) if FLAGS.add else None
    remove = read_ids(FLAGS.remove) if FLAGS.remove else ()
    with Milvus(engine.uri) as milvus:
        changed = change_collection(
            milvus, engine.collection, halves, export, add=add, remove=remove
        )
        return _size_of(engine, changed)


def _size_of(engine, collection) -> str:
    return f"{engine.uri} {engine.collection}: {len(collection)} documents"
