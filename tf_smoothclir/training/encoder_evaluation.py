"""Measuring a foreign encoder on a set, as it is: by the cosine of its vectors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.evaluation.evaluate import evaluate_splits, metrics_content
from tf_smoothclir.foreign_encoders.opening import EncodedSet, encoder_of
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.encoder import EncoderSettings
from tf_smoothclir.storage.files import make_directory, write_json
from tf_smoothclir.training.evaluated_sets import set_of_other_grades


def evaluate_encoder(
    settings: EncoderSettings,
    data: DataSettings,
    splits: Sequence[str],
    *,
    negatives: int = 40,
    output_dir: str = "",
    measures: Sequence[str] = (),
) -> tuple[dict, Path]:
    """Evaluates an encoder; writes metrics.json and the TREC files of each split.

    Args:
        settings: Name the encoder.
        data: Names the set.
        splits: Of the set.
        negatives: Sampled documents of grade 0 in each candidate list.
        measures: Further ones, by their names in `ir_measures`.
        output_dir: Empty for `runs/` and the name of the encoder.

    Returns:
        The content of metrics.json, and the directory.
    """
    encoder = encoder_of(settings)
    retrieval_set = set_of_other_grades(source_of(data), data.split_seed)
    name = re.sub(r"[^\w.-]+", "-", encoder.name).strip("-")
    path = make_directory(output_dir or f"runs/{name}", "--output_dir")
    encoded = EncodedSet.of(encoder, retrieval_set.source, data.cache_dir)
    retriever = encoded.retriever(retrieval_set)
    found = evaluate_splits(
        retrieval_set, retriever, splits, negatives=negatives, trec_dir=path, measures=measures
    )
    content = metrics_content(found, negatives)
    write_json(path / "metrics.json", content)
    return content, path
