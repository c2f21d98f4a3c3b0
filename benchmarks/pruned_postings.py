"""Postings without their smallest impacts: quality, size and time of what is left.

python -m benchmarks.pruned_postings --export_dir=models

Takes the lexical model of an export and the documents of its set. "share" keeps that share of the
words of each document, those with the largest impacts (Büttcher and Clarke, "A Document-Centric
Approach to Static Index Pruning", CIKM 2006); "least" drops impacts below a number from all
documents. Quality is what training chooses by: the mean of NDCG@5 of candidate lists and MRR@10 of
the whole collection, on a sample of 1,000 validation queries, without feedback.
"""

from __future__ import annotations

import time

import numpy as np
import scipy.sparse as sp
from absl import flags

from benchmarks import common

_SHARES, _LEASTS = (0.7, 0.5, 0.3, 0.2), (0.1, 0.3, 1.0, 2.0)
_TIMED = 200


def measure(export_dir: str) -> list[dict]:
    """The table, one row for each way of pruning."""
    from benchmarks.quantised import retrieval_set
    from tf_smoothclir.lexical.validation import Validation
    from tf_smoothclir.publishing.exported_lexical import load_lexical
    from tf_smoothclir.publishing.exported_scorers import collection_impacts

    parts, manifest = load_lexical(export_dir)
    found = retrieval_set(export_dir)
    read = parts.document_words(list(found.source.documents()))
    queries = parts.query_reader.words(text.text for text in found.source.queries()).matrix()
    impacts, _ = collection_impacts(parts, read)
    del read
    kept = {"all": impacts}
    kept.update((f"share {share:g}", largest(impacts, share)) for share in _SHARES)
    kept.update((f"least {least:g}", above(impacts, least)) for least in _LEASTS)
    validation = Validation(found)
    asked = queries[found.queries_in("validation")[:_TIMED]]
    measured = {name: [_measured(validation, queries, asked, own)] for name, own in kept.items()}
    title = f"{manifest.data.data_dir or 'toy world'}, {impacts.shape[0]:,} documents"
    return [common.table(title, measured, ratio_of="quality", references=["all"])]


def largest(impacts: sp.csr_array, share: float) -> sp.csr_array:
    """A share of the entries of each row, rounded up: the largest ones."""
    lengths = np.diff(impacts.indptr)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    order = np.lexsort((-impacts.data, rows))
    ranks = np.arange(impacts.nnz) - np.repeat(impacts.indptr[:-1], lengths)
    kept = np.zeros(impacts.nnz, bool)
    kept[order] = ranks < np.repeat(np.ceil(share * lengths), lengths)
    return _entries(impacts, kept)


def above(impacts: sp.csr_array, least: float) -> sp.csr_array:
    """The entries that are not below a number."""
    return _entries(impacts, impacts.data >= least)


def _entries(impacts: sp.csr_array, kept: np.ndarray) -> sp.csr_array:
    ends = np.concatenate([[0], np.cumsum(kept)])[impacts.indptr]
    return sp.csr_array((impacts.data[kept], impacts.indices[kept], ends), shape=impacts.shape)


def _measured(validation, queries, asked, impacts: sp.csr_array) -> dict[str, float]:
    from tf_smoothclir.lexical.postings import Postings
    from tf_smoothclir.lexical.validation import quality

    postings = Postings.of(impacts)
    (measured,) = validation.per_query(lambda rows: [postings.sums(queries[rows])])
    ndcg, reciprocals, _ = np.nanmean(measured, axis=0)
    milliseconds = []
    for row in range(asked.shape[0]):
        begin = time.perf_counter()
        postings.sums(asked[row : row + 1])
        milliseconds.append(1000 * (time.perf_counter() - begin))
    rare, common_values = postings.rare.values, postings.common_values
    return {
        "quality": quality(measured),
        "NDCG@5": ndcg,
        "MRR@10": reciprocals,
        "impacts": impacts.nnz,
        "MB": (8 * rare.size + 4 * common_values.size) / 1e6,
        "p50 ms": float(np.median(milliseconds)),
    }


def _define_flags() -> None:
    flags.DEFINE_string("export_dir", "models", "Directory that smoothclir-export wrote to.")


if __name__ == "__main__":
    common.run(_define_flags, lambda values: measure(values.export_dir))
