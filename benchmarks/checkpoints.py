"""What the durability of checkpoints costs: digests and flushing, beside TensorFlow's own writing.

python -m benchmarks.checkpoints --megabytes=512
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from functools import partial
from pathlib import Path
from unittest import mock

from absl import flags

from benchmarks import common

PLAIN, FLUSHED, DURABLE = "TensorFlow alone", "with flushing", "with flushing and digests"


def saved(kind: str, megabytes: int, directory: str) -> dict[str, float]:
    """Saves the variables of a run once, after a first time that does not count."""
    import tensorflow as tf

    from tf_smoothclir.storage.folder import FileNote
    from tf_smoothclir.training import saved_states

    rows = [megabytes << 20 >> 12, 1 << 10]
    table = tf.Variable(tf.random.stateless_uniform(rows, [1, 2]))
    checkpoint = tf.train.Checkpoint(weights=[table])
    with (
        tempfile.TemporaryDirectory(dir=directory or None) as name,
        contextlib.ExitStack() as stack,
    ):
        states = saved_states.SavedStates(Path(name), saved_states.STATE)
        save = partial(states.save, checkpoint.write)
        if kind == PLAIN:
            save = partial(checkpoint.write, os.path.join(name, "plain"))
        if kind == FLUSHED:
            stack.enter_context(mock.patch.object(FileNote, "of", return_value=FileNote(0, "", 0)))
        save()
        os.sync()  # else the first one's pages are written during the second
        begin = time.perf_counter()
        save()
        return {"s": time.perf_counter() - begin}


def measure(megabytes: int, directory: str, rounds: int) -> list[dict]:
    """The table, one row for each way of writing."""
    rivals = {
        kind: partial(saved, kind, megabytes, directory) for kind in (PLAIN, FLUSHED, DURABLE)
    }
    title = f"Saving a state of {megabytes} MB"
    found = common.interleaved(rivals, rounds)
    return [common.table(title, found, ratio_of="s", references=[PLAIN])]


def _define_flags() -> None:
    flags.DEFINE_integer("megabytes", 512, "Size of the variables.", lower_bound=1)
    flags.DEFINE_string("directory", "", "Where to write; empty: the directory of temporary files.")


if __name__ == "__main__":
    common.run(_define_flags, measure)
