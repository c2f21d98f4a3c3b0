"""Exports a run: SavedModels for TensorFlow Serving, and the lexical model of a run that has one.

query_tower and document_tower take raw strings and return smooth-normalised vectors. lexical_model
has the translation table and all that goes with it, for the index. search takes a query and returns
the best documents with scores and grades, for collections that fit in a model.
Each export gets the next integer version. It is published after a fresh process has loaded all
models and their answers agree with the trained model. model_card-<version>.md beside them says what
was trained on what, how good it is, and how to load it.
"""

from __future__ import annotations

import gc

from absl import flags

from tf_smoothclir.command_line import command, setting_flags

_RUN_DIR = flags.DEFINE_string(
    "run_dir", "runs/train", "Run directory of smoothclir-train.", module_name=command.COMMAND
)
_EXPORT_DIR = flags.DEFINE_string(
    "export_dir",
    "",
    "Directory for query_tower/<version>, document_tower/<version>, lexical_model/<version> and"
    " search/<version>; empty: the run directory.",
    module_name=command.COMMAND,
)
_SEARCH_MODEL = flags.DEFINE_boolean(
    "search_model",
    True,
    "Also export the collection of the run as a search model. --nosearch_model if the data of the"
    " run are gone, or if you build an index instead.",
    module_name=command.COMMAND,
)
_MAX_SEARCH_DOCUMENTS = flags.DEFINE_integer(
    "max_search_documents",
    200_000,
    "A larger collection gets no search model, because each query reads all its vectors.",
    lower_bound=1,
    module_name=command.COMMAND,
)
_SEARCH_DEPTH = flags.DEFINE_integer(
    "search_depth",
    10,
    "Documents that the search model returns per query.",
    lower_bound=1,
    module_name=command.COMMAND,
)
_DIM = flags.DEFINE_integer(
    "dim",
    0,
    "Exports the first so many numbers of the vectors, one of the --matryoshka_dims of the run: a"
    " smaller and faster model that ranks a little worse. 0: all.",
    lower_bound=0,
    module_name=command.COMMAND,
)
_TABLE_TYPE = flags.DEFINE_enum(
    "table_type",
    "float32",
    ["float32", "int8"],
    "How the tables of word vectors are stored. int8 makes the models four times smaller. What that"
    " costs is measured on the validation queries, printed, and written to the manifests; it is"
    " seldom anything.",
    module_name=command.COMMAND,
)
_VECTOR_TYPE = flags.DEFINE_enum(
    "vector_type",
    "float32",
    ["float32", "int8"],
    "How the search model holds the vectors of its collection. int8 makes them four times smaller."
    " How many of the best documents are still found is measured, printed, and written to the"
    " manifests.",
    module_name=command.COMMAND,
)
_RETRIEVER = setting_flags.define_retriever()
_VERIFY = setting_flags.define_verify()


def main(argv) -> None:
    """Exports the run."""
    del argv
    from tf_smoothclir.publishing.verification import Verifier
    from tf_smoothclir.training.run_directory import RunDirectory
    from tf_smoothclir.utils.files import make_directory

    run = RunDirectory.load(_RUN_DIR.value, verify=_VERIFY.value)
    with Verifier() as verifier:  # both processes import TensorFlow at the same time
        gc.disable()  # an import makes no garbage, and looking for it takes a fifth of the time
        from tf_smoothclir.publishing.export import export_run
        from tf_smoothclir.publishing.export_directory import DIRECTORIES, part_dir
        from tf_smoothclir.publishing.model_card import model_card_path

        gc.enable()
        export_dir = make_directory(_EXPORT_DIR.value or run.path, "--export_dir")
        version = export_run(
            run,
            export_dir,
            search_model=_SEARCH_MODEL.value,
            max_search_documents=_MAX_SEARCH_DOCUMENTS.value,
            search_depth=_SEARCH_DEPTH.value,
            dim=_DIM.value,
            table_type=_TABLE_TYPE.value,
            vector_type=_VECTOR_TYPE.value,
            retriever="" if _RETRIEVER.value == "auto" else _RETRIEVER.value,
            verifier=verifier,
        )
    for role in DIRECTORIES:
        directory = part_dir(export_dir, role) / str(version)
        if directory.is_dir():
            print(directory)
    print(model_card_path(export_dir, version))


def run() -> None:
    """Entry point of `smoothclir-export`."""
    command.run_main(main, __doc__)


if __name__ == "__main__":
    run()
