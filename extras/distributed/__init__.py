"""Training by several processes, and from TFRecord shards.

A plug-in: `--plugin=tf_smoothclir.extras.distributed` brings `--distribution=shards` and
`multi_worker`; `docs/distributed.md` says when they pay.
"""

from __future__ import annotations

from tf_smoothclir.extras.distributed.settings import RULES, ShardsSettings
from tf_smoothclir.plugins import register

register(
    "distribution",
    "shards",
    "tf_smoothclir.extras.distributed.pipeline:on_shards",
    help="one process, which streams its batches from --shards_dir.",
    settings=ShardsSettings,
    rules=RULES,
)
register(
    "distribution",
    "multi_worker",
    "tf_smoothclir.extras.distributed.workers:multi_worker",
    help="the processes that TF_CONFIG names train one model together, each on its own part of the"
    " shards; see docs/distributed.md.",
    settings=ShardsSettings,
    rules=RULES,
    facts={"has_several_processes": True},
)
