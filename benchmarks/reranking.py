"""Re-ranking one query's candidates: p50 and p99, of each network, on the texts of a run.

python -m benchmarks.reranking --run_dir=runs/train

Networks score with the word vectors of the run; what they have learned does not change how long
that takes. Candidates are drawn at random, which have more different words than those of a search.
"cold" includes reading the words of all candidates, which a search does once for each document.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np
from absl import flags

from benchmarks import common

_WARM_UP = 20


def rerank(
    run_dir: str, network: str, candidates: int, queries: int, threads: int
) -> dict[str, float]:
    """Times one network."""
    common.use_threads(threads)
    import tensorflow as tf

    from tf_smoothclir.data.sources.opening import source_of
    from tf_smoothclir.data.sources.source import SPLITS
    from tf_smoothclir.interaction.reranker import Reranker
    from tf_smoothclir.papers import yu2020 as yu2020  # registers its networks
    from tf_smoothclir.protocols.text_search import CutPoints
    from tf_smoothclir.publishing.exported_reranker import SecondStage, StageSettings
    from tf_smoothclir.training.run_data import tokenized_set_of
    from tf_smoothclir.training.run_directory import RunDirectory

    run = RunDirectory.load(run_dir, verify=False)
    settings = run.settings()
    own = Reranker.load(run.reranker)
    reranker = Reranker(own.chosen(network=network).choices, own.codes, own.word_weights)
    tokenized = tokenized_set_of(source_of(settings.data), settings, run, SPLITS)
    texts = reranker.texts(tokenized)
    score = reranker.network.list_scorer()
    generator = np.random.default_rng(13)
    asked = generator.integers(0, len(texts.queries), queries + _WARM_UP)
    rows = generator.integers(0, len(texts.documents), (len(asked), candidates))
    warm = []
    for query, documents in zip(asked, rows):
        ids = texts.queries[query], texts.documents[documents]
        begin = time.perf_counter()
        score(*ids)
        warm.append(time.perf_counter() - begin)
    stage = SecondStage(reranker, run.vocabulary, StageSettings(candidates, CutPoints((), ())))
    strings = np.array(
        [text.text for text in tokenized.retrieval_set.source.documents()], dtype=object
    )
    reading = []
    for documents in rows:
        chosen = tf.constant(list(strings[documents]))
        begin = time.perf_counter()
        stage.encoders["document"](chosen)
        reading.append(time.perf_counter() - begin)
    warm, cold = (1000 * np.array(one)[_WARM_UP:] for one in (warm, np.add(warm, reading)))
    return {
        "p50 ms": float(np.percentile(warm, 50)),
        "p99 ms": float(np.percentile(warm, 99)),
        "cold p50 ms": float(np.percentile(cold, 50)),
        "cold p99 ms": float(np.percentile(cold, 99)),
        "codes MB": sum(array.nbytes for array in reranker.codes.arrays().values()) / 2**20,
    }


def measure(
    *,
    run_dir: str,
    networks: list[str],
    candidates: int,
    queries: int,
    threads: int = 1,
    rounds: int = 1,
) -> list[dict]:
    """A table with a row for each network."""
    rivals = {
        name: partial(rerank, run_dir, name, candidates, queries, threads) for name in networks
    }
    measured = common.interleaved(rivals, rounds)
    title = f"{candidates} candidates, {queries} queries"
    return [common.table(title, measured, ratio_of="p50 ms", references=networks[:1])]


def _define_flags() -> None:
    flags.DEFINE_string("run_dir", "runs/train", "A run of smoothclir-train with a --reranker.")
    flags.DEFINE_list(
        "networks", ["late_interaction", "knrm", "drmm", "match_pyramid"], "Networks."
    )
    flags.DEFINE_integer("candidates", 100, "Documents of each query.", lower_bound=1)
    flags.DEFINE_integer("queries", 300, "Queries that are timed.", lower_bound=1)
    flags.DEFINE_integer("threads", 1, "Threads of TensorFlow.", lower_bound=1)


if __name__ == "__main__":
    common.run(_define_flags, measure)
