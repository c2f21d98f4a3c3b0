"""`smoothclir-evaluate --first_stage`: one run re-ranks the top ranks of another."""

import json
import shutil

import pytest

from tests.small_world import SmallWorld
from tests.training.fixtures import no_plots, run_of
from tf_smoothclir.evaluation.trec_files import read_run
from tf_smoothclir.settings.training import METRICS
from tf_smoothclir.storage.files import read_json
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_evaluation import check_first_stage
from tf_smoothclir.utils.errors import InputError

DEPTH = 7


@pytest.fixture(scope="module")
def first_stage(tiny, tmp_path_factory):
    """A run with vocabularies of its own: it knows fewer words than the other one."""
    path = tmp_path_factory.mktemp("runs") / "first"
    with no_plots():
        return run_of(tiny(epochs=1, seed=14, vocabulary_size=8), path)


@pytest.fixture(scope="module")
def reranker(finished, tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "second"
    return RunDirectory.load(shutil.copytree(finished.path, path))


def test_the_first_ranks_are_ordered_again(commands, reranker, first_stage):
    alone = read_json(reranker.metrics)
    flags = [f"--run_dir={reranker.path}", f"--first_stage={first_stage.path}"]
    done = commands.run("trainers.evaluate", *flags, f"--rerank_depth={DEPTH}")
    assert done.returncode == 0, done.stderr
    assert read_json(reranker.metrics) == alone
    assert not (reranker.evaluation / "metrics.json").exists()
    evaluated = read_json(reranker.evaluation / "over-first" / "metrics.json")
    for name in METRICS:
        assert evaluated["test"][name] == alone["test"][name]
    assert evaluated["confusion"]["test"] == alone["confusion"]["test"]
    directories = (reranker.evaluation / "over-first", first_stage.evaluation, reranker.evaluation)
    found, first, second = (
        read_run(directory / "test" / "full.run.trec") for directory in directories
    )
    assert found.keys() == first.keys()
    for query, scores in found.items():
        top = list(first[query])[:DEPTH]
        assert list(scores) != top
        assert list(scores) == [document for document in second[query] if document in top]
    assert evaluated["test"]["full/Recall@100"] == evaluated["test"]["full/Recall@10"]
    rules = f"first 7 ranks of {first_stage.path}, re-ranked by this run, "
    assert evaluated["rules"]["full"].startswith(rules)
    assert {**evaluated["rules"], "full": alone["rules"]["full"]} == alone["rules"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"fingerprint": "abc"}, "it was trained on other content of "),
        ({"fingerprint": "abc", "name": "mdn"}, r"it was .* another retrieval set \(mdn\) "),
        ({}, r".* split with --split_seed=14, those of .* with 13"),
    ],
)
def test_another_set_or_split_is_refused(first_stage, reranker, tmp_path, data, message):
    path = shutil.copytree(first_stage.path, tmp_path / "other")
    content = read_json(first_stage.config)
    content["data"].update(data)
    content["settings"]["data"]["split_seed"] = 13 if data else 14
    (path / "config.json").write_text(json.dumps(content))
    other = RunDirectory.load(path, verify=False)
    with pytest.raises(InputError, match=rf"^--first_stage={path}: {message}.*\. Give a finished"):
        check_first_stage(other, reranker, SmallWorld(splits=None))  # where the seed splits
    if not data:
        check_first_stage(other, reranker, SmallWorld())


def test_an_unfinished_run_is_no_first_stage(reranker, tmp_path):
    run = RunDirectory.create(tmp_path, reranker.settings())
    with pytest.raises(InputError, match=rf"^{tmp_path}: the run has not completed an epoch yet"):
        check_first_stage(run, reranker, SmallWorld())
