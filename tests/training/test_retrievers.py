"""Lexical and hybrid runs, and runs that begin with another one: what they write and rank with."""

import dataclasses
import json
import shutil
from unittest import mock

import numpy as np
import pytest

import tf_smoothclir as sc
from tests.cases import cases
from tests.training import fixtures, test_run_directory, tiny_set
from tf_smoothclir.data.sources import source
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.families import hybrid as hybrid_family
from tf_smoothclir.hybrid import learning as hybrid_learning
from tf_smoothclir.hybrid.fusion import Fusion
from tf_smoothclir.lexical import learning as lexical_learning
from tf_smoothclir.protocols.text_search import read_cut_points
from tf_smoothclir.storage.files import read_json
from tf_smoothclir.training import run_directory, run_models, run_report, trainer
from tf_smoothclir.training.initial_run import check_begins_with_words
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.train import train

TREC = {"run.trec", "qrels.trec", "full.run.trec", "full.qrels.trec", "per_query.tsv"}
stop = mock.Mock(side_effect=KeyboardInterrupt)


@pytest.fixture(scope="module")
def runs(tiny, ranking_runs, tmp_path_factory):
    """Name of a retriever -> a finished run of one epoch with it."""
    path = tmp_path_factory.mktemp("retrievers") / "dense"
    return {**ranking_runs, "dense": fixtures.run_of(tiny(epochs=1), path)}


@cases("name", "lexical", "hybrid")
def test_metrics_and_report_have_what_those_of_every_run_have(runs, name):
    run, result, dense = runs[name], read_json(runs[name].metrics), read_json(runs["dense"].metrics)
    assert result.keys() >= dense.keys()
    assert result["training"].keys() == dense["training"].keys()
    for split in ("test", "validation"):
        assert result[split].keys() == dense[split].keys()
        assert {path.name for path in (run.evaluation / split).iterdir()} == TREC
        assert np.sum(result["confusion"][split]) == 4 * 5  # 4 lists of 2 judged, 3 sampled
    assert result["training"]["seconds"] > result["lexical"]["seconds"] - 1e-3 > 0
    assert (run.plots / "learning_curves.png").exists() == (name == "hybrid") == run.plots.exists()
    assert ("## Components" in run.report.read_text()) == (name == "hybrid")


def test_a_run_says_and_keeps_nothing_of_what_it_has_not(runs):
    dense, lexical = runs["dense"], runs["lexical"]
    assert not read_json(dense.metrics).keys() & {"components", "lexical", "hybrid"}
    assert not dense.lexical.exists()
    assert not lexical.checkpoints.exists()
    assert not lexical.fusion.exists()
    result = read_json(lexical.metrics)
    assert "components" not in result
    assert (result["history"], result["training"]["pairs"]) == ([], 0)
    assert list(run_models.load_models(lexical)) == ["lexical"]


def test_the_components_of_a_hybrid_are_the_runs_of_its_parts(runs):
    components = read_json(runs["hybrid"].metrics)["components"]
    assert list(components) == ["dense", "lexical"]
    for name, found in components.items():
        expected = read_json(runs[name].metrics)
        assert found == {split: expected[split] for split in ("test", "validation")}
        for split in ("test", "validation"):
            for file in TREC:
                theirs = runs[name].evaluation / split / file
                ours = runs["hybrid"].evaluation / "components" / name / split / file
                assert ours.read_bytes() == theirs.read_bytes()


@cases("name", "dense", "lexical", "hybrid")
def test_a_run_keeps_the_cut_points_of_what_it_ranks_with_and_of_its_parts(runs, name):
    kept = read_cut_points(runs[name].cut_points)
    assert list(kept) == (["dense", "lexical", "hybrid"] if name == "hybrid" else [name])
    as_json = json.loads(json.dumps(dataclasses.asdict(kept[name])))
    assert read_json(runs[name].metrics)["cut_points"] == as_json
    for part in kept.keys() - {name}:
        assert kept[part] == read_cut_points(runs[part].cut_points)[part]


@pytest.mark.slow
@cases("name", "lexical", "hybrid")
def test_a_killed_run_goes_on_with_what_it_has_learned(runs, name, tiny, tmp_path, monkeypatch):
    path, settings = tmp_path / "run", tiny(retriever=name, epochs=1)
    stages = [(lexical_learning, "TableLearner"), (trainer.Trainer, "train")]
    stages += [(hybrid_learning, "learn_fusion"), (run_report, "evaluate_splits")]
    for stage in stages if name == "hybrid" else stages[::3]:
        with mock.patch.object(*stage, stop), pytest.raises(KeyboardInterrupt):
            train(settings, path)
    run = run_directory.RunDirectory.load(path)
    assert not run.finished
    kept = test_run_directory.snapshot(run.lexical)
    for learned in stages[:3:2]:
        monkeypatch.setattr(*learned, stop)  # nothing is learned again
    result = train(settings, path)
    assert test_run_directory.snapshot(run.lexical) == kept
    expected = read_json(runs[name].metrics)
    for part in ("test", "validation", "components"):
        assert result.get(part) == expected.get(part)
    before = test_run_directory.snapshot(path)
    assert train(settings, path) == read_json(run.metrics)
    assert test_run_directory.snapshot(path) == before


@cases(
    "early, looks, takes_long",
    ([False], [], True),
    ([True], [False], True),
    ([True], [True, False], True),
    ([True], [], True),
    ([], [False], True),
    ([], [], False),
    ids=["before training", "first", "later", "never", "random vectors", "not before the end"],
)
def test_useless_towers_are_not_kept(runs, tiny, tmp_path, monkeypatch, early, looks, takes_long):
    """They are trained no further once validation says so, be it only the fusion in the end."""
    monkeypatch.setattr(hybrid_family, "_ENOUGH_QUERIES", 1)
    monkeypatch.setattr(hybrid_family, "_LONG_TRAINING", 1 if takes_long else 10_000)
    look = mock.Mock(side_effect=early + looks)
    monkeypatch.setattr(hybrid_learning, "may_count", look)
    monkeypatch.setattr(hybrid_learning, "learn_fusion", lambda *_: Fusion(0.0, 1.0, 1.0))
    epochs = len(looks) + 1 if takes_long else 2  # there is no look after the last one
    start = {"initial_vectors": "bilingual" if early else "random", "epochs": epochs}
    settings, path = tiny(retriever="hybrid", **start), tmp_path / "run"
    result = train(settings, path)
    assert [call.args[-1] for call in look.mock_calls] == [True] * len(early) + [False] * len(looks)
    run, lexical = run_directory.RunDirectory.load(path), runs["lexical"]
    found = {"query_language": "en", "document_language": "fr"}  # by the names of the files
    assert run.settings() == tiny(retriever="lexical", **start, **found)
    assert not run.checkpoints.exists()
    assert result["test"] == read_json(lexical.metrics)["test"]
    assert result["training"]["epochs"] == 0
    assert "ranked no better with --retriever=dense than by lexical alone" in run.report.read_text()
    assert list(run_models.load_models(run)) == ["lexical"]
    assert train(settings, path) == read_json(run.metrics)  # it is the run that was asked for
    with pytest.raises(sc.InputError, match="or train with --retriever=dense"):
        run_models.check_retriever(run.settings(), "dense")


def test_an_unfinished_run_says_how_to_go_on(runs, tmp_path):
    path = shutil.copytree(runs["hybrid"].path, tmp_path / "run")
    for missing, what in {
        "lexical": "learned its lexical model",
        "hybrid.json": "chosen the weights of its hybrid",
        "checkpoints": "completed an epoch",
    }.items():
        (path / missing).rename(tmp_path / "elsewhere")
        message = rf"the run has not {what} yet\. Continue it: smoothclir-train"
        with pytest.raises(sc.InputError, match=message):
            run_models.load_models(run_directory.RunDirectory.load(path, verify=False))
        (tmp_path / "elsewhere").rename(path / missing)


def test_a_hybrid_ranks_by_any_of_its_parts(runs):
    run = runs["hybrid"]
    tokenized_set = fixtures.tokenized_by(run)
    queries = tokenized_set.retrieval_set.queries_in("test")
    expected_of = run_models.load_models(run).retrievers(tokenized_set)
    assert list(expected_of) == ["dense", "lexical", "hybrid"]
    for name, expected in expected_of.items():
        found, cut_points = run_models.load_retriever(run, tokenized_set, retriever=name)
        for own, other in zip(found.rank(queries, 9), expected.rank(queries, 9), strict=True):
            np.testing.assert_array_equal(own.document_rows, other.document_rows)
        assert cut_points == read_cut_points(run.cut_points)[name]


@cases("grades", (2, 1), (1, 0), (4, 2))
def test_another_set_leaves_the_own_figures(runs, tiny_dir, tmp_path, commands, grades, caplog):
    """Its grades are its own: the highest is what `full/...` and `P_mr` look for."""
    run = run_directory.RunDirectory.load(shutil.copytree(runs["hybrid"].path, tmp_path / "run"))
    other = shutil.copytree(tiny_dir, tmp_path / "other")
    with open(other / "wiki_fr.documents", "a", encoding="utf-8") as file:
        file.write("999\tNouveau\tmotb motc inconnu\n")
    judgments = (other / "en2fr.rel").read_text().replace("\t2\n", f"\t-{grades[0]}\n")
    judgments = judgments.replace("\t1\n", f"\t{grades[1]}\n").replace("\t-", "\t")
    (other / "en2fr.rel").write_text(judgments)
    (other / "wiki_de.documents").write_text("d1\tNeu\twort1\n")
    (other / "en2de.rel").write_text("0\td1\t1\n")
    (run.evaluation / "metrics.json").write_text("the run's own")
    arguments = [f"--run_dir={run.path}", f"--data_dir={other}", f"--cache_dir={tmp_path}/cache"]
    done = commands.run("trainers.evaluate", *arguments, check=True)
    assert (run.evaluation / "metrics.json").read_text() == "the run's own"
    (out,) = run.evaluation.glob("on-other-en-*")
    found = json.loads((out / "metrics.json").read_text())["test"]
    assert len((out / "test" / "full.run.trec").read_text().splitlines()) == 4 * 31
    assert found == pytest.approx(sc.load(run.path).evaluate(other, negatives=3).metrics)
    assert found["P_mr@5"] > 0
    left_out = "documents in de are left out, as the run has --document_language=fr."
    assert left_out in done.stderr
    assert any(left_out in message for message in caplog.messages)
    # Query 19, of the test split, has the words of query 1, of the training split.
    assert "was trained on the texts of 1 of the 4 test queries" in done.stderr
    assert found != pytest.approx(read_json(run.metrics)["test"])


def test_a_dictionary_alone_is_enough(tiny, tiny_dir, tmp_path):
    data = shutil.copytree(tiny_dir, tmp_path / "data")
    judged = (data / "en2fr.rel").read_text().splitlines()
    others = [line for line in judged if tiny_set.SPLITS[int(line.split("\t")[0]) % 5] != "train"]
    (data / "en2fr.rel").write_text("\n".join(others) + "\n")
    path = tmp_path / "en-fr.txt"
    letters = "abcdefghi"[: tiny_set.WORDS]
    path.write_text("".join(f"word{one} mot{one}\nnew{one} mot{one}\n" for one in letters))
    metrics = train(tiny(data, retriever="lexical", dictionary=str(path)), tmp_path / "run")
    assert metrics["test"]["full/MRR@10"] > 0.5
    assert metrics["lexical"]["dictionary"] == 1
    run = run_directory.RunDirectory.load(tmp_path / "run")
    assert {f"new{one}" for one in letters} <= set(run.vocabulary_tokens("query"))
    assert run_models.load_models(run)["lexical"].table.nnz == 2 * tiny_set.WORDS
    with pytest.raises(sc.InputError, match="no query of the train split has a judgment"):
        train(tiny(data, retriever="lexical"), tmp_path / "without")


def test_a_bad_dictionary_stops_a_run_before_it_learns(tiny, tmp_path):
    path = tmp_path / "en-fr.txt"
    path.write_text("wordb motb\nwordc\n")
    with pytest.raises(sc.InputError, match=r"en-fr\.txt:2: 1 columns instead of 2"):
        train(tiny(retriever="hybrid", dictionary=str(path)), tmp_path / "run")
    assert not (tmp_path / "run" / "vocabulary").exists()


def language(letters, seed):
    """A set of English queries of 40 words, and of documents whose words have other letters."""
    random = np.random.default_rng(seed)
    english = ["".join(word) for word in np.random.default_rng(0).choice(list("bcdfaeio"), (40, 6))]
    foreign = ["".join(word) for word in random.choice(list(letters), (40, 6))]
    said = [random.choice(40, 6, replace=False) for _ in range(90)]
    queries = {f"q{n}": " ".join(english[one] for one in words) for n, words in enumerate(said)}
    documents = {f"d{n}": " ".join(foreign[one] for one in words) for n, words in enumerate(said)}
    judgments = [(f"q{n}", f"d{n}", 1) for n in range(90)]
    splits = {f"q{n}": ("train", "train", "validation", "test")[n % 4] for n in range(90)}
    return {"queries": queries, "documents": documents, "judgments": judgments, "splits": splits}


@cases("shared_vocabulary", True, False)
def test_another_language_changes_no_score_of_the_first(tmp_path, shared_vocabulary):
    first, second = language("klmnuöü", 1), language("pqrstwy", 2)
    settings = {"cache_dir": tmp_path / "cache", "thresholds": (0.5,)}
    form = {"preset": "lexical", "shared_vocabulary": shared_vocabulary}
    before = sc.train(**first, **form, **settings, output_dir=tmp_path / "first")
    after = sc.train(**second, **settings, init_from=before.path, output_dir=tmp_path / "both")
    asked = np.repeat(list(first["queries"].values()), 3)
    documents = np.tile(list(first["documents"].values()), 3)
    scores = before.score(asked, documents)
    assert len(set(scores.tolist())) > 50
    np.testing.assert_array_equal(after.score(asked, documents), scores)
    assert after.metrics["full/MRR@10"] > 0.8
    of_second = list(second["queries"].values()), list(second["documents"].values())
    assert before.score(*of_second).max() == 0 < after.score(*of_second).min()
    check_begins_with_words(RunDirectory(tmp_path / "first"), RunDirectory(tmp_path / "both"))
    with pytest.raises(sc.InputError, match=r"trained again since .* was begun, with other vocab"):
        check_begins_with_words(RunDirectory(tmp_path / "both"), RunDirectory(tmp_path / "first"))
    # A run that stopped before it had its model continues with the words that it has.
    words = {role: RunDirectory(tmp_path / "both").vocabulary_tokens(role) for role in ROLES}
    (tmp_path / "both" / "metrics.json").unlink()
    shutil.rmtree(tmp_path / "both" / "lexical")
    again = sc.train(**second, **settings, init_from=tmp_path / "first", output_dir=after.path)
    np.testing.assert_array_equal(again.score(asked, documents), scores)
    for role in ROLES:
        assert RunDirectory(tmp_path / "both").vocabulary_tokens(role) == words[role]


def test_no_query_that_a_run_was_trained_on_measures_those_after_it(tmp_path, caplog):
    """Nor those of the runs that it began with, unless the set names its splits."""
    data, settings = language("klmnuöü", 1), {"cache_dir": tmp_path / "cache", "thresholds": (0.5,)}
    splits, queries = data.pop("splits"), list(data["queries"].values())
    models, began = [], {"preset": "lexical", "folds": 0}
    for run, known in enumerate((60, 80)):  # other ids draw other splits
        data["queries"] = {f"{run}-q{n}": text for n, text in enumerate(queries[:known])}
        data["judgments"] = [(f"{run}-q{n}", f"d{n}", 1) for n in range(known)]
        models.append(sc.train(**data, **settings, **began, output_dir=tmp_path / f"{run}"))
        began = {"init_from": models[-1].path}
    trained: list[set[int]] = []
    for model, known in zip(models, (60, 80)):
        ids = [id_ for split in source.SPLITS[1:] for id_ in model.evaluate(split=split).query_ids]
        measured = {int(id_.split("-q")[1]) for id_ in ids}
        assert not measured & set().union(*trained)
        trained.append({*range(known)} - measured)
    assert "figures are too good" not in caplog.text
    named = {id_: splits[id_.split("-")[1]] for id_ in data["queries"]}
    path = tmp_path / "named"
    model = sc.train(**data, splits=named, **settings, **began, output_dir=path)
    tested = [int(id_.split("-q")[1]) for id_ in named if named[id_] == "test"]
    known = len(set().union(*trained) & {*tested})
    said = f"The model was trained on the words of {known} of the {len(tested)} test queries, so"
    exported = sc.load(model.export(tmp_path / "models", search_model=False))
    for text in (path / "report.md", tmp_path / "models" / "model_card-1.md"):
        assert said in text.read_text()
    assert f"of the test queries, {known} (" in caplog.text
    assert "have the text of a training query, and" in caplog.text
    for one in (model, exported):
        caplog.clear()
        one.evaluate()
        assert f"trained on the texts of {known} of the {len(tested)} test" in caplog.text


@pytest.mark.slow
@cases("shared_vocabulary", True, False)
def test_towers_keep_the_vectors_of_known_words(tmp_path, shared_vocabulary):
    first, second = language("klmnuöü", 1), language("pqrstwy", 2)
    settings = {"cache_dir": tmp_path / "cache", "thresholds": (0.5,), "epochs": 1}
    ngrams = {"ngram_buckets": 10_000, "ngram_rows_per_word": 2}
    form = {"preset": "fast", "dim": 64, "shared_vocabulary": shared_vocabulary, **ngrams}
    before = sc.train(**first, **form, **settings, output_dir=tmp_path / "first")
    after = sc.train(**second, **settings, **{"learning_rate": 1e-9}, init_from=before.path)
    for role in ROLES:
        former = RunDirectory(before.path).vocabulary_tokens(role)
        assert RunDirectory(after.path).vocabulary_tokens(role)[: len(former)] == former
        number = before.settings.text.ngram_rows(len(former))
        assert after.settings.text.ngram_rows(10_000) == number
    for texts, encode in (("queries", "encode_queries"), ("documents", "encode_documents")):
        known = list(first[texts].values())
        found, expected = getattr(after, encode)(known), getattr(before, encode)(known)
        np.testing.assert_allclose(found, expected, atol=1e-6)
    # New words begin beside those of their pairs, so documents are near their queries untrained.
    pairs = list(second["queries"].values()), list(second["documents"].values())
    others = np.roll(pairs[1], 1).tolist()
    assert after.score(*pairs).mean() > after.score(pairs[0], others).mean()
