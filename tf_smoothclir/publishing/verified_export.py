"""The export of a run by a command: both processes that need TensorFlow start at once."""

import gc
from pathlib import Path

from tf_smoothclir.publishing.verification import Verifier
from tf_smoothclir.storage.files import make_directory
from tf_smoothclir.training.run_directory import RunDirectory


def export_verified(run_dir: str, export_dir: str, *, verify: bool = True, **options) -> list[Path]:
    """The paths written; `options` are those of `export_run`."""
    run = RunDirectory.load(run_dir, verify=verify)
    with Verifier() as verifier:  # both processes import TensorFlow at the same time
        gc.disable()  # an import makes no garbage, and looking for it takes a fifth of the time
        from tf_smoothclir.publishing.export import export_run
        from tf_smoothclir.publishing.export_directory import DIRECTORIES, part_dir
        from tf_smoothclir.publishing.model_card import model_card_path
        from tf_smoothclir.publishing.server_config import server_config_path

        gc.enable()
        export_dir = make_directory(export_dir or run.path, "--export_dir")
        version = export_run(run, export_dir, verifier=verifier, **options)
    parts = [part_dir(export_dir, role) / str(version) for role in DIRECTORIES]
    files = model_card_path(export_dir, version), server_config_path(export_dir)
    return [*filter(Path.is_dir, parts), *files]
