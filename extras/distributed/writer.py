"""Writing TFRecord shards of candidate lists; `reading` describes the directory."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from tf_smoothclir.data.candidate_lists import CandidateLists
from tf_smoothclir.data.hashing import permutation
from tf_smoothclir.data.tokenized_set import ROLES, TokenizedSet
from tf_smoothclir.extras.distributed.reading import MANIFEST, ShardEntry, ShardManifest, Shards
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.storage.files import copy_file, make_directory, new_directory, write_json
from tf_smoothclir.storage.folder import file_digest
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.progress import Bar, progress_bar

_OURS = re.compile(r"manifest\.json|vocabulary(/(query|document)\.txt)?|\w+-\d+-of-\d+\.tfrecord")


def write_shards(
    tokenized_set: TokenizedSet,
    lists: CandidateLists,
    directory: str | os.PathLike,
    num_shards: int,
    *,
    negatives: int,
    seed: int,
    text: TextSettings,
    overwrite: bool = False,
) -> Shards:
    """Writes candidate lists as shards with about the same number of pairs each."""
    directory = free_directory(directory, overwrite=overwrite)
    if not 1 <= num_shards <= len(lists.query_rows):
        reason = f"it must be in 1..{len(lists.query_rows)}, the number of queries"
        raise input_error(f"--num_shards={num_shards}", reason, "Choose another number")
    queries, documents = (tokenized_set.tokens(role) for role in ROLES)
    order = permutation(len(lists.query_rows), seed)
    with new_directory(directory, replace=overwrite) as temporary:
        vocabularies = {role: temporary / "vocabulary" / f"{role}.txt" for role in ROLES}
        (temporary / "vocabulary").mkdir()
        for copy in vocabularies.values():
            copy_file(tokenized_set.vocabulary_dir / copy.name, copy)
        # The longest lists first, dealt one after the other: the numbers of pairs differ by little.
        longest_first = np.argsort(-np.diff(lists.offsets)[order], kind="stable")
        shares = [order[longest_first[number::num_shards]] for number in range(num_shards)]
        with progress_bar(len(lists.document_rows), "Write shards", "pairs") as bar:
            entries = tuple(
                _write_file(
                    temporary / f"train-{number:05d}-of-{num_shards:05d}.tfrecord",
                    tokenized_set,
                    lists,
                    share,
                    bar,
                )
                for number, share in enumerate(shares)
            )
        manifest = ShardManifest(
            name=tokenized_set.retrieval_set.source.name,
            negatives=negatives,
            seed=seed,
            num_grades=tokenized_set.retrieval_set.num_grades,
            queries=len(lists.query_rows),
            pairs=len(lists.document_rows),
            query_tokens=int(queries.lengths[lists.query_rows].sum()),
            document_tokens=int(documents.lengths[lists.document_rows].sum()),
            text=json.loads(json.dumps(text.values())),  # lists, as they are read
            vocabularies={role: file_digest(copy) for role, copy in vocabularies.items()},
            shards=entries,
        )
        write_json(temporary / MANIFEST, dataclasses.asdict(manifest))
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


def _write_file(
    path: Path, tokenized_set: TokenizedSet, lists: CandidateLists, share: np.ndarray, bar: Bar
) -> ShardEntry:
    """Writes the lists at the positions in `share`."""
    retrieval_set = tokenized_set.retrieval_set
    queries, documents = (tokenized_set.tokens(role) for role in ROLES)
    lengths = documents.lengths
    with tf.io.TFRecordWriter(os.fspath(path)) as writer:
        for position in share:
            query = lists.query_rows[position]
            pairs = slice(lists.offsets[position], lists.offsets[position + 1])
            rows = lists.document_rows[pairs]
            values = {
                "query_tokens": queries[query],
                "document_tokens": np.concatenate([documents[row] for row in rows]),
                "document_lengths": lengths[rows],
                "grades": lists.grades[pairs],
                "query_id": [retrieval_set.query_ids[query].encode()],
                "document_ids": [retrieval_set.document_ids[row].encode() for row in rows],
            }
            writer.write(_example(values))
            bar.update(len(rows))
    pairs = sum(int(lists.offsets[p + 1] - lists.offsets[p]) for p in share)
    return ShardEntry(path.name, len(share), pairs, path.stat().st_size, file_digest(path))


def _example(values: dict[str, Sequence]) -> bytes:
    features = {}
    for name, of in values.items():
        if isinstance(of, np.ndarray):
            features[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=of))
        else:
            features[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=of))
    example = tf.train.Example(features=tf.train.Features(feature=features))
    return example.SerializeToString(deterministic=True)
