"""The model card of an export: Markdown with a YAML header, as model hubs read it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tf_smoothclir.evaluation.report import metrics_table, rules_list, without_queries
from tf_smoothclir.plugins import FAMILIES, RERANKERS, family
from tf_smoothclir.publishing.export_directory import DIRECTORIES, MODELS
from tf_smoothclir.settings.base import value_text
from tf_smoothclir.settings.data import LANGUAGES
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.storage.files import read_json, write_text
from tf_smoothclir.training.run_config import RunConfig
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.utils.tables import markdown_table

_TAGS = ("cross-lingual-information-retrieval", "document-retrieval", "tensorflow")


def model_card_path(export_dir: str | os.PathLike, version: int) -> Path:
    """Path of the card of a version."""
    return Path(export_dir, f"model_card-{version}.md")


def write_model_card(
    run: RunDirectory,
    settings: RunSettings,
    export_dir: str | os.PathLike,
    version: int,
    roles: Sequence[str],
) -> Path:
    """Writes the model card of an exported version next to its parts."""
    data = RunConfig.read(run.config).data
    content = read_json(run.metrics) if run.finished else {}
    whole = run.settings()
    is_part = (settings.model.dim, settings.retrieval) != (whole.model.dim, whole.retrieval)
    name = data.name or "retrieval set"
    parts = [
        _header(name, settings, {} if is_part else content.get("test", {})),
        f"# Cross-lingual retrieval{_direction(settings)}: {name}",
        f"Finds documents in other languages than that of the query. It ranks by"
        f" {_ranks_by(settings)}."
        f"{_second_stage(settings, roles)} Version {version}, exported by tf_smoothclir.",
        "## Training data",
        *_training_data(name, content.get("set", {})),
        "## Figures",
        *_figures(content, is_part),
        "## Limits",
        "\n".join(f"* {limit}" for limit in _limits(settings)),
        "## Use",
        *_use(Path(export_dir), settings, roles),
        "## Settings",
        "Those that differ from `smoothclir-train --preset=fast`:",
        _code("", _differing(settings)),
    ]
    path = model_card_path(export_dir, version)
    write_text(path, "\n\n".join(parts) + "\n")
    return path


def _direction(settings: RunSettings) -> str:
    """From which languages to which, where both are known."""
    query, document = (getattr(settings.data, name).replace(",", ", ") for name in LANGUAGES)
    return f", {query} to {document}" if query and document else ""


def _ranks_by(settings: RunSettings) -> str:
    retriever = settings.retrieval.retriever
    return family(retriever).ranks_by or FAMILIES.plugin(retriever).help.rstrip(".")


def _second_stage(settings: RunSettings, roles: Sequence[str]) -> str:
    """A sentence about the re-ranker; one that has no weight is not exported."""
    if "reranker" not in roles:
        return ""
    retrieval = settings.retrieval
    return (
        f" The first {retrieval.rerank_depth:,} documents are then ordered again by"
        f" {_in_words(retrieval.reranker)} (`{DIRECTORIES['reranker']}`); the search model of"
        " TensorFlow Serving has the first ranking alone."
    )


def _in_words(reranker: str) -> str:
    words = reranker.replace("_", " ")
    return f"{words}: {RERANKERS.plugin(reranker).help.rstrip('.')}"


def _header(name: str, settings: RunSettings, metrics: Mapping[str, float]) -> str:
    """The YAML header. Texts are JSON strings, which YAML takes as they are."""
    lines = ["---", "license: unknown  # of the model: it depends on the texts it learned from"]
    codes = ",".join(getattr(settings.data, name) for name in LANGUAGES)
    if languages := dict.fromkeys(filter(None, codes.split(","))):
        lines += ["language:", *(f"  - {_text(code)}" for code in languages)]
    lines += ["library_name: tf_smoothclir", "pipeline_tag: text-ranking"]
    lines += ["tags:", *(f"  - {tag}" for tag in _TAGS)]
    if metrics:
        lines += [
            "model-index:",
            f"  - name: {_text(name)}",
            "    results:",
            "      - task:",
            "          type: text-ranking",
            "        dataset:",
            f"          name: {_text(name)}",
            f"          type: {_text(name)}",
            "          split: test",
            "        metrics:",
        ]
        for metric, value in metrics.items():
            lines += [f"          - type: {_text(metric)}", f"            value: {value:.4f}"]
    return "\n".join([*lines, "---"])


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _training_data(name: str, sizes: Mapping[str, int]) -> Iterator[str]:
    yield f"The retrieval set `{name}`. It has no licence of its own here: see that of its texts."
    if sizes:
        yield markdown_table(["", ""], [[what, f"{number:,}"] for what, number in sizes.items()])


def _figures(content: Mapping[str, Any], is_smaller: bool) -> Iterator[str]:
    if not content:
        yield "The run has not been evaluated."
        return
    if is_smaller:
        yield "The figures are those of the trained run. This export is smaller and may rank worse."
    if content["test"]:
        yield "Means over the test queries, which nothing was trained or chosen on:"
    yield from (table.rstrip("\n") for table in metrics_table(content, ["test"]))
    yield from without_queries(content, ["test"])
    yield rules_list(content["rules"])


def _limits(settings: RunSettings) -> Iterator[str]:
    text = settings.text
    yield (
        "It knows the kind of texts and the words it was trained on. Measure it on your own queries"
        " before you rely on it: `smoothclir-evaluate --data_dir=...`."
    )
    yield (
        f"Only the first {text.max_query_tokens:,} tokens of a query and the first"
        f" {text.max_document_tokens:,} of a document count."
    )
    yield "A query of which no word is known finds nothing, and the answer says so."
    yield (
        "Predicted grades come from cut points between scores, chosen on validation queries; the"
        " run report says how often they are right."
    )
    yield "It repeats what is one-sided or wrong in its training judgments."


def _use(export_dir: Path, settings: RunSettings, roles: Sequence[str]) -> Iterator[str]:
    place = _text(export_dir.name)
    lines = ["import tf_smoothclir as sc", "", f"model = sc.load({place})"]
    if "query" in roles:
        lines.append('vectors = model.encode_queries(["a query"])  # [1, dim]')
    yield "From Python; the documents are indexed at the first search:"
    yield _code("python", [*lines, 'hits = model.search(["a query"], k=10)[0]'])
    served = next((MODELS[role] for role in ("search", "query") if role in roles), None)
    if served is None:
        yield "What has no graph is searched by tf_smoothclir, not by TensorFlow Serving."
        return
    yield "With TensorFlow Serving, in the directory of this file:"
    yield _code(
        "",
        [
            f'docker run --rm -p 8501:8501 -v "$PWD/{served}:/models/{served}"'
            f" -e MODEL_NAME={served} tensorflow/serving",
            f"curl localhost:8501/v1/models/{served}:predict"
            """ -d '{"instances": ["a query"]}'""",
        ],
    )
    directories = ", ".join(f"`{name}`" for role, name in DIRECTORIES.items() if role in roles)
    yield f"Parts of this export: {directories}; use the same version of all of them."


def _differing(settings: RunSettings) -> list[str]:
    """The flags that differ from the defaults, without paths of this machine."""
    default = {f"--{name}": value_text(value) for name, value in RunSettings().values().items()}
    flags = dict(line.split("=", 1) for line in settings.flag_lines())
    return [
        f"{flag}={value}"
        for flag, value in flags.items()
        if value != default.get(flag) and not os.path.isabs(value)
    ]


def _code(language: str, lines: Sequence[str]) -> str:
    return "\n".join([f"```{language}", *lines, "```"])
