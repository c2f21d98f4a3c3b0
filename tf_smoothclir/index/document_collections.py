"""Collections to index: the documents of a retrieval set, or files of documents. All stream."""

import hashlib
from pathlib import Path

import numpy as np

from tf_smoothclir.data.sources.cells import id_of, in_file
from tf_smoothclir.data.sources.file_source import tables_of
from tf_smoothclir.data.sources.line_files import is_compressed, read_lines
from tf_smoothclir.data.sources.opening import columns_of, labels_of, source_of
from tf_smoothclir.data.sources.source import Source
from tf_smoothclir.data.sources.tables import SUFFIXES, kind_of, texts_role
from tf_smoothclir.data.sources.unjudged import UnjudgedDirectory
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.storage.folder import joint_digest
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.paths import local_path

_REMEDY = (
    f"Give a file, or a directory of files of one kind, ending in .documents, {', '.join(SUFFIXES)}"
)


class FileCollection(UnjudgedDirectory):
    """The documents of files of one kind, in order; `.documents` are those of WikiCLIR."""

    def __init__(self, paths: list[Path], data: DataSettings | None):
        data, files = data or DataSettings(), dict.fromkeys(paths, "")
        super().__init__(files, *labels_of(data), columns=columns_of(data.columns))
        self.name = str(paths[0]) if len(paths) == 1 else str(paths[0].parent)
        self.roles = {**self.roles, "documents": texts_role(paths[0])}

    def fingerprint(self) -> str:
        paths = self.files["documents"]
        if len(paths) == 1:
            return joint_digest(paths)
        return hashlib.sha256("".join(joint_digest([p]) for p in paths).encode()).hexdigest()


def open_files(path: str | Path, flag: str, data: DataSettings | None = None) -> FileCollection:
    """Opens a file of documents, or a directory of such files, as Spark writes them."""
    # A text that does not say its language has that of the models, as in the set of training.
    path = Path(local_path(path))
    if path.is_dir():
        for queries in tables_of(path, "queries"):
            reason = f"the directory has queries, too: {queries.name}"
            raise input_error(f"{flag}={path}", reason, "Give the file of its documents")
        files = sorted(file for file in path.iterdir() if kind_of(file) and file.is_file())
        kinds = set(map(_kind, files))
        if len(kinds) == 1:
            return FileCollection(files, data)
        reason = f"the directory holds {' and '.join(sorted(kinds)) or 'no'} files of documents"
    elif not path.exists():
        reason = "there is no such file"
    elif not path.is_file():
        reason = "it is not a regular file, and documents are read more than once"
    elif kind_of(path):
        return FileCollection([path], data)
    else:
        reason = f"the suffix {path.suffix!r} is not a known kind of file"
    raise input_error(f"{flag}={path}", reason, _REMEDY)


def open_collection(path: str, data: DataSettings) -> Source:
    """Opens the files at `path` or, if it is empty, the documents of a retrieval set."""
    return open_files(path, "--collection", data) if path else source_of(data)


def read_ids(path: str | Path) -> list[str]:
    """Reads ids from a file, one per line; returns each once, in order."""
    path = Path(path)
    place = in_file(path)
    return list(dict.fromkeys(id_of(line, "id", place, n) for n, line in read_lines(path)))


def check_ids(collection: Source, hashes: np.ndarray) -> None:
    """Checks that there are documents, each with an id, and so a hash, of its own."""
    if not len(hashes):
        raise input_error(collection.name, "there are no documents", "Check the collection")
    values, counts = np.unique(hashes, return_counts=True)
    suspects = set(np.flatnonzero(np.isin(hashes, values[counts > 1])).tolist())
    first: dict[str, int] = {}
    for index, document in enumerate(collection.documents() if suspects else ()):
        if index in suspects and first.setdefault(document.id, index) != index:
            there = collection.place("documents", first[document.id])
            reason = f"id {document.id!r} is already used at {there}"
            remedy = "Give each document its own id"
            raise input_error(collection.place("documents", index), reason, remedy)


def _kind(path: Path) -> str:
    return "".join(path.suffixes[-2:] if is_compressed(path) else path.suffixes[-1:]).lower()
