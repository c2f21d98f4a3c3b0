"""Kinds of index of an export: size, latency, and the quality that compressed vectors cost.

python -m benchmarks.quantised --export_dir=models

Indexes the documents of the set that an export was trained on, and ranks all of them for the
queries of one split, by vectors alone. full/MRR@10 and its like are those of smoothclir-evaluate;
recall@10 is the share of the exact ranking's best ten documents.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from absl import flags

from benchmarks import common, index
from tf_smoothclir.data.sources.source import SPLITS

_DEPTH = 100


def encode(export_dir: str, split: str, directory: str) -> dict[str, float]:
    """Writes the vectors of a set: those of documents as an index has them, and `queries.npy`."""
    from tf_smoothclir.index.dense_half import DenseHalf
    from tf_smoothclir.publishing.exported_models import load_exported_models

    towers = load_exported_models(export_dir)["dense"]
    found = retrieval_set(export_dir)
    queries = [text.text for text in found.source.queries()]
    asked = [queries[row] for row in found.queries_in(split)]
    documents = [text.text for text in found.source.documents()]
    vectors = towers.vectors("document", documents)
    with DenseHalf.writer(Path(directory, "vectors")) as write:
        write(vectors)
    np.save(Path(directory, "queries.npy"), towers.vectors("query", asked))
    return dict(zip(("documents", "dim"), vectors.shape))


def quality(
    export_dir: str, split: str, directory: str, kind: str, documents: int, dim: int
) -> dict[str, float]:
    """Builds an index, times it, and measures its ranking."""
    from tf_smoothclir.data.hashing import hash_ids
    from tf_smoothclir.evaluation.metrics import retrieval_metrics
    from tf_smoothclir.index.dense_half import opened_ranker
    from tf_smoothclir.index.index_settings import IndexSettings
    from tf_smoothclir.protocols.scorer import Ranking

    built = index.build(directory, kind, documents, dim, threads=1)
    timed = index.search(directory, kind, 0, documents, dim, threads=1)
    found = retrieval_set(export_dir)
    settings = IndexSettings(kind).resolved(documents)
    own = Path(directory, kind)
    ranker = opened_ranker(own, dim, settings, hash_ids(found.document_ids))()
    ranked = list(ranker.rank(np.load(Path(directory, "queries.npy")), _DEPTH))
    rows = np.full((len(ranked), _DEPTH), -1)
    scores = np.full(rows.shape, -np.inf, np.float32)
    for number, (positions, own_scores) in enumerate(ranked):
        rows[number, : len(positions)], scores[number, : len(positions)] = positions, own_scores
    metrics = retrieval_metrics(found, Ranking(found.queries_in(split), rows, scores))
    shown = ("index MB", "p50 ms", "p99 ms", "recall@10")
    return {
        **{name: float(np.nanmean(values)) for name, values in metrics.items()},
        **{name: timed[name] for name in shown},
        **built,
    }


def retrieval_set(export_dir: str):
    """The set that an export was trained on."""
    from tf_smoothclir.data.retrieval_set import RetrievalSet
    from tf_smoothclir.data.sources.opening import source_of
    from tf_smoothclir.publishing.export_directory import latest_manifest

    manifest = latest_manifest(export_dir)
    return RetrievalSet.load(
        source_of(manifest.data),
        num_grades=len(manifest.thresholds) + 1,
        seed=manifest.data.split_seed,
    )


def measure(*, export_dir: str, split: str, kinds: list[str], rounds: int = 1) -> list[dict]:
    """A table with a row for each kind."""
    with tempfile.TemporaryDirectory() as directory:
        encoded = common.in_new_process(partial(encode, export_dir, split, directory))
        sizes = int(encoded["documents"]), int(encoded["dim"])
        rivals = {
            kind: partial(quality, export_dir, split, directory, kind, *sizes) for kind in kinds
        }
        measured = common.interleaved(rivals, rounds)
    title = f"{sizes[0]:,} documents of {sizes[1]} dimensions, {split} queries"
    table = common.table(title, measured, ratio_of="full/MRR@10", references=kinds[:1])
    return [table]


def _define_flags() -> None:
    flags.DEFINE_string("export_dir", "models", "Directory that smoothclir-export wrote to.")
    flags.DEFINE_enum("split", "test", SPLITS, "Whose queries are asked.")
    flags.DEFINE_list("kinds", ["flat", "int8", "binary"], "Kinds of index.")


def _measure(values: flags.FlagValues) -> list[dict]:
    return measure(
        export_dir=values.export_dir,
        split=values.split,
        kinds=values.kinds,
        rounds=values.rounds,
    )


if __name__ == "__main__":
    common.run(_define_flags, _measure)
