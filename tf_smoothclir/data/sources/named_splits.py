"""The splits of sets that other projects published, by the names that they give them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.sources.source import Source
from tf_smoothclir.utils.errors import input_error

# What projects call a part -> what it is.
NAMES = {
    "train": "train",
    "dev": "validation",
    "validation": "validation",
    "valid": "validation",
    "test": "test",
}
_PARTS_OF_TRAINING = 5  # one of them validates, if nothing else does


def splits_of_parts(source: Source, parts: Mapping[str, Iterable[str]]) -> dict[str, str] | None:
    """Query id -> split, as the names of the parts of a set say.

    Published test queries stay what they are, so that figures can be compared. Without test
    queries, those of `dev` are (as BEIR does with MS MARCO). Without any other validation queries,
    a fifth of the training queries are, drawn by a hash of their ids. Judged queries that are not
    there have no split: `checked_judgments` counts them.
    """
    queries = {text.id for text in source.queries()}
    found: dict[str, str] = {}
    for name, ids in parts.items():
        for id_ in filter(queries.__contains__, ids):
            if found.setdefault(id_, NAMES[name]) != NAMES[name]:
                reason = f"query {id_!r} has judgments for {found[id_]} and for {NAMES[name]}"
                raise input_error(source.name, reason, "Keep those of one of the two")
    there = set(found.values())
    if there == {"train"}:
        return None
    if "test" not in there:
        found = {id_: "test" if split == "validation" else split for id_, split in found.items()}
    if "train" in there and "validation" not in set(found.values()):
        training = [id_ for id_, split in found.items() if split == "train"]
        hashes = zip(hash_ids(training, "validation").tolist(), training)
        drawn = [id_ for _, id_ in sorted(hashes)][: len(training) // _PARTS_OF_TRAINING]
        found.update(dict.fromkeys(drawn, "validation"))
    return found
