"""Publishing the parts of a search under the next version, whole or not at all."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import tensorflow as tf

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.publishing.exported_tower import ExportedTower
from tf_smoothclir.publishing.manifest import (
    MANIFEST,
    check_files,
    check_pair,
    hash_files,
    read_manifest,
)
from tf_smoothclir.publishing.search_model import SearchModel
from tf_smoothclir.publishing.verification import Verifier
from tf_smoothclir.publishing.warm_up import warm_up_requests, write_warm_up
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.files import flush_to_disk, locked, write_json

# Role -> directory of its versions, which is also its name in the configuration of the server, in
# the order in which the parts appear. A new document tower or search model harms nobody who still
# asks the old query tower, while a query tower without its document tower finds nonsense; so the
# query tower is last, and where it is, all is there.
DIRECTORIES = {"document": "document_tower", "search": "search", "query": "query_tower"}
_TEMPORARY, _LOCK = ".smoothclir-export-", ".smoothclir-export.lock"


@dataclasses.dataclass(frozen=True)
class PairInfo:
    """What all manifests of a version say.

    Attributes:
        dim: Length of the vectors.
        epsilon: ε of the similarity.
        thresholds: Scores at which the grade changes.
        data: Settings of the set that the towers were trained on, to find its collection again.
    """

    dim: int
    epsilon: float
    thresholds: tuple[float, ...]
    data: dict


def part_dir(export_dir: str | os.PathLike, role: str) -> Path:
    """Returns the directory whose integer subfolders are the versions of a part."""
    return Path(export_dir, DIRECTORIES[role])


def versions(export_dir: str | os.PathLike, role: str) -> list[int]:
    """Returns the versions of a part ("query", "document" or "search") that are there, rising."""
    directory = part_dir(export_dir, role)
    if not directory.is_dir():
        return []
    names = [path.name for path in directory.iterdir()]
    return sorted(int(name) for name in names if name.isascii() and name.isdigit())


def publish(
    towers: dict[str, ExportedTower],
    export_dir: str | os.PathLike,
    info: PairInfo,
    texts: dict[str, Sequence[bytes]],
    search_model: SearchModel | None = None,
    verifier: Verifier | None = None,
) -> int:
    """Writes both towers, and the search model if there is one, under the next integer version.

    All are written into a temporary directory, loaded and run in a fresh process that imports
    TensorFlow only, compared with the trained towers, flushed to disk, and then renamed one after
    the other: a server that watches a directory never sees half a model. An error before that
    leaves nothing behind; what a killed process leaves begins with a dot, which no server loads,
    and goes with the next export. Stopped between two renames, there are parts without a query
    tower: `load_part` passes over them, and their version is not used again.

    Args:
        towers: "query" and "document" -> trained tower.
        export_dir: Gets `document_tower/<version>`, `search/<version>`, `query_tower/<version>`.
        info: For the manifests.
        texts: "query" and "document" -> real texts, to compare on and to warm the server up with.
        search_model: Of the same towers.
        verifier: One that has been started, which is used up; None starts one.

    Returns:
        The version.

    Raises:
        InputError: Another export is writing there, or has taken the version.
        RuntimeError: A written part does not load, or differs from the trained one.
    """
    parts = dict(towers) if search_model is None else {**towers, "search": search_model}
    export_dir = Path(export_dir)
    export_dir.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_only_export(export_dir))
        verifier = verifier or stack.enter_context(Verifier())
        temporary = stack.enter_context(_temporary_directory(export_dir))
        version = 1 + max(
            (v for role in DIRECTORIES for v in versions(export_dir, role)), default=0
        )
        pair_id = _pair_id(towers, info)
        for tower in towers.values():
            tower.pair_id = pair_id
        for role, part in parts.items():
            directory = temporary / role
            part.save(str(directory))
            verifier.send(role, part, directory, texts)  # it loads while the next is written
            write_warm_up(directory, DIRECTORIES[role], warm_up_requests(role, texts))
            manifest = {"role": role, "version": version, "pair_id": pair_id}
            manifest |= dataclasses.asdict(info)
            if role == "search":
                manifest |= {"documents": part.num_documents, "depth": part.depth}
            manifest["files"] = hash_files(directory)
            write_json(directory / MANIFEST, manifest)
        for path in temporary.rglob("*"):
            flush_to_disk(path)
        verifier.compare()
        for role in DIRECTORIES:
            if role in parts:
                _rename(temporary / role, part_dir(export_dir, role) / str(version))
    return version


def load_tower(export_dir: str | os.PathLike, role: str, version: int | None = None):
    """Loads a published tower after checking its files and that the other tower is there.

    Args:
        export_dir: Where `publish` wrote.
        role: "query" or "document".
        version: None for the latest that has both towers.

    Returns:
        `(encode, manifest)`; `encode` takes `text=` `[batch]` string and gives `vector`.

    Raises:
        InputError: There is none, a file is not the one that was published, or the towers of the
            version do not belong together.
    """
    model, manifest = load_part(export_dir, role, version)
    encode = model.signatures["serving_default"]
    encode.keep_alive = model  # a signature alone does not keep its variables
    return encode, manifest


def load_part(export_dir: str | os.PathLike, role: str, version: int | None = None):
    """Loads a published part after checking its files and that both towers are there.

    Args:
        export_dir: Where `publish` wrote.
        role: "query", "document" or "search".
        version: None for the latest that has both towers.

    Returns:
        `(model, manifest)`; the model is what `tf.saved_model.load` gives.

    Raises:
        InputError: As `load_tower`.
    """
    version = _checked_version(export_dir, role, version)
    directory = part_dir(export_dir, role) / str(version)
    manifest = read_manifest(directory, role)
    for other in ROLES:
        check_pair(manifest, read_manifest(part_dir(export_dir, other) / str(version), other))
    check_files(directory, manifest, "Export the run again, and delete this version")
    return tf.saved_model.load(str(directory)), manifest


def _checked_version(export_dir: str | os.PathLike, role: str, version: int | None) -> int:
    there = {name: set(versions(export_dir, name)) for name in {role, *ROLES}}
    whole = set.intersection(*there.values())
    if version in whole or (version is None and whole):
        return max(whole) if version is None else version
    kind = DIRECTORIES[role].replace("_", " ") + ("" if role in ROLES else " model")
    reason = f"there is no {kind}" + ("" if version is None else f" of version {version}")
    if version in there[role] or (version is None and there[role]):
        number = max(there[role]) if version is None else version
        missing = " and no ".join(DIRECTORIES[name] for name in there if number not in there[name])
        reason = f"version {number} of the {kind} is not whole: there is no {missing}/{number}"
    raise input_error(
        f"--export_dir={export_dir}", reason, "Write all parts with smoothclir-export"
    )


def _only_export(export_dir: Path):
    """Keeps other exports out of a directory."""
    return locked(
        export_dir / _LOCK,
        f"--export_dir={export_dir}",
        "another export is writing there",
        "Wait until it has ended, or choose another directory",
    )


@contextlib.contextmanager
def _temporary_directory(export_dir: Path) -> Iterator[Path]:
    """Yields a directory for all parts, and deletes those that killed exports have left."""
    for left in export_dir.glob(f"{_TEMPORARY}*"):
        shutil.rmtree(left)
    temporary = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=export_dir))
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _rename(temporary: Path, path: Path) -> None:
    """Renames a written part to its version; on disk, too, when this returns."""
    path.parent.mkdir(exist_ok=True)
    flush_to_disk(path.parent.parent)
    try:
        os.rename(temporary, path)
    except OSError:
        if not path.exists():
            raise
        raise input_error(
            path, "another export has written this version meanwhile", "Export once more"
        ) from None
    flush_to_disk(path.parent)


def _pair_id(towers: dict[str, ExportedTower], info: PairInfo) -> str:
    """Returns a digest of both towers with their vocabularies, ε and θ; equal for equal content."""
    parts = [towers[role].digest() for role in ROLES] + [repr(info.thresholds)]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()
