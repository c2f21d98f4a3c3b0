"""Runs whose translation table has a dictionary."""

import shutil

import pytest

from tests.training.tiny_set import SPLITS, WORDS
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import load_models
from tf_smoothclir.training.train import train
from tf_smoothclir.utils.errors import InputError

pytestmark = pytest.mark.usefixtures("without_plots")


@pytest.fixture
def data(tiny_dir, tmp_path):
    return shutil.copytree(tiny_dir, tmp_path / "data")


def without_training_pairs(data):
    judged = (data / "en2fr.rel").read_text().splitlines()
    kept = [line for line in judged if SPLITS[int(line.split("\t")[0]) % 5] != "train"]
    (data / "en2fr.rel").write_text("\n".join(kept) + "\n")


def test_a_dictionary_alone_is_enough(tiny, data, tmp_path):
    without_training_pairs(data)
    path = tmp_path / "en-fr.txt"
    path.write_text("".join(f"word{n} mot{n}\nnew{n} mot{n}\n" for n in range(WORDS)))
    metrics = train(tiny(data, retriever="lexical", dictionary=str(path)), tmp_path / "run")
    assert metrics["test"]["full/MRR@10"] > 0.5
    assert metrics["lexical"]["dictionary"] == 1
    run = RunDirectory.load(tmp_path / "run")
    assert {f"new{n}" for n in range(WORDS)} <= set(run.vocabulary_tokens("query"))
    assert load_models(run)["lexical"].table.nnz == 2 * WORDS
    with pytest.raises(InputError, match="no query of the train split has a judgment"):
        train(tiny(data, retriever="lexical"), tmp_path / "without")


def test_a_bad_dictionary_stops_a_run_before_it_learns(tiny, tmp_path):
    path = tmp_path / "en-fr.txt"
    path.write_text("word1 mot1\nword2\n")
    with pytest.raises(InputError, match=r"en-fr\.txt:2: 1 columns instead of 2"):
        train(tiny(retriever="hybrid", dictionary=str(path)), tmp_path / "run")
    assert not (tmp_path / "run" / "vocabulary").exists()
