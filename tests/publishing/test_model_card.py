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
    assert header["license"] == "unknown"
    assert header["library_name"] == "tf_smoothclir"
    ((model,),) = [header["model-index"]]
    found = {one["type"]: one["value"] for one in model["results"][0]["metrics"]}
    expected = read_json(run.metrics)["test"]
    assert found == pytest.approx(expected, abs=5e-5)


def test_figures_have_intervals_and_the_set_its_sizes(card):
    _, run, _, text = card
    content = read_json(run.metrics)
    low, high = content["intervals"]["test"]["NDCG@5"]
    assert f"| {content['test']['NDCG@5']:.4f} ({low:.4f} to {high:.4f}) |" in text
    assert f"| documents | {content['set']['documents']} |" in text
    for rule in content["rules"].values():
        assert f": {rule}." in text


def test_it_names_the_parts_and_no_path_of_this_machine(card):
    name, run, _, text = card
    for role in PARTS[name]:
        assert f"`{DIRECTORIES[role]}`" in text or name == "lexical"
    assert ("docker run" in text) == (name != "lexical")
    assert str(run.path.parent) not in text
    assert f"--retriever={name}" in text or name == "dense"


def test_the_lines_of_python_are_calls_that_exist(card):
    (code,) = re.findall(r"```python\n(.*?)```", card[-1], flags=re.DOTALL)
    for called in re.findall(r"model\.(\w+)\(", code):
        assert callable(getattr(sc.Model, called))
    compile(code, "card", "exec")


def test_a_run_that_was_not_evaluated_has_no_figures(ranking_runs, tmp_path):
    run = RunDirectory(shutil.copytree(ranking_runs["lexical"].path, tmp_path / "run"))
    run.metrics.unlink()
    path = write_model_card(run, run.settings(), tmp_path, 1, ("lexical",), narrow=False)
    text = path.read_text(encoding="utf-8")
    assert "has not been evaluated" in text
    assert "model-index" not in text


def test_a_smaller_export_says_that_the_figures_are_not_its_own(ranking_runs, tmp_path):
    run = ranking_runs["dense"]
    path = write_model_card(run, run.settings(), tmp_path, 1, ("query",), narrow=True)
    assert "may rank worse" in path.read_text(encoding="utf-8")


def test_it_says_what_orders_the_first_ranks_again(ranking_runs, tmp_path):
    run = ranking_runs["lexical"]
    settings = run.settings()
    retrieval = dataclasses.replace(
        settings.retrieval, reranker="late_interaction", rerank_depth=50
    )
    settings = dataclasses.replace(settings, retrieval=retrieval)
    texts = [
        write_model_card(run, settings, tmp_path, 1, roles, narrow=False).read_text(
            encoding="utf-8"
        )
        for roles in (("lexical",), ("lexical", "reranker"))
    ]
    assert "again by late interaction" not in texts[0]  # it had no weight
    assert "The first 50 documents are then ordered again by late interaction" in texts[1]
