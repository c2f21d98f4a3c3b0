"""Publishing the parts of an export under the next version: all of them or none."""

import contextlib
import dataclasses
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import tensorflow as tf

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.publishing.export_directory import (
    DIRECTORIES,
    MODELS,
    ExportManifest,
    part_dir,
    versions_newest_first,
)
from tf_smoothclir.publishing.verification import Verifier
from tf_smoothclir.storage.files import (
    copy_file,
    flush_all,
    flush_to_disk,
    locked,
    scratch_directory,
)
from tf_smoothclir.utils.errors import input_error

_TEMPORARY, _LOCK = "smoothclir-export", ".smoothclir-export.lock"
# Roles of the parts that ranking needs, in the order of `pair_id`.
_RANKING = (*ROLES, "lexical", "family", "reranker")
# Rows of the largest batch that the server forms (max_execution_batch_size in
# export/serving/batching.config); requests of a single user have one.
LARGEST_BATCH = 32
# Shortest, median, long, longest: their costs differ a lot.
_QUANTILES = (0.0, 0.5, 0.95, 1.0)


class Part(Protocol):
    """Part of an export; SavedModels have `name` and `signatures` too, search models their size."""

    pair_id: str  # set before `save`

    def save(self, path: str) -> None:
        """Writes the part into a new directory."""

    def digest(self) -> str:
        """A digest of everything that determines scores; not asked of a search model."""


def publish_version(
    parts: dict[str, Part],
    export_dir: str | os.PathLike,
    facts: Mapping[str, Any],
    texts: dict[str, Sequence[bytes]],
    verifier: Verifier | None = None,
    beside: Path | None = None,
) -> int:
    """Writes all parts of a run under the next integer version; `facts` are of all manifests."""
    # The first part that ranks gets a copy of the file `beside` it, if that is there.
    # A fresh process loads and runs the written models before anything is renamed; then part by
    # part, so that a server never sees half a model. What a killed process leaves starts with a
    # dot, and the next export deletes it; if it is killed between two renames, `load_part` skips
    # the incomplete version, which is not used again.
    export_dir = Path(export_dir)
    export_dir.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        stack.enter_context(
            locked(
                export_dir / _LOCK,
                f"--export_dir={export_dir}",
                "another export is writing there",
                "Wait until it has finished, or choose another directory",
            )
        )
        verifier = verifier or stack.enter_context(Verifier())
        temporary = stack.enter_context(scratch_directory(export_dir, _TEMPORARY))
        version = 1 + max([0, *versions_newest_first(export_dir)])
        shared = dataclasses.replace(manifest_in_memory(parts, facts), version=version)
        for part in parts.values():
            part.pair_id = shared.pair_id
        for role, part in parts.items():
            directory, size = temporary / role, {}
            part.save(str(directory))
            if role in MODELS:
                verifier.send(role, part, directory, texts)  # loads while the next is written
                of_head = getattr(part, "requests", {}).items()
                write_warm_up(directory, MODELS[role], of_head or warm_up_requests(role, texts))
            if role == "search":
                size = {"documents": part.num_documents, "depth": part.depth}
            if role == shared.role and beside is not None and beside.is_file():
                copy_file(beside, directory / beside.name)
            dataclasses.replace(shared, role=role, **size).write(directory)
        flush_all(temporary)
        verifier.compare()
        for role in DIRECTORIES:
            if role in parts:
                _rename(temporary / role, part_dir(export_dir, role) / str(version))
    return version


def manifest_in_memory(parts: dict[str, Part], facts: Mapping[str, Any]) -> ExportManifest:
    """Manifest of the first part, as version 0: what those of all parts share."""
    ranking = tuple(role for role in _RANKING if role in parts)
    # Equal for equal content: the parts that rank, θ and the cut points.
    digests = [parts[role].digest() for role in ranking]
    digests += [repr(facts["thresholds"]), repr(facts["cut_points"])]
    pair_id = hashlib.sha256(" ".join(digests).encode()).hexdigest()
    return ExportManifest(role=ranking[0], version=0, pair_id=pair_id, parts=ranking, **facts)


def _rename(temporary: Path, path: Path) -> None:
    """Renames a written part to its version, and flushes the new name to disk."""
    path.parent.mkdir(exist_ok=True)
    flush_to_disk(path.parent.parent)
    try:
        os.rename(temporary, path)
    except OSError:
        if not path.exists():
            raise
        raise input_error(
            path, "another export has written this version meanwhile", "Export again"
        ) from None
    flush_to_disk(path.parent)


def warm_up_batches(texts: Sequence[bytes]) -> list[list[bytes]]:
    """Single texts of some quantiles of length, and a batch spread evenly over the lengths."""
    ordered = sorted(texts, key=len)

    def at(quantile):
        return ordered[round(quantile * (len(ordered) - 1))]

    spread = [at((row + 0.5) / LARGEST_BATCH) for row in range(LARGEST_BATCH)]
    return [*([at(quantile)] for quantile in _QUANTILES), spread]


def warm_up_requests(
    role: str, texts: dict[str, Sequence[bytes]]
) -> list[tuple[str, dict[str, list[bytes]]]]:
    """(signature, input name -> rows) for each request that warms a part up."""
    batches = {name: warm_up_batches(rows) for name, rows in texts.items()}
    if role != "reranker":
        batches = {"text": batches["query" if role == "search" else role]}
    return [("serving_default", dict(zip(batches, rows))) for rows in zip(*batches.values())]


def write_warm_up(
    directory: Path, model_name: str, requests: Sequence[tuple[str, dict[str, list[bytes]]]]
) -> None:
    """Writes requests where TensorFlow Serving looks for them."""
    # Imported here because it takes a second.
    from tensorflow_serving.apis import model_pb2, predict_pb2, prediction_log_pb2

    (directory / "assets.extra").mkdir(exist_ok=True)
    path = directory / "assets.extra" / "tf_serving_warmup_requests"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for signature, inputs in requests:
            spec = model_pb2.ModelSpec(name=model_name, signature_name=signature)
            request = predict_pb2.PredictRequest(model_spec=spec)
            for name, rows in inputs.items():
                request.inputs[name].CopyFrom(tf.make_tensor_proto(rows))
            log = prediction_log_pb2.PredictLog(request=request)
            writer.write(prediction_log_pb2.PredictionLog(predict_log=log).SerializeToString())
