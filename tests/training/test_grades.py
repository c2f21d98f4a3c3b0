"""Thresholds follow the grades of a set, by the command and from Python; sets of mates alone."""

import dataclasses
import math
from types import SimpleNamespace

import pytest

import tf_smoothclir as sc
from tests.cases import cases
from tests.small_world import SmallWorld
from tests.training.tiny_set import tiny_settings, write_tiny_set
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.publishing.export import export_run
from tf_smoothclir.search.opening import open_search
from tf_smoothclir.settings import presets, run
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.storage.files import read_json
from tf_smoothclir.training import evaluated_sets
from tf_smoothclir.training.evaluated_sets import another_set, with_grades_of_set
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.train import train


def write_set(directory, highest):
    """Ten queries of one word; document i has the highest grade for query i."""
    directory.mkdir()
    texts = "".join(f"{i}\tword{i}\n" for i in range(10))
    (directory / "queries.tsv").write_text(texts)
    (directory / "documents.tsv").write_text(texts.replace("word", "mot"))
    judged = (f"{i}\t{(i + g) % 10}\t{highest - g}\n" for i in range(10) for g in range(highest))
    (directory / "judgments.tsv").write_text("".join(judged))
    return run.RunSettings(data=DataSettings(data_dir=str(directory), document_language="fr"))


def test_the_judgments_decide(tmp_path):
    for highest, thresholds in enumerate([(0.45,), (0.2, 0.7), (0.2, 0.45, 0.7)], 1):
        settings = write_set(tmp_path / str(highest), highest)
        with (tmp_path / str(highest) / "judgments.tsv").open("a") as file:
            file.write("gone\t0\t9\n0\tgone\t9\n")  # which training skips
        found = with_grades_of_set(settings, tmp_path / "run")
        assert found == presets.changed(settings, {"thresholds": thresholds})


def test_means_over_few_queries_and_a_training_near_chance_are_said(caplog):
    world = RetrievalSet.load(SmallWorld())
    evaluated_sets.warn_of_few_queries(world, "test")
    said = "only 2 test queries. By chance, a figure of them may be wrong by about 0.69"
    assert said in caplog.text
    none = dataclasses.replace(world, grades=0 * world.grades)
    evaluated_sets.warn_of_few_queries(none, "test")
    assert "no test query has a relevant document, so nothing can be learned" in caplog.text
    many = SimpleNamespace(**vars(world), queries_in=lambda split: [*world.query_rows] * 99)
    by_chance = (1 + 1 / 2 + 1 / 3) / 3  # the mean of 1 / rank in a collection of three
    caplog.clear()
    evaluated_sets.warn_of_few_queries(many, "test")
    of_three = (by_chance + 0.015, 3, True), (by_chance + 0.02, 3, False)
    for mrr, documents, is_near in (*of_three, (0.05, 3000, True), (0.06, 3000, False)):
        result = {"set": {"documents": documents}, "test": {"full/MRR@10": mrr}}
        for measured in (0, 9):
            counts = {"counts": {"test": {"full/MRR@10": measured}}}
            evaluated_sets.warn_near_chance(result | counts, run.RunSettings())
            assert ("hardly better than chance" in caplog.text) == (is_near and measured > 0)
        assert ("--preset=best" in caplog.text) == is_near  # towers alone may be improved by it
        caplog.clear()


def test_without_splits_all_queries_of_another_set_are_measured(tmp_path, caplog):
    """Those of the set of training, by place or content, and named splits are drawn."""
    own, same, other = (write_set(tmp_path / name, n).data for name, n in zip("abc", (1, 1, 2)))
    caplog.set_level("INFO", logger="absl")
    part = dataclasses.replace(own, max_queries=5)
    cases = (own, "", 2), (same, "", 2), (part, "", 1), (other, "test", 2), (other, "", 10)
    for data, split, queries in cases:
        assert "all of its judged queries are measured" not in caplog.text
        assert len(another_set(source_of(data), data, own, split).queries_in("test")) == queries
    assert "all of its judged queries are measured; --split=test" in caplog.text
    caplog.clear()
    (tmp_path / "c" / "splits.tsv").write_text("".join(f"{i}\ttest\n" for i in range(10)))
    another_set(source_of(other), other, own, "")
    assert "judged queries" not in caplog.text


def test_figures_of_a_model_that_does_not_say_what_it_knows_are_doubtful(tmp_path, caplog):
    data = write_set(tmp_path / "there", 1).data
    evaluated = another_set(source_of(data), data, data, "")
    for trained, says_so in ((evaluated.trained_queries, False), (None, True)):
        evaluated_sets.warn_of_figures(trained, evaluated, "test")
        assert ("it may know these queries" in caplog.text) == says_so


def test_a_run_that_is_there_keeps_its_thresholds_without_its_set(tmp_path):
    settings = write_set(tmp_path / "set", 1)
    binary = with_grades_of_set(settings, tmp_path / "run")
    RunDirectory.create(tmp_path / "run", binary)
    RunDirectory.create(tmp_path / "given", presets.changed(settings, {"thresholds": (0.1,)}))
    assert with_grades_of_set(settings, tmp_path / "given") == settings  # not in silence
    (tmp_path / "set" / "judgments.tsv").unlink()
    assert with_grades_of_set(settings, tmp_path / "run") == binary
    with pytest.raises(sc.InputError, match=r"it contains no judgments"):
        with_grades_of_set(settings, tmp_path / "run", overwrite=True)


def test_too_many_grades_are_a_mistake_and_the_toy_world_is_not_read(tmp_path, monkeypatch):
    settings = write_set(tmp_path / "set", 1)
    (tmp_path / "set" / "judgments.tsv").write_text("0\t0\t57\n")
    with pytest.raises(sc.InputError, match="the highest grade is 57"):
        with_grades_of_set(settings, tmp_path / "run")
    monkeypatch.setattr("tf_smoothclir.training.evaluated_sets.highest_grade", None)
    assert with_grades_of_set(run.RunSettings(), tmp_path / "run") == run.RunSettings()


def test_from_python_binary_judgments_are_enough(tmp_path):
    write_set(tmp_path / "set", 1)
    of_files = {"data": tmp_path / "set", "document_language": "fr"}
    numbers = list(map(str, range(10)))
    parts = {"queries": numbers, "documents": numbers, "judgments": [(n, n, 1) for n in numbers]}
    for data in (of_files, parts):
        model = sc.train(**data, cache_dir=tmp_path / "cache", preset="lexical", folds=0)
        assert model.settings.model.thresholds == (0.45,)
        assert model.details["counts"]["test"]["full/MRR@10"] == 2  # of ten, all of the split


@pytest.mark.slow
@cases("preset", *presets.PRESETS)
def test_presets_train_export_and_search(tmp_path, no_child_process, preset):
    mates_only = write_tiny_set(tmp_path / "mates")
    lines = (mates_only / "en2fr.rel").read_text().splitlines(keepends=True)
    (mates_only / "en2fr.rel").write_text("".join(s for s in lines if s.endswith("\t2\n")))
    small = {"epochs": 1, "dim": 4, "batch_size": 8, "matryoshka_dims": (), "hard_negatives": 0}
    settings = tiny_settings(mates_only, tmp_path / "cache", **{**presets.PRESETS[preset], **small})
    train(settings, tmp_path / "run")
    figures = read_json(tmp_path / "run" / "metrics.json")["test"]
    assert all(math.isfinite(value) for value in figures.values())
    assert figures["MRR_mr"] == figures["MRR_r"]  # the mate is the only relevant document

    export_run(RunDirectory.load(tmp_path / "run"), tmp_path / "export")
    search = open_search(tmp_path / "export", "", lambda data: data)
    found = search.search([query.text for query in source_of(settings.data).queries()], 5)
    assert all(len(hits) == 5 for hits in found)
