"""The model card: a header that model hubs read, the figures of the run, code that runs."""

from __future__ import annotations

import dataclasses
import re
import shutil

import pytest
import yaml

import tf_smoothclir as sc
from tf_smoothclir.publishing.export_directory import DIRECTORIES
from tf_smoothclir.publishing.model_card import write_model_card
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.utils.files import read_json

PARTS = {
    "dense": ("query", "document", "search"),
    "lexical": ("lexical",),
    "hybrid": ("query", "document", "lexical"),
}


@pytest.fixture(scope="module", params=list(PARTS))
def card(request, ranking_runs, tmp_path_factory):
    """A run, and its card in two parts: the header, read by a YAML parser, and the Markdown."""
    run = ranking_runs[request.param]
    directory = tmp_path_factory.mktemp("models")
    roles = PARTS[request.param]
    path = write_model_card(run, run.settings(), directory, 3, roles, narrow=False)
    assert path == directory / "model_card-3.md"
    _, header, text = path.read_text(encoding="utf-8").split("---\n", 2)
    return request.param, run, yaml.safe_load(header), text


def test_the_header_has_what_hubs_want(card):
    _, run, header, _ = card
    assert header["language"] == ["en", "fr"]
    assert (header["license"], header["library_name"]) == ("unknown", "tf_smoothclir")
    ((model,),) = [header["model-index"]]
    found = {one["type"]: one["value"] for one in model["results"][0]["metrics"]}
    assert found == pytest.approx(read_json(run.metrics)["test"], abs=5e-5)


def test_it_has_figures_with_intervals_parts_and_no_path_of_this_machine(card):
    name, run, _, text = card
    content = read_json(run.metrics)
    low, high = content["intervals"]["test"]["NDCG@5"]
    assert f"| {content['test']['NDCG@5']:.4f} ({low:.4f} to {high:.4f}) |" in text
    assert f"| documents | {content['set']['documents']} |" in text
    assert all(f": {rule}." in text for rule in content["rules"].values())
    assert name == "lexical" or all(f"`{DIRECTORIES[role]}`" in text for role in PARTS[name])
    assert ("docker run" in text) == (name != "lexical")
    assert str(run.path.parent) not in text
    assert f"--retriever={name}" in text or name == "dense"


def test_the_lines_of_python_are_calls_that_exist(card):
    (code,) = re.findall(r"```python\n(.*?)```", card[-1], flags=re.DOTALL)
    for called in re.findall(r"model\.(\w+)\(", code):
        assert callable(getattr(sc.Model, called))
    compile(code, "card", "exec")


def text_of(run, tmp_path, roles, settings=None, narrow=False):
    path = write_model_card(run, settings or run.settings(), tmp_path, 1, roles, narrow=narrow)
    return path.read_text(encoding="utf-8")


def test_it_says_what_is_missing_smaller_or_ordered_again(ranking_runs, tmp_path):
    run = RunDirectory(shutil.copytree(ranking_runs["lexical"].path, tmp_path / "run"))
    run.metrics.unlink()
    text = text_of(run, tmp_path, ("lexical",))
    assert "has not been evaluated" in text
    assert "model-index" not in text
    text = text_of(ranking_runs["dense"], tmp_path, ("query",), narrow=True)
    assert "may rank worse" in text
    settings = ranking_runs["lexical"].settings()
    retrieval = settings.retrieval
    retrieval = dataclasses.replace(retrieval, reranker="late_interaction", rerank_depth=50)
    settings = dataclasses.replace(settings, retrieval=retrieval)
    words = "The first 50 documents are then ordered again by late interaction"
    for roles in (("lexical",), ("lexical", "reranker")):  # alone, it had no weight
        text = text_of(ranking_runs["lexical"], tmp_path, roles, settings)
        assert (words in text) == ("reranker" in roles)
