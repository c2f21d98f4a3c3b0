"""The model card: a header that model hubs read, the figures of the run, code that runs."""

import re
import shutil

import pytest
import yaml

import tf_smoothclir as sc
from tests.publishing.test_export import PARTS
from tf_smoothclir.publishing.export_directory import DIRECTORIES
from tf_smoothclir.publishing.model_card import write_model_card
from tf_smoothclir.storage.files import read_json
from tf_smoothclir.training.run_directory import RunDirectory


def card_of(run, tmp_path, roles):
    """The header, read by a YAML parser, and the Markdown of the card of an export."""
    path = write_model_card(run, run.settings(), tmp_path, 3, roles)
    assert path == tmp_path / "model_card-3.md"
    _, header, text = path.read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(header), text


@pytest.mark.parametrize("name", PARTS)
def test_it_has_what_hubs_want_figures_parts_and_lines_that_run(ranking_runs, tmp_path, name):
    run, content = ranking_runs[name], read_json(ranking_runs[name].metrics)
    header, text = card_of(run, tmp_path, PARTS[name])
    assert header["language"] == ["en", "fr"]
    assert (header["license"], header["library_name"]) == ("unknown", "tf_smoothclir")
    (model,) = header["model-index"]
    found = {one["type"]: one["value"] for one in model["results"][0]["metrics"]}
    assert found == pytest.approx(content["test"], abs=5e-5)
    low, high = content["intervals"]["test"]["NDCG@5"]
    assert f"| {content['test']['NDCG@5']:.4f} ({low:.4f} to {high:.4f}) |" in text
    assert f"| documents | {content['set']['documents']} |" in text
    assert name == "lexical" or all(f"`{DIRECTORIES[role]}`" in text for role in PARTS[name])
    assert ("docker run" in text) == (name != "lexical")
    assert str(run.path.parent) not in text  # no path of this machine
    assert f"--retriever={name}" in text or name == "dense"
    (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    compile(code, "card", "exec")
    for called in re.findall(r"model\.(\w+)\(", code):
        assert callable(getattr(sc.Model, called))


def test_it_says_what_is_missing_or_smaller(ranking_runs, tmp_path):
    run = RunDirectory(shutil.copytree(ranking_runs["lexical"].path, tmp_path / "run"))
    run.metrics.unlink()
    header, text = card_of(run, tmp_path, ("lexical",))
    assert "has not been evaluated" in text
    assert "model-index" not in header
