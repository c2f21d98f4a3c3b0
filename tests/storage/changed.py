"""Folders with other facts or files, and a manifest that belongs to them."""

from tf_smoothclir.storage import files, folder


def rewrite(path, **facts):
    """Writes the manifest of a folder again, with some other facts, of the files it has now."""
    kind = files.read_json(path / folder.MANIFEST)["kind"]
    folder.write_manifest(path, kind, {**folder.Folder.read(path, kind).facts, **facts})
