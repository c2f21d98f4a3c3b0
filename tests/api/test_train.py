"""Training and tuning from data at hand: as from files, kept where it can be found again."""

import gc
import re
import shutil
import threading
from unittest import mock

import keras_tuner
import numpy as np
import pytest
import tensorflow as tf
from absl import flags

import tf_smoothclir as sc
from tests.cases import cases
from tests.training.tiny_set import tiny_settings
from tf_smoothclir.api.sets import given_set
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources import file_source
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.training import run_config, run_directory, trainer

NOT_JUDGED = dict.fromkeys(("queries", "judgments", "splits"))
NO_SET = {**NOT_JUDGED, "documents": None}


@pytest.fixture(scope="module")
def towers(tmp_path_factory):
    """Keywords of a run of towers: the settings of the tiny set that are not the defaults."""
    settings = tiny_settings("", tmp_path_factory.mktemp("cache"), epochs=1, select_metric="MAP")
    values, defaults = settings.values(), RunSettings().values()
    own = {name: value for name, value in values.items() if value != defaults[name]}
    return {**own, "preset": "fast"}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Keywords of a run without towers, which takes less time."""
    return {"cache_dir": tmp_path_factory.mktemp("cache"), "preset": "lexical", "negatives": 3}


def test_all_forms_give_one_run_that_moves(source, parts, tiny_dir, table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = {**table, "text_fields": ["body"], "passage_words": []}  # a dictionary has no titles
    of_files = sc.train(tiny_dir, **table)
    of_parts = sc.train(**parts, **table, output_dir="kept")
    opened = sc.train(RetrievalSet.load(source), **table)
    assert of_parts.metrics == of_files.metrics == opened.metrics
    segmented = given_set("train", source, {}, DataSettings(), str.split)
    assert segmented.place("queries", 1) == source.place("queries", 1)
    moved = sc.load((tmp_path / "kept").rename(tmp_path / "moved"))
    monkeypatch.chdir("/")
    for model in (moved, sc.load(moved.export(tmp_path / "export"))):
        assert model.evaluate(negatives=3).metrics == pytest.approx(of_files.metrics)


def test_a_set_in_memory_is_kept_and_not_read_back(parts, table, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(file_source, "read_table", mock.Mock(side_effect=AssertionError))
        trained = sc.train(**parts, **table, output_dir=tmp_path)
    data = trained.settings.data
    assert data.data_dir == str(tmp_path / "data")
    assert source_of(data).name == run_config.RunConfig.read(tmp_path / "config.json").data.name
    assert run_directory.RunDirectory.load(tmp_path).was_trained_on(source_of(data).fingerprint())
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "data").iterdir()}
    again = sc.train(**parts, **table, output_dir=tmp_path, overwrite=True)
    assert again.metrics == trained.metrics
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "data").iterdir()} == written


def test_folds_measure_every_judged_query_and_leave_the_run_as_is(
    source, parts, tiny_dir, table, tmp_path
):
    drawn = {**parts, "splits": None}
    alone = sc.train(**drawn, **table, folds=0)
    model = sc.train(**drawn, **table)  # few queries: by themselves
    details, judged = model.details, {judgment.query_id for judgment in source.judgments()}
    assert details["counts"]["cross-validation"]["MAP"] == len(judged)
    assert (model.metrics, details["cut_points"]) == (alone.metrics, alone.details["cut_points"])
    report = (model.path / "report.md").read_text(encoding="utf-8")
    assert "| whole collection | cross-validation (95% interval) | test (95% interval) |" in report
    # Its rankings are there, of each query by a model that has not seen it, and can be compared.
    crossed, figures = model.path / "evaluation/cross-validation", details["cross-validation"]
    columns = np.genfromtxt(crossed / "per_query.tsv", delimiter="\t", names=True, deletechars="")
    assert sorted(columns["query_id"].astype(int).astype(str)) == sorted(judged)
    for path, full in ((model.path, True), (model.path / "evaluation", False)):
        other = shutil.copytree(path, tmp_path / f"{full}")
        options = {"split": "cross-validation", "full": full, "samples": 1}
        for row in sc.compare(model, other, **options).rows:
            if (name := row.metric) in figures:
                assert (row.mean, row.difference) == (pytest.approx(figures[name], abs=1e-5), 0)
                assert row.queries == details["counts"]["cross-validation"][name]
    own = sc.train(tiny_dir, **table)
    assert "cross-validation" not in own.details["counts"]  # its splits are its own
    with pytest.raises(sc.InputError, match=r"no full\.run\.trec .*Train it with .*=5"):
        sc.compare(own, model, split="cross-validation")
    for folds, reason in ((2, "training, valid.* a fold each"), (99, "the judged .* 18 different")):
        with pytest.raises(sc.InputError, match=rf"--folds={folds}: {reason}.* Use 3 to 18 folds"):
            sc.train(tiny_dir, **table, folds=folds)


def test_pairs_and_clicks_are_sets_too(parts, table, caplog):
    texts = parts["queries"], parts["documents"]
    best = [(query, document) for query, document, grade, _ in parts["judgments"] if grade == 2]
    pairs = [(texts[0][query], texts[1][document]) for query, document in best]
    model = sc.train(pairs=pairs, **table, folds=0, epochs=3, loss="mse")
    assert "--epochs, --loss: no towers are trained, and nothing else uses it" in caplog.messages
    assert model.details["set"]["queries"] == len({query for query, _ in pairs})
    frame = [{"asked": texts[0][query], "docid": document} for query, document in best]
    frame.append({"asked": pairs[0][0].upper(), "docid": "gone"})
    given = {"documents": texts[1], "clicks": frame, "columns": {"query": "asked"}}
    model = sc.train(**given, **table, max_skipped=0.1, folds=0)
    clicked = {(texts[0][query], document) for query, document in best}
    assert model.details["set"]["judgments"] == len(clicked)  # the one that is gone is skipped
    assert model.evaluate(pairs=pairs).counts["MAP"] == len({query for query, _ in pairs})


@pytest.mark.usefixtures("no_child_process")
def test_a_tokenizer_of_ones_own_is_that_of_all_parts(parts, towers, tmp_path):
    def words(text):  # another one than ours in case, punctuation and length
        return [f"{word} Ab." for word in text.split()]

    own = {**towers, "retriever": "hybrid", "max_query_tokens": 5}
    model = sc.train(**parts, **own, tokenizer=words, output_dir=tmp_path / "run")
    vocabulary = (tmp_path / "run/vocabulary/query.txt").read_text().split()[2:]
    assert vocabulary
    assert all(word.endswith("_Ab.") for word in vocabulary)
    query = next(iter(parts["queries"].values()))
    asked = " ".join(f"{word}_Ab." for word in query.split())
    (hits,) = model.search([query])
    exported = model.export(tmp_path / "export")
    plain = sc.load(exported)
    vector = plain.encode_queries([asked])
    for opened in (sc.load(tmp_path / "run", tokenizer=words), sc.load(exported, tokenizer=words)):
        (again,) = opened.search([query], documents=parts["documents"])
        assert [(hit.id, hit.score) for hit in again] == [(hit.id, hit.score) for hit in hits]
        np.testing.assert_array_equal(opened.encode_queries([query]), vector)
    assert plain.search([query]) == [[]]  # no word of it is known
    served = tf.saved_model.load(str(exported / "search/1")).signatures["serving_default"]
    found = served(text=tf.constant([asked, query]))
    assert [id_.decode() for id_ in found["ids"][0].numpy()[: len(hits)]] == [h.id for h in hits]
    assert found["evidence"].numpy().tolist() == [b"words", b"nothing"]
    without_splits = {name: parts[name] for name in parts if name != "splits"}
    assert model.evaluate(**without_splits).counts["MAP"]
    with pytest.raises(sc.InputError, match="tokenizer: it gives no words of"):
        sc.train(**parts, **own, tokenizer=str.upper)


@pytest.mark.usefixtures("no_child_process")
@cases("given", "sentences", "dictionary")
def test_without_judgments_nothing_is_measured_and_search_works(
    parts, table, tmp_path, caplog, given
):
    caplog.set_level("INFO", logger="absl")
    texts = parts["queries"], parts["documents"]
    pairs = [(texts[0][q], texts[1][d]) for q, d, grade, _ in parts["judgments"] if grade == 2]
    options = {"parallel": pairs}
    if given == "dictionary":
        words = {f"{query.split()[0]}\t{text.split()[0]}" for query, text in pairs}
        (tmp_path / "words").write_text("\n".join(words))
        options = {"dictionary": str(tmp_path / "words")}
    options = {"cache_dir": table["cache_dir"], "output_dir": tmp_path / "run", **options}
    model = sc.train(documents=texts[1], **options)
    assert (model.metrics, model.retriever) == ({}, "lexical")
    number = 0 if given == "dictionary" else len(pairs)
    assert model.details["set"] == {"parallel sentences": number}
    # It would be said of sentences; documents are read for the vocabulary alone.
    assert ("no language is known" in caplog.text) == (number == 0)
    facts = re.findall(r"^\| (.*?) \| ([\d,]+) \|$", (tmp_path / "run/report.md").read_text(), re.M)
    assert ("documents", f"{len(texts[1])}") in facts
    assert (("parallel sentences", f"{number}") in facts) == (number > 0)
    for one in (model, sc.load(model.export(tmp_path / "export"))):
        hits = one.search([pairs[0][0].split()[0]], k=3)[0]
        assert hits
        assert {hit.grade for hit in hits} == {0}
        assert {hit.id for hit in hits} <= texts[1].keys()
    for page in (tmp_path / "run" / "report.md", tmp_path / "export" / "model_card-1.md"):
        assert "No test query has a judgment, so nothing was measured." in page.read_text()
    assert model.evaluate(**{name: parts[name] for name in parts if name != "splits"}).metrics


def test_it_trains_without_flags_in_any_thread_and_leaves_no_temporary_run(parts, towers):
    before = {name: flags.FLAGS[name].value for name in flags.FLAGS}
    trained = []
    # Where no signal handlers can be set.
    thread = threading.Thread(target=lambda: trained.append(sc.train(**parts, **towers)))
    thread.start()
    thread.join()
    assert {name: flags.FLAGS[name].value for name in flags.FLAGS} == before
    path = trained[0].path
    assert (path / "report.md").is_file()
    trained.clear()
    gc.collect()
    assert not path.exists()


def test_a_run_on_other_data_is_refused_or_overwritten(parts, table, tmp_path):
    sc.train(**parts, **table, output_dir=tmp_path)
    other = {**parts, "documents": {**parts["documents"], "0": "autre"}}
    with pytest.raises(sc.InputError, match="it holds a finished run on other data"):
        sc.train(**other, **table, output_dir=tmp_path)
    (tmp_path / "report.md").write_text("of the first run")
    sc.train(**other, **table, output_dir=tmp_path, overwrite=True)
    assert "of the first run" not in (tmp_path / "report.md").read_text()
    assert '"autre"' in (tmp_path / "data" / "documents.jsonl").read_text("utf-8")


def test_ctrl_c_in_a_notebook_is_a_keyboard_interrupt(parts, towers, monkeypatch):
    monkeypatch.setattr(trainer.Trainer, "train", mock.Mock(side_effect=trainer.Interrupted(130)))
    with pytest.raises(KeyboardInterrupt, match="stopped and saved in"):
        sc.train(**parts, **towers)


@cases("name", "lexical", pytest.param("hybrid", marks=pytest.mark.slow))
def test_fine_tuning_begins_with_the_models_of_a_run(name, ranking_runs, parts, towers, tmp_path):
    first = ranking_runs[name]
    still = {} if name == "lexical" else {"learning_rate": 1e-9, "epochs": 1}
    own = {"init_from": first.path, "cache_dir": towers["cache_dir"], "output_dir": tmp_path}
    begun = sc.train(**parts, **own, **still)
    assert begun.settings.training.init_from == str(first.path)
    assert begun.retriever == name
    assert "dictionary" in begun.details["lexical"]
    for role in ("query", "document"):
        other = (first.vocabulary / f"{role}.txt").read_text()
        assert (tmp_path / "vocabulary" / f"{role}.txt").read_text() == other
    if still:  # a step of length nearly 0 from the weights of the first run
        texts = list(parts["queries"].values())
        found, expected = begun.encode_queries(texts), sc.load(first.path).encode_queries(texts)
        assert abs(found - expected).max() < 1e-6
        assert (tmp_path / "hybrid.json").read_text() == first.fusion.read_text()


@cases(
    "changes, message",
    ({"documents": None}, "documents are missing"),
    ({"columns": {"text": "nosuch"}}, "no table has the column 'nosuch'; there are: none"),
    ({"data": "somewhere"}, "queries, documents, judgments are given too"),
    ({"data_dir": "somewhere"}, "Leave one of the two out"),
    ({"judgments": [("0", "nowhere", 1)]}, r"judgments\[0\]: the judged document 'nowhere'"),
    ({"judgments": [("0", "0", 0)]}, "no query has a relevant document"),
    (NOT_JUDGED, "there are no judgments. Add judgm"),
    ({"pairs": [("a", "b")]}, "they do not go together"),
    ({"splits": {"0": "tset"}}, r"splits\[0\]: query '0' has 'tset', not one"),
    ({"splits": {"0": "test"}}, r"^splits: query '1' has no split"),
    ({**NOT_JUDGED, "clicks": [("a", "0"), ("a", "9x")]}, r"^clicks\[1\]: .* document '9x'"),
    ({**NOT_JUDGED, "clicks": [("a", "0"), ("a", "1", 2)]}, r"clicks\[1\]: only some rows have"),
    ({**NOT_JUDGED, "clicks": [("a", "0", 1), ("a", "1", np.nan)]}, r"clicks\[1\]: the count is m"),
    ({**NO_SET, "pairs": [("a", "b"), ("a", "b", 2)], "thresholds": [0]}, r"^pairs\[0\]: grade 2"),
    ({"init_from": "", "dim": 5}, r"--dim is 4 there, 5 here\. Leave --dim out"),
    ({"init_from": "", "retriever": "hybrid"}, "it has no hybrid models, but dense ones"),
    ({"init_from": "", "preset": "best"}, r"has its settings\. Leave one of the two out"),
)
def test_wrong_data_and_other_forms_of_a_run_are_named(ranking_runs, parts, changes, message):
    if "init_from" in changes:
        changes = {**changes, "init_from": ranking_runs["dense"].path}
    with pytest.raises(sc.InputError, match=message):
        sc.train(**{**parts, **changes})


def test_a_search_continues_and_its_best_keywords_train_its_best_trial(parts, towers, tmp_path):
    search = {"tune": ["loss", "thresholds"], "search": "random", "output_dir": tmp_path / "out"}
    first = sc.tune(**parts, **search, max_trials=1, **towers)
    found = sc.tune(**parts, **search, max_trials=2, **towers)
    assert len(found.trials) == 2
    assert first.trials[0] in found.trials
    assert found.score == found.trials[0].metrics["MAP"]
    assert sc.train(**parts, **found.best).history[-1]["validation"] == found.trials[0].metrics


@cases(
    "changes, message",
    ({"tune": "epsilon"}, r"tune='epsilon': it is a string. Give a list: tune=\['epsilon'\]"),
    ({"tune": None}, r"tune: it is None\. Give a list of strings"),
    ({"max_trials": "2"}, "max_trials: it is '2', a str"),
    ({"search": "guess"}, "--search must be one of grid, random, bayesian, hyperband"),
    ({"max_trail": 5}, "max_trail: there is no such setting. Did you mean max_trials"),
    ({"data_dir": "x"}, "tune: data_dir: queries, documents and judgments, or data, are given"),
)
def test_a_mistake_is_an_error(parts, towers, changes, message, tmp_path):
    with pytest.raises(sc.InputError, match=message):
        sc.tune(**parts, output_dir=tmp_path / "out", **{**towers, **changes})
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_keras_tuner_searches_the_hypermodel_and_loads_its_best_model(parts, towers, tmp_path):
    hypermodel = sc.HyperModel(**parts, tune=["epsilon"], **towers)
    objective = keras_tuner.Objective("MAP", "max")
    search = {"objective": objective, "max_trials": 2, "seed": 3, "directory": tmp_path}
    tuner = keras_tuner.RandomSearch(hypermodel, **search)
    tuner.search(verbose=0)
    best, other = tuner.oracle.get_best_trials(2)
    assert best.score >= other.score
    epsilon = best.hyperparameters["epsilon"]
    model = sc.train(**parts, **towers, epsilon=epsilon)
    assert best.score == pytest.approx(model.history[-1]["validation"]["MAP"])
    (best_towers,) = tuner.get_best_models()
    assert best_towers.similarity.epsilon == epsilon
    trained = hypermodel.build(best.hyperparameters)
    assert hypermodel.fit(best.hyperparameters, trained)["MAP"] == best.score
    np.testing.assert_equal(best_towers.get_weights(), trained.get_weights())
