"""Training by several processes, and from TFRecord shards.

A plug-in: `--plugin=tf_smoothclir.extras.distributed` brings `--distribution=shards` and
`multi_worker`; `docs/distributed.md` says when they pay.
"""

from __future__ import annotations

from tf_smoothclir.extras.distributed.settings import RULES, ShardsSettings
from tf_smoothclir.plugins import register

for _name, _make, _facts, _help in (
    (
        "shards",
        "shard_training:on_shards",
        {},
        "one process, which streams its batches from --shards_dir.",
    ),
    (
        "multi_worker",
        "workers:multi_worker",
        {"has_several_processes": True},
        "the processes that TF_CONFIG names train one model together, each on its own part of the"
        " shards; see docs/distributed.md.",
    ),
):
    register(
        "distribution",
        _name,
        f"tf_smoothclir.extras.distributed.{_make}",
        help=_help,
        settings=ShardsSettings,
        rules=RULES,
        facts=_facts,
    )
