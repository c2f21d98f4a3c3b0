"""Folders with other facts or files, and a manifest that belongs to them."""

from tf_smoothclir.storage.files import read_json
from tf_smoothclir.storage.folder import MANIFEST, Folder, write_manifest


def rewrite(path, **facts):
    """Writes the manifest of a folder again, with some other facts, of the files it has now."""
    kind = read_json(path / MANIFEST)["kind"]
    write_manifest(path, kind, {**Folder.read(path, kind).facts, **facts})
