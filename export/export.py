"""Exports the query tower and the document tower of a run as SavedModels for TensorFlow Serving.

Both are published under the next integer version, after each has been loaded in a fresh process and
compared with the trained model. Raw strings in, smooth-normalised vectors out.
"""

from __future__ import annotations

from absl import flags

from tf_smoothclir import command

_RUN_DIR = flags.DEFINE_string(
    "run_dir", "runs/train", "Run of smoothclir-train.", module_name=command.COMMAND
)
_EXPORT_DIR = flags.DEFINE_string(
    "export_dir",
    "",
    "Gets query_tower/<version> and document_tower/<version>; empty: the run directory.",
    module_name=command.COMMAND,
)


def main(argv) -> None:
    """Exports as the flags say."""
    del argv
    from tf_smoothclir.files import make_directory
    from tf_smoothclir.serving.export import export_run
    from tf_smoothclir.training.run_directory import RunDirectory

    run = RunDirectory.load(_RUN_DIR.value)
    export_dir = make_directory(_EXPORT_DIR.value or run.path, "--export_dir")
    version = export_run(run, export_dir)
    for role in ("query", "document"):
        print(f"{export_dir}/{role}_tower/{version}")


def run() -> None:
    """Entry point of `smoothclir-export`."""
    command.run_main(main, __doc__)


if __name__ == "__main__":
    run()
