"""The file that tells TensorFlow Serving which models of an export to load, in which version."""

import os
from collections.abc import Collection
from pathlib import Path

from tf_smoothclir.publishing.export_directory import MODELS
from tf_smoothclir.storage.files import write_text

_NOTES = """\
# What TensorFlow Serving loads (--model_config_file; the message is ModelServerConfig), with this
# directory as /models. smoothclir-export writes this file once. Later versions, and models that
# only they have, are served when you name them here (export/serving/README.md has the procedures):
#
# * The models of a version come from one training run. Edit their versions and labels together: a
#   query vector is not comparable to document vectors of another version.
# * Clients use the label stable (.../labels/stable:predict), never a number.

"""
_MODEL = """\
  config {{
    name: "{0}"
    base_path: "/models/{0}"
    model_platform: "tensorflow"
    model_version_policy {{ specific {{ versions: {1} }} }}
    version_labels {{ key: "stable" value: {1} }}
    version_labels {{ key: "canary" value: {1} }}
  }}
"""


def server_config_path(export_dir: str | os.PathLike) -> Path:
    """Path of the file in an export."""
    return Path(export_dir, "models.config")


def server_config(roles: Collection[str], version: int) -> str:
    """The content of the file: all parts of a version that a server loads."""
    models = [_MODEL.format(name, version) for role, name in MODELS.items() if role in roles]
    return f"{_NOTES}model_config_list {{\n{''.join(models)}}}\n"


def write_server_config(
    export_dir: str | os.PathLike, roles: Collection[str], version: int
) -> None:
    """Writes the file, unless it is there: a person decides when another version is served."""
    path = server_config_path(export_dir)
    if not path.exists():
        write_text(path, server_config(roles, version))
