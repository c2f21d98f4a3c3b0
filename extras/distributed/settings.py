"""The setting of training from shards, and what it goes together with."""

from __future__ import annotations

import dataclasses

from tf_smoothclir.settings.base import LEAVE_OUT, Rule, Settings, setting


@dataclasses.dataclass(frozen=True)
class ShardsSettings(Settings):
    """Of `--distribution=shards` and `multi_worker`."""

    shards_dir: str = setting(
        "",
        "Directory of TFRecord shards written by smoothclir-shards, local or remote such as gs://,"
        " for --distribution=shards and multi_worker (needs --batching=lists). Validation and"
        " evaluation still read the retrieval set.",
        is_path=True,
        has_effect=False,
    )


_OURS = ("shards", "multi_worker")
_SAMPLED = "the documents of shards were sampled when the shards were written"
_OF_IDS = "shards hold the ids of words, not their n-grams"
_BESIDE = (  # setting, the value that it may have, why no other, what to do
    ("batching", "lists", "shards give whole candidate lists", "Add --batching=lists"),
    ("fresh_negatives", False, _SAMPLED, LEAVE_OUT),
    ("hard_negatives", 0, _SAMPLED, LEAVE_OUT),
    ("pseudo_queries", 0, _SAMPLED, LEAVE_OUT),
    ("ngram_buckets", 0, _OF_IDS, LEAVE_OUT),
    (
        "retriever",
        "dense",
        "lexical models are learned by one process, from a whole set",
        "Leave one of the two out: --retriever=dense trains the towers alone",
    ),
    ("reranker", "none", "a re-ranker is learned by one process, from a whole set", LEAVE_OUT),
)
RULES = (
    Rule(
        lambda distribution, shards_dir: distribution in _OURS and not shards_dir,
        "each worker reads shards of its own, and none are given",
        "Write them with smoothclir-shards, and give --shards_dir",
    ),
    Rule(
        lambda shards_dir, distribution: bool(shards_dir) and distribution not in _OURS,
        "nothing reads the shards",
        "Add --distribution=shards, or multi_worker for several processes",
    ),
    *(
        Rule(
            lambda distribution, value, only=only: distribution in _OURS and value != only,
            reason,
            remedy,
            ("distribution", name),
        )
        for name, only, reason, remedy in _BESIDE
    ),
    Rule(  # of smoothclir-shards
        lambda num_shards, ngram_buckets: ngram_buckets > 0,
        _OF_IDS,
        "Leave --ngram_buckets out",
    ),
)
