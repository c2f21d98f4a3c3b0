"""Training batches from shards that workers take one after the other."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np

from tf_smoothclir.data.hashing import permutation
from tf_smoothclir.data.shards.pipeline import ListOrder, ShardPipeline
from tf_smoothclir.data.shards.shards import Shards
from tf_smoothclir.settings.run import TrainingSettings
from tf_smoothclir.training.batches import Epoch
from tf_smoothclir.training.distributed.shard_batches import check_workers


class ServedBatches:
    """Batches of whole candidate lists, a shard at a time, by whichever worker gets it.

    An epoch goes in rounds, of a shard for each worker. All of a round are done before the next
    one begins: so a checkpoint between rounds has trained on whole shards and on no others.
    """

    def __init__(self, shards: Shards, settings: TrainingSettings, num_workers: int):
        """Hands out shards.

        Args:
            shards: All shards.
            settings: Whose `batch_size` is that of each step, which one worker makes.
            num_workers: Workers that take shards at the same time.

        Raises:
            InputError: There are more workers than shards.
        """
        check_workers(shards, num_workers)
        self._shards = shards
        self._seed = settings.seed
        self._num_workers = num_workers
        number = len(shards.manifest["shards"])
        self._pipelines = [
            ShardPipeline(
                shards,
                batch_size=settings.batch_size,
                seed=settings.seed,
                worker=shard,
                num_workers=number,
            )
            for shard in range(number)
        ]

    def epoch(self, number: int) -> Epoch:
        """Returns the batches of an epoch, from 0; `batches` gives rounds, from a shard's begin.

        A round is a list of the `ListOrder` of each of its shards.
        """
        order = permutation(len(self._pipelines), self._seed, number)
        pipelines = [self._pipelines[place] for place in order]
        ends = np.cumsum([pipeline.num_steps() for pipeline in pipelines])

        def rounds(start: int) -> Iterator[list[ListOrder]]:
            first = int(np.searchsorted(ends, start, side="right"))
            for begin in range(first, len(pipelines), self._num_workers):
                taken = pipelines[begin : begin + self._num_workers]
                yield [pipeline.order(number) for pipeline in taken]

        def rows(step: int) -> list[tuple[str, str, int]]:
            place = int(np.searchsorted(ends, step, side="right"))
            begin = ends[place] - pipelines[place].num_steps()
            return pipelines[place].rows(number, int(step - begin))

        return Epoch(int(ends[-1]), self._shards.manifest["pairs"], rounds, rows)

    def explaining_defects(self) -> contextlib.AbstractContextManager:
        """Turns an error of reading into one that names file and record."""
        return self._shards.explaining_defects()
