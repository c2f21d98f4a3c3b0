"""Writing TFRecord shards of candidate lists; `shards` reads them."""

from __future__ import annotations

import dataclasses
import heapq
import os
import re
import shutil
from pathlib import Path

import numpy as np
import tensorflow as tf
import tqdm

from tf_smoothclir.data.candidate_lists import CandidateLists
from tf_smoothclir.data.hashing import permutation
from tf_smoothclir.data.shards.shards import FORMAT_VERSION, MANIFEST, NUMBERS, Shards
from tf_smoothclir.data.tokenized_set import ROLES, TokenizedSet
from tf_smoothclir.settings.run import TextSettings
from tf_smoothclir.utils.digests import file_digest
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.files import make_directory, new_directory, write_json
from tf_smoothclir.utils.progress import progress_bar

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
    """Writes candidate lists as shards that have about as many pairs each.

    Args:
        tokenized_set: The set.
        lists: `candidate_lists` of the split with these `negatives` and this `seed`.
        directory: A local one; complete or absent at any time.
        num_shards: At most one per list.
        split: "train", "validation" or "test".
        negatives: Sampled documents a query.
        seed: Of the sampling; shares out the lists, too.
        text: What the set was prepared with.
        overwrite: Deletes the shards that are there.

    Raises:
        InputError: The directory cannot be used (see `free_directory`), or the number of shards, or
            the set has n-grams.
    """
    if tokenized_set.has_ngrams:
        reason = "shards hold the ids of words, not their n-grams"
        raise input_error(f"--ngram_buckets={text.ngram_buckets}", reason, "Leave it out")
    directory = free_directory(directory, overwrite=overwrite)
    if not 1 <= num_shards <= len(lists.query_rows):
        reason = f"it must be in 1..{len(lists.query_rows)}, the number of queries"
        raise input_error(f"--num_shards={num_shards}", reason, "Choose another number")
    manifest = {
        "format_version": FORMAT_VERSION,
        "name": tokenized_set.retrieval_set.source.name,
        "split": split,
        "negatives": negatives,
        "seed": seed,
        "num_grades": tokenized_set.retrieval_set.num_grades,
        "queries": len(lists.query_rows),
        "pairs": len(lists.document_rows),
        "query_tokens": int(tokenized_set.tokens("query").lengths[lists.query_rows].sum()),
        "document_tokens": int(tokenized_set.tokens("document").lengths[lists.document_rows].sum()),
        "text": dataclasses.asdict(text),
    }
    with new_directory(directory, replace=overwrite) as temporary:
        manifest["vocabularies"] = _write_vocabularies(temporary / "vocabulary", tokenized_set)
        with progress_bar(manifest["pairs"], "Write shards", "pairs") as bar:
            manifest["shards"] = []
            for number, part in enumerate(_share_out(np.diff(lists.offsets), num_shards, seed)):
                path = temporary / f"{split}-{number:05d}-of-{num_shards:05d}.tfrecord"
                manifest["shards"].append(_write_shard(path, tokenized_set, lists, part, bar))
        write_json(temporary / MANIFEST, manifest)
        if overwrite:
            free_directory(directory, overwrite=True)  # what has come meanwhile may not be ours
    shards = Shards.open(directory)
    if shards.manifest != manifest:
        reason = "another process has written other shards there meanwhile"
        raise input_error(directory, reason, "Choose another directory")
    return shards


def free_directory(directory: str | os.PathLike, *, overwrite: bool) -> Path:
    """Returns the path of a directory that shards may be written to, and deletes nothing yet.

    Raises:
        InputError: It is remote, cannot be made, or is there: empty directories and, with
            `overwrite`, those that hold nothing but shards, are free nevertheless.
    """
    where = f"--output_dir={os.fspath(directory)}"
    if "://" in where:
        remedy = "Write to a local directory, and copy it with the tool of the storage"
        raise input_error(where, "shards are not written to remote storage", remedy)
    path = Path(directory).resolve()  # of a link, what it points to is replaced
    if path.is_dir():
        found = {file.relative_to(path).as_posix() for file in path.rglob("*")}
        foreign = sorted(name for name in found if not _OURS.fullmatch(name))
        if found and not overwrite:
            remedy = "Choose another one, or give --overwrite to replace shards"
            raise input_error(where, "the directory is not empty", remedy)
        if foreign:
            reason = f"the directory holds more than shards, such as {foreign[0]}"
            raise input_error(where, reason, "Choose another one")
    elif path.exists():
        raise input_error(where, "there is a file of this name", "Choose another one")
    make_directory(path.parent, "--output_dir")
    return path


def _share_out(lengths: np.ndarray, num_shards: int, seed: int) -> list[list[int]]:
    """Returns the lists of each shard in shuffled order, each put where the fewest pairs are."""
    parts = [[] for _ in range(num_shards)]
    pairs = [(0, number) for number in range(num_shards)]
    for position in permutation(len(lengths), seed):
        fewest, number = pairs[0]
        parts[number].append(position)
        heapq.heapreplace(pairs, (fewest + int(lengths[position]), number))
    return parts


def _write_vocabularies(directory: Path, tokenized_set: TokenizedSet) -> dict[str, str]:
    """Copies the vocabularies of a set, and returns their hashes by role."""
    directory.mkdir()
    files = {role: directory / f"{role}.txt" for role in ROLES}
    for file in files.values():
        shutil.copy(tokenized_set.vocabulary_dir / file.name, file)
    return {role: file_digest(file) for role, file in files.items()}


def _write_shard(
    path: Path, tokenized_set: TokenizedSet, lists: CandidateLists, part: list[int], bar: tqdm.tqdm
) -> dict:
    """Writes the lists at the positions `part`; returns what the manifest says of the file."""
    queries, documents = (tokenized_set.tokens(role) for role in ROLES)
    all_lengths = documents.lengths
    pairs = 0
    with tf.io.TFRecordWriter(os.fspath(path)) as writer:
        for position in part:
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
    return {
        "file": path.name,
        "queries": len(part),
        "pairs": pairs,
        "bytes": path.stat().st_size,
        "sha256": file_digest(path),
    }


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
