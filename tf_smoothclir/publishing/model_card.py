"""The model card of an export: Markdown with a YAML header, as model hubs read it."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tf_smoothclir.evaluation.report import (
    known_queries,
    language_cells,
    metrics_cells,
    rules_list,
    without_queries,
)
from tf_smoothclir.plugins import FAMILIES, family
from tf_smoothclir.publishing.export_directory import DIRECTORIES, MODELS
from tf_smoothclir.settings.base import value_text
from tf_smoothclir.settings.data import LANGUAGES
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.storage.files import read_json, write_text
from tf_smoothclir.training.run_config import RunConfig
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.utils.printing import markdown_table

_CARD = """{header}

# Cross-lingual retrieval{direction}: {name}

Finds documents in other languages than that of the query. It ranks by {ranks_by}. Version
{version}, exported by tf_smoothclir.

## Training data

The retrieval set `{name}`. It has no licence of its own here: see that of its texts.

{sizes}

## Figures

{figures}

## Limits

* It knows the kind of texts and the words it was trained on. Measure it on your own queries before
  you rely on it: `smoothclir-evaluate --data_dir=...`.
* {reads}
* A query of which no word is known finds nothing, and the answer says so.
* Predicted grades come from cut points between scores, chosen on validation queries; the run report
  says how often they are right.
* It repeats what is one-sided or wrong in its training judgments.

## Use

From Python; the documents are indexed at the first search:

```python
import tf_smoothclir as sc

model = sc.load({place})
hits = model.search(["a query"], k=10)[0]
```

{serving}

## Settings

Those that differ from `smoothclir-train --preset=fast`:

```
{flags}
```
"""
_SERVING = """With TensorFlow Serving, in the directory of this file:

```
docker run --rm -p 8501:8501 -v "$PWD/{0}:/models/{0}" -e MODEL_NAME={0} tensorflow/serving
curl localhost:8501/v1/models/{0}:predict -d '{{"instances": ["a query"]}}'
```

Parts of this export: {1}; use the same version of all of them."""
_NO_GRAPH = "What has no graph is searched by tf_smoothclir, not by TensorFlow Serving."


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
    name = RunConfig.read(run.config).data.name or "retrieval set"
    content = read_json(run.metrics) if run.finished else {}
    is_cut = settings.model.dim != run.settings().model.dim
    codes = [getattr(settings.data, name).replace(",", ", ") for name in LANGUAGES]
    retriever = settings.retrieval.retriever
    served = next((MODELS[role] for role in ("search", "query") if role in roles), None)
    parts = ", ".join(f"`{name}`" for role, name in DIRECTORIES.items() if role in roles)
    sizes = [[what, f"{size:,}"] for what, size in content.get("set", {}).items()]
    card = _CARD.format(
        header=_header(name, settings, content, is_cut),
        direction=", {} to {}".format(*codes) if all(codes) else "",
        name=name,
        ranks_by=family(retriever).ranks_by or FAMILIES.plugin(retriever).help.rstrip("."),
        version=version,
        sizes=markdown_table(["", ""], sizes) if sizes else "",
        figures="\n\n".join(_figures(content, is_cut, bool(settings.training.init_from))),
        reads=_reads(settings),
        place=_text(Path(export_dir).name),
        serving=_NO_GRAPH if served is None else _SERVING.format(served, parts),
        flags="\n".join(_differing(settings)),
    )
    path = model_card_path(export_dir, version)
    write_text(path, card)
    return path


def _reads(settings: RunSettings) -> str:
    """What is read of queries and documents."""
    text, towers = settings.text, settings.retrieval.with_task
    queries = f"Only the first {text.max_query_tokens:,} tokens of a query count"
    documents = f"the first {text.max_document_tokens:,} of a document"
    if not text.passage_words:
        return f"{queries}, and {documents}."
    of_towers = f"; its vector is of {documents}" * bool(towers)
    return f"{queries}. A document is read to its end{of_towers}."


def _header(name: str, settings: RunSettings, content: Mapping[str, Any], is_cut: bool) -> str:
    """The YAML header. Texts are JSON strings, which YAML takes as they are."""
    metrics = {} if is_cut else content.get("test", {})
    lines = ["---", "license: unknown  # of the model: it depends on the texts it learned from"]
    codes = ",".join(getattr(settings.data, name) for name in LANGUAGES).split(",")
    rows = content.get("languages", {}).get("test", {})  # "all", "documents de", ...
    codes += [code for row in rows if (code := row.partition(" ")[2]) != "unknown"]
    if languages := dict.fromkeys(filter(None, codes)):
        lines += ["language:", *(f"  - {_text(code)}" for code in languages)]
    lines += ["library_name: tf_smoothclir", "pipeline_tag: text-ranking"]
    lines += ["tags: [cross-lingual-information-retrieval, document-retrieval, tensorflow]"]
    if metrics:
        of_set = {"name": name, "type": name, "split": "test"}
        figures = [{"type": metric, "value": round(v, 4)} for metric, v in metrics.items()]
        result = {"task": {"type": "text-ranking"}, "dataset": of_set, "metrics": figures}
        lines += [f"model-index: {_text([{'name': name, 'results': [result]}])}"]
    return "\n".join([*lines, "---"])


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _figures(content: Mapping[str, Any], is_cut: bool, continues: bool) -> Iterator[str]:
    if not content:
        yield "The run has not been evaluated."
        return
    if is_cut:
        yield "The figures are those of the trained run. This export is smaller and may rank worse."
    if content["test"]:
        known = known_queries(content)
        # Perhaps the run before chose by some of them.
        honest = f", which nothing was trained{' or chosen' * (not continues)} on" * (not known)
        yield f"Means over the test queries{honest}:"
        yield from known
    yield from (markdown_table(*cells).rstrip("\n") for cells in metrics_cells(content, ["test"]))
    yield from without_queries(content, ["test"])
    cells = language_cells(content, ["test"])
    yield from (markdown_table(*of_split).rstrip("\n") for of_split in cells)
    yield rules_list({name: rule for name, rule in content["rules"].items() if name != "grades"})


def _differing(settings: RunSettings) -> list[str]:
    """The flags that differ from the defaults, without paths of this machine."""
    default = {f"--{name}": value_text(value) for name, value in RunSettings().values().items()}
    flags = dict(line.split("=", 1) for line in settings.flag_lines())
    return [
        f"{flag}={value}"
        for flag, value in flags.items()
        if value != default.get(flag) and not os.path.isabs(value)
    ]
