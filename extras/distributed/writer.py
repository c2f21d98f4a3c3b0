"""Writing TFRecord shards of candidate lists; `reading` describes the directory."""

from __future__ import annotations

import dataclasses
import heapq
import os
import re
from pathlib import Path

import numpy as np
import tensorflow as tf

from tf_smoothclir.data.candidate_lists import CandidateLists
from tf_smoothclir.data.hashing import permutation
from tf_smoothclir.data.tokenized_set import ROLES, TokenizedSet
from tf_smoothclir.extras.distributed.manifest import MANIFEST, ShardEntry, ShardManifest
from tf_smoothclir.extras.distributed.reading import NUMBERS, Shards
from tf_smoothclir.settings.combinations import check_combinations
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.utils.digests import file_digest
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.files import copy_file, make_directory, new_directory, write_json
from tf_smoothclir.utils.progress import Bar, progress_bar

_OURS = re.compile(r"manifest\.json|vocabulary(/(query|document)\.txt)?|\w+-\d+-of-\d+\.tfrecord")


def write_shards(
    tokenized_set: TokenizedSet,
    lists: CandidateLists,
    directory: str | os.PathLike,
    num_shards: int,
    *,
    split: str,
    negatives: int,
    seed: int,
    text: TextSettings,
    overwrite: bool = False,
) -> Shards:
    """Writes candidate lists as shards with about the same number of pairs each."""
    check_combinations(text, num_shards=num_shards)
    directory = free_directory(directory, overwrite=overwrite)
    if not 1 <= num_shards <= len(lists.query_rows):
        reason = f"it must be in 1..{len(lists.query_rows)}, the number of queries"
        raise input_error(f"--num_shards={num_shards}", reason, "Choose another number")
    with new_directory(directory, replace=overwrite) as temporary:
        manifest = ShardManifest(
            name=tokenized_set.retrieval_set.source.name,
            split=split,
            negatives=negatives,
            seed=seed,
            num_grades=tokenized_set.retrieval_set.num_grades,
            queries=len(lists.query_rows),
            pairs=len(lists.document_rows),
            query_tokens=_count_tokens(tokenized_set, "query", lists.query_rows),
            document_tokens=_count_tokens(tokenized_set, "document", lists.document_rows),
            text=dataclasses.asdict(text),
            vocabularies=_copy_vocabularies(tokenized_set, temporary / "vocabulary"),
            shards=_write_files(temporary, tokenized_set, lists, num_shards, split, seed),
        )
        write_json(temporary / MANIFEST, manifest.to_dict())
        if overwrite:
            free_directory(directory, overwrite=True)  # files that came meanwhile may not be ours
    shards = Shards.open(directory)
    if shards.manifest != manifest:
        reason = "another process has written other shards there meanwhile"
        raise input_error(directory, reason, "Choose another directory")
    return shards


def free_directory(directory: str | os.PathLike, *, overwrite: bool) -> Path:
    """The path of a directory that shards may be written to; deletes nothing yet."""
    where = f"--output_dir={os.fspath(directory)}"
    if "://" in where:
        remedy = "Write to a local directory, then copy it with the storage's own tool"
        raise input_error(where, "shards are not written to remote storage", remedy)
    path = Path(directory).resolve()  # the target of a link is replaced, not the link
    if path.is_dir():
        found = {file.relative_to(path).as_posix() for file in path.rglob("*")}
        foreign = sorted(name for name in found if not _OURS.fullmatch(name))
        if found and not overwrite:
            remedy = "Choose another one, or give --overwrite to replace shards"
            raise input_error(where, "the directory is not empty", remedy)
        if foreign:
            reason = f"the directory holds more than shards, for example {foreign[0]}"
            raise input_error(where, reason, "Choose another one")
    elif path.exists():
        raise input_error(where, "there is a file of this name", "Choose another one")
    make_directory(path.parent, "--output_dir")
    return path


def _count_tokens(tokenized_set: TokenizedSet, role: str, rows: np.ndarray) -> int:
    return int(tokenized_set.tokens(role).lengths[rows].sum())


def _copy_vocabularies(tokenized_set: TokenizedSet, directory: Path) -> dict[str, str]:
    """Copies the vocabularies of a set; returns their digests by role."""
    directory.mkdir()
    copies = {role: directory / f"{role}.txt" for role in ROLES}
    for copy in copies.values():
        copy_file(tokenized_set.vocabulary_dir / copy.name, copy)
    return {role: file_digest(copy) for role, copy in copies.items()}


def _write_files(
    directory: Path,
    tokenized_set: TokenizedSet,
    lists: CandidateLists,
    num_shards: int,
    split: str,
    seed: int,
) -> tuple[ShardEntry, ...]:
    shares = _share_out(np.diff(lists.offsets), num_shards, seed)
    names = (f"{split}-{number:05d}-of-{num_shards:05d}.tfrecord" for number in range(num_shards))
    with progress_bar(len(lists.document_rows), "Write shards", "pairs") as bar:
        return tuple(
            _write_file(directory / name, tokenized_set, lists, share, bar)
            for name, share in zip(names, shares)
        )


def _share_out(lengths: np.ndarray, num_shards: int, seed: int) -> list[list[int]]:
    """The lists of each shard: in shuffled order, each goes where the fewest pairs are."""
    shares = [[] for _ in range(num_shards)]
    pairs = [(0, number) for number in range(num_shards)]
    for position in permutation(len(lengths), seed):
        fewest, number = pairs[0]
        shares[number].append(position)
        heapq.heapreplace(pairs, (fewest + int(lengths[position]), number))
    return shares


def _write_file(
    path: Path, tokenized_set: TokenizedSet, lists: CandidateLists, share: list[int], bar: Bar
) -> ShardEntry:
    """Writes the lists at the positions in `share`."""
    queries, documents = (tokenized_set.tokens(role) for role in ROLES)
    all_lengths = documents.lengths
    pairs = 0
    with tf.io.TFRecordWriter(os.fspath(path)) as writer:
        for position in share:
            query = lists.query_rows[position]
            pairs_of_list = slice(lists.offsets[position], lists.offsets[position + 1])
            rows = lists.document_rows[pairs_of_list]
            example = _example(
                query_id=tokenized_set.retrieval_set.query_ids[query],
                document_ids=[tokenized_set.retrieval_set.document_ids[row] for row in rows],
                query_tokens=queries[query],
                document_tokens=np.concatenate([documents[row] for row in rows]),
                document_lengths=all_lengths[rows],
                grades=lists.grades[pairs_of_list],
            )
            writer.write(example.SerializeToString(deterministic=True))
            pairs += len(rows)
            bar.update(len(rows))
    return ShardEntry(path.name, len(share), pairs, path.stat().st_size, file_digest(path))


def _example(query_id: str, document_ids: list[str], **numbers: np.ndarray) -> tf.train.Example:
    values = {
        "query_id": [query_id.encode()],
        "document_ids": [document_id.encode() for document_id in document_ids],
        **{name: [numbers[name].astype("<i4").tobytes()] for name in NUMBERS},
    }
    features = {
        name: tf.train.Feature(bytes_list=tf.train.BytesList(value=value))
        for name, value in values.items()
    }
    return tf.train.Example(features=tf.train.Features(feature=features))
