"""Training from shards: as from the set, continued exactly, and refused if they do not fit."""

import shutil

import numpy as np
import pytest

from tests.cases import cases
from tests.training import test_checkpoints, test_trainer
from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.sources import opening, source
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.extras import distributed as distributed  # registers the distributions
from tf_smoothclir.extras.distributed.pipeline import on_shards as on_shards_of
from tf_smoothclir.extras.distributed.writer import write_shards
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.training.run_data import retrieval_set_of, tokenized_set_of
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import ModelsOverSet
from tf_smoothclir.training.train import train, trainer_of
from tf_smoothclir.utils.errors import InputError

TEXT = TextSettings(vocabulary_size=30)


def tiny_shards(tiny, directory, text, seed=13):
    settings = tiny()
    retrieval_set = retrieval_set_of(opening.source_of(settings.data), settings, source.SPLITS)
    tokenized_set = tokenize_set(retrieval_set, text, settings.data.cache_dir)
    sampling = {"negatives": 3, "seed": seed}
    lists = candidate_lists(retrieval_set, split="train", **sampling)
    return write_shards(tokenized_set, lists, directory, 4, **sampling, text=text)


@pytest.fixture(scope="module")
def shards(tiny, tmp_path_factory):
    return tiny_shards(tiny, tmp_path_factory.mktemp("shards") / "four", TEXT)


@pytest.fixture
def on_shards(tiny, shards):
    """`on_shards(**changes)` gives the settings of a run on the shards."""
    own = {"distribution": "shards", "shards_dir": shards.directory, "batching": "lists"}
    return lambda **changes: tiny(**{**own, "vocabulary_size": 30, **changes})


def start(settings, path):
    run = RunDirectory.create(path, settings)
    tokenized_set = tokenized_set_of(opening.source_of(settings.data), settings, run, source.SPLITS)
    return trainer_of(ModelsOverSet(settings, tokenized_set), run, on_shards_of(settings, None))


def trained(settings, path):
    trainer = start(settings, path)
    return trainer.train(), test_trainer.weights(trainer.task.model)


def test_run_has_the_vocabularies_of_the_shards_and_metrics(on_shards, shards, tiny, tmp_path):
    result = train(on_shards(epochs=5, negatives=5, train_negatives=3), tmp_path / "run")
    run = RunDirectory.load(tmp_path / "run")
    assert [*map(run.vocabulary_tokens, ROLES)] == [*map(shards.vocabulary, ROLES)]
    losses = [record["loss"] for record in result["history"]]
    assert losses[-1] < losses[0] / 1.5
    assert result["training"]["pairs"] == 5 * 60
    assert result["test"]["NDCG@5"] > 0.5
    assert np.sum(result["confusion"]["test"]) == 4 * (2 + 5)  # not the 3 negatives of training
    on_the_set = tiny(epochs=5, batching="lists", vocabulary_size=30)
    expected = train(on_the_set, tmp_path / "set")["history"][-1]["loss"]
    assert losses[-1] == pytest.approx(expected, rel=0.2)


def test_killed_run_continues_bit_for_bit(on_shards, tmp_path):
    expected = trained(on_shards(), tmp_path / "whole")
    assert expected[0].pairs == 2 * 60
    for number in (4, 5):
        test_trainer.train_until_killed(start(on_shards(), tmp_path / "run"), number)
    test_trainer.assert_same(trained(on_shards(), tmp_path / "run"), expected)


def test_moved_shards_continue_a_run_and_other_ones_do_not(on_shards, shards, tiny, tmp_path):
    train(on_shards(epochs=1), tmp_path / "run")
    (tmp_path / "run" / "metrics.json").unlink()
    tiny_shards(tiny, tmp_path / "other", TEXT, seed=14)
    with pytest.raises(InputError, match=r"begun on other content .*distributed \(1 on shards"):
        train(on_shards(epochs=1, shards_dir=str(tmp_path / "other")), tmp_path / "run")
    shutil.copytree(shards.directory, tmp_path / "copy")
    train(on_shards(epochs=1, shards_dir=str(tmp_path / "copy")), tmp_path / "run")


def test_broken_record_is_named(on_shards, shards, tmp_path):
    shutil.copytree(shards.directory, tmp_path / "copy")
    path = tmp_path / "copy" / shards.manifest.shards[2].file
    test_checkpoints.flip(path)
    with pytest.raises(InputError, match=rf"{path.name}, record [1-9]: .*corrupted record"):
        train(on_shards(shards_dir=str(tmp_path / "copy")), tmp_path / "run")


@cases(
    "changes, message",
    ({"vocabulary_size": 20}, "30 for --vocabulary_size, but it is 20 here. Give --voc.*=30"),
    ({"negatives": 5}, "3 for --train_negatives, but it is 5 here. Give --train_negatives=3"),
    ({"thresholds": (0.1,)}, "they have 3 grades, but --thresholds are for 2. Give 2"),
    ({"data_dir": ""}, "made from the set .*, but the data flags name toy-en-fr"),
)
def test_what_does_not_fit_the_shards_is_refused_at_once(on_shards, tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        train(on_shards(**changes), tmp_path / "run")
    assert not (tmp_path / "run").exists()
