"""Exporting the towers of a training run."""

from __future__ import annotations

import dataclasses
import itertools
import os

from tf_smoothclir.data.prepared import ROLES
from tf_smoothclir.serving.publish import PairInfo, publish
from tf_smoothclir.serving.towers import ServingTower
from tf_smoothclir.text.vocabulary import TextEncoder
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.train import load_model, source_of

_NUM_PROBES = 32


def export_run(run: RunDirectory, export_dir: str | os.PathLike) -> int:
    """Publishes both towers of a run with the weights of its best epoch.

    Args:
        run: A run of `smoothclir-train`.
        export_dir: Gets `query_tower/<version>` and `document_tower/<version>`.

    Returns:
        The version.

    Raises:
        InputError: The run has no trained weights yet.
    """
    settings = run.settings()
    model = load_model(run)
    towers = {
        role: ServingTower(
            getattr(model, f"{role}_tower"),
            TextEncoder(run.vocabulary / f"{role}.txt", settings.text.max_tokens(role)),
            epsilon=settings.model.epsilon,
            name=f"{role}_tower",
        )
        for role in ROLES
    }
    source = source_of(settings.data)
    texts = {"query": source.queries(), "document": source.documents()}
    # An empty text and bytes that are no UTF-8 are part of what a server meets.
    probes = {
        role: [b"", b"\xff", *(t.text.encode() for t in itertools.islice(texts[role], _NUM_PROBES))]
        for role in ROLES
    }
    data = dataclasses.asdict(settings.data)
    info = PairInfo(settings.model.dim, settings.model.epsilon, settings.model.thresholds, data)
    return publish(towers, export_dir, info, probes)
