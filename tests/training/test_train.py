"""A run from settings to report: files, errors, short queries, what a second call does."""

import json
import shutil
from unittest import mock

import numpy as np
import pytest

from tests.cases import cases
from tests.training.fixtures import run_of, tokenized_by
from tests.training.test_run_directory import snapshot
from tests.training.tiny_set import QUERIES, tiny_settings
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.data.word_places import inverse_document_frequency
from tf_smoothclir.evaluation.metrics import COLLECTION_METRICS
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.training import METRICS
from tf_smoothclir.training import run_data, run_models, run_report, short_queries, tasks, trainer
from tf_smoothclir.training import train as train_module
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.train import train
from tf_smoothclir.utils.errors import InputError


def test_scores_are_drawn_only_where_there_are_any(tmp_path):
    retrieval = mock.Mock(retriever="dense", with_task="dense")
    models = mock.Mock(settings=mock.Mock(retrieval=retrieval), thresholds=(0.5,))
    run = mock.Mock(path=tmp_path, plots=tmp_path / "plots")
    drawing = {"Scores by grade, test": "plots/scores_by_grade.png"}
    for scores, drawn in (([], {}), ([0.5], drawing)):
        test = mock.Mock(scores_by_grade=[np.zeros(0), np.array(scores)])
        assert run_report._draw(run, models, mock.Mock(history=[]), test) == drawn


@pytest.fixture
def begin(monkeypatch):
    monkeypatch.setattr(trainer.Trainer, "train", mock.Mock(side_effect=KeyboardInterrupt))

    def begin(settings, path):
        with pytest.raises(KeyboardInterrupt):
            train(settings, path)

    return begin


def test_metrics_report_and_files_have_what_is_promised(finished):
    result = json.loads(finished.metrics.read_text())
    for split in ("test", "validation"):
        assert set(result[split]) == {*METRICS, *(f"full/{name}" for name in COLLECTION_METRICS)}
        for name, value in result[split].items():
            low, high = result["intervals"][split][name]
            assert 0 <= low <= value <= high <= 1
            assert result["counts"][split][name] == QUERIES // 5  # 3:1:1
        assert np.shape(result["confusion"][split]) == (3, 3)
        assert np.sum(result["confusion"][split]) == 4 * 5  # 4 lists of 2 judged and 3 sampled
        for name in ("run.trec", "qrels.trec", "full.run.trec", "full.qrels.trec", "per_query.tsv"):
            assert (finished.evaluation / split / name).stat().st_size
    assert {"gain", "ties", "lists", "intervals"} <= set(result["rules"])
    assert result["thresholds"] == [0.2, 0.7]  # as they were given
    training = result["training"]
    assert (training["pairs"], training["epochs"]) == (2 * 60, 2)
    assert all(training[name] > 0 for name in ("pairs_per_second", "seconds", "peak_rss_mb"))
    assert [record["epoch"] for record in result["history"]] == [1, 2]
    assert_validated_by_the_best(result)
    kinds = [path.name.split("-")[0] for path in finished.checkpoints.iterdir()]
    assert kinds == ["best"]  # one set of weights, and no states
    report = finished.report.read_text()
    plots = list(finished.plots.iterdir())
    assert len(plots) == 2
    lengths = ("whole", "first ten words", "three rarest words")
    for text in ("## The worst queries", "## Examples", *lengths):
        assert text in report
    assert list(result["query_lengths"]) == [*lengths]
    assert all(plot.read_bytes().startswith(b"\x89PNG") for plot in plots)
    assert all(f"plots/{plot.name}" in report for plot in plots)
    assert all(line in report for line in finished.flags.read_text().splitlines())


def assert_validated_by_the_best(result):
    best = result["history"][result["training"]["best_epoch"] - 1]["validation"]
    assert {name: result["validation"][name] for name in METRICS} == best


def test_finished_run_is_returned_as_it_is_or_refused(finished, tiny, tmp_path):
    before = snapshot(finished.path)
    assert train(tiny(), finished.path) == json.loads(finished.metrics.read_text())
    # Mistyped: what is there is kept, and nothing is written elsewhere.
    for path in (finished.path, tmp_path / "new"):
        with pytest.raises(InputError, match="nowhere"):
            train(tiny(data_dir="nowhere"), path, overwrite=True)
        with pytest.raises(InputError, match="--thresholds"):
            train(tiny(thresholds=(0.7, 0.2)), path, overwrite=True)
    assert not (tmp_path / "new").exists()
    without = shutil.copytree(finished.path, tmp_path / "run")
    shutil.rmtree(without / "checkpoints")
    left = snapshot(without)
    for path in (finished.path, without):
        with pytest.raises(InputError, match=r"--epsilon: 1\.0 there, 0\.5 here"):
            train(tiny(epsilon=0.5), path)
    other = shutil.copytree(tiny().data.data_dir, tmp_path / "other")  # the set is of all tests
    with open(other / "wiki_fr.documents", "a", encoding="utf-8") as file:
        file.write("new\tnew\tnew\n")
    with pytest.raises(InputError, match="it holds a finished run on other data"):
        train(tiny(data_dir=other), finished.path)
    assert snapshot(finished.path) == before
    assert snapshot(without) == left


def test_threads_are_chosen_before_tensorflow_has_any(tiny, tmp_path, monkeypatch, begin):
    """Tokens are looked up by TensorFlow: then it is too late."""
    calls, names = mock.Mock(), ["choose_intraop_threads", "check_model", "tokenize_set"]
    for name, module in zip(names, (train_module, run_data, run_data)):
        getattr(calls, name).side_effect = getattr(module, name)
        monkeypatch.setattr(module, name, getattr(calls, name))
    begin(tiny(), tmp_path / "run")
    assert [name for name, *_ in calls.mock_calls] == names


def test_two_processes_do_not_train_in_one_directory(tiny, tmp_path, begin):
    path = tmp_path / "run"
    with RunDirectory.only_one(path):
        with pytest.raises(InputError, match=r"--output_dir=.*run: another process is training"):
            train(tiny(), path)
        assert [file.name for file in path.iterdir()] == [".training.lock"]
    begin(tiny(), path)
    assert (path / "config.json").is_file()
    with RunDirectory.only_one(path):  # it was given up where the run was broken off
        pass


def word_weights(model, role):
    return np.log1p(np.exp(0.1 * getattr(model, f"{role}_tower").weights[1].numpy()[:, 0]))


@cases("shared", False, True)
def test_weights_of_words_and_positions_are_trained(shared, tiny, tmp_path):
    weighted = {"token_weights": "learned", "position_weights": "learned"}
    settings = tiny(**weighted, shared_vocabulary=shared)
    assert_validated_by_the_best(train(settings, tmp_path / "run"))
    model = tasks.load_model(RunDirectory.load(tmp_path / "run"))
    for role in ROLES:
        same = np.isclose(word_weights(model, role), np.log(2), rtol=1e-5)
        assert same[0]  # padding is in no text
        assert not same.all()
        profile = getattr(model, f"{role}_tower")._profile().numpy()
        assert profile.max() == 1
        assert profile.min() < 0.99  # they begin equal


@cases("shared", False, True)
def test_frozen_pretrained_vectors_and_idf_stay_through_a_run(shared, tiny, tmp_path):
    vectors = np.arange(1, 9, dtype="f4").reshape(2, 4) / 7
    lines = [f"{word} {' '.join(map(str, row))}" for word, row in zip(("motb", "motc"), vectors)]
    (tmp_path / "fr.vec").write_text("\n".join(["2 4", *lines]) + "\n")
    own = {"document_embeddings": "" if shared else f"{tmp_path}/fr.vec", "token_weights": "idf"}
    own |= {"train_document_embeddings": shared, "shared_vocabulary": shared, "epochs": 1}
    run = run_of(tiny(**own), tmp_path / "run")
    model, documents = tasks.load_model(run), run.vocabulary_tokens("document")
    if not shared:
        rows = [documents.index(word) for word in ("motb", "motc")]
        np.testing.assert_array_equal(model.document_tower.embeddings.numpy()[rows], vectors)
    tokenized_set = tokenized_by(run, splits=("train",))
    for role in ROLES:
        found = word_weights(model, role)
        idf = inverse_document_frequency(tokenized_set, ROLES if shared else (role,), len(found))
        np.testing.assert_allclose(found, idf, rtol=1e-5)


def test_corrected_data_are_taken_and_changed_ones_refused(tiny_dir, tmp_path, begin, finished):
    data = shutil.copytree(tiny_dir, tmp_path / "data")
    settings, right = tiny_settings(data, tmp_path / "cache"), (data / "en2fr.rel").read_text()
    (data / "en2fr.rel").write_text(right + "0\t1\tmuch\n")
    for path in (tmp_path / "run", shutil.copytree(finished.path, tmp_path / "copy")):
        before = {".training.lock": None, **snapshot(path)}
        with pytest.raises(InputError, match=r"en2fr\.rel:41: the grade is 'much', not a whole"):
            train(settings, path, overwrite=True)
        assert snapshot(path).keys() <= before.keys()
        assert {**before, **snapshot(path)} == before  # a run there is not deleted
    (data / "en2fr.rel").write_text(right)
    with pytest.raises(InputError, match="nowhere"):
        train(changed(settings, {"query_vocabulary": str(data / "nowhere.txt")}), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    run = RunDirectory.create(tmp_path / "run", settings)
    run.vocabulary.mkdir()
    for role in ROLES:  # of former data that could not be used either
        (run.vocabulary / f"{role}.txt").write_text("\n[UNK]\nof former data\n")
    begin(settings, run.path)
    before = {role: run.vocabulary_tokens(role) for role in ROLES}
    assert before["query"][:2] == ["[PAD]", "[UNK]"]
    assert "motb" in before["document"]
    shutil.rmtree(tmp_path / "cache")
    begin(settings, tmp_path / "run")  # unchanged data: it continues
    assert {role: run.vocabulary_tokens(role) for role in before} == before
    with open(data / "wiki_fr.documents", "a", encoding="utf-8") as file:
        file.write("999\tNouveau\tmotb\n")
    with pytest.raises(InputError, match=r"begun on other content of .*--overwrite"):
        train(settings, tmp_path / "run")


def test_a_third_the_first_ten_words_the_others_the_three_rarest():
    long = "wa wb wc wd we wf wg wh wi wj wba wbb"
    texts = {2: "The sea, the sea!", 3: long, 5: "the wb emu, the wc yak; wd ape", 9: long, 11: "!"}
    assert short_queries.cut_short(texts) == {
        2: "the sea the sea",
        3: "wa wba wbb",  # of those in two queries, the first by name
        5: "emu yak ape",  # wb to wd are in three queries, the others in one
        9: "wa wb wc wd we wf wg wh wi wj",
        11: "!",  # no word is left
    }


def test_what_has_no_spaces_has_words_of_two_characters_unless_users_split_it():
    texts = {0: "日本人 です。四つ字熟語 ok 字"}
    assert short_queries.cut_short(texts) == {0: "日本 人 です 四つ 字熟 語 ok 字"}
    assert short_queries.cut_short(texts, pretokenized=True) == texts
    # Of 日本 人日 本人 日本 ok, the first by name: each is in one query.
    assert short_queries.cut_short({0: "字", 1: "日本人日本人日本ok"})[1] == "日本 人日 ok"


@cases("name", "dense", "lexical", "hybrid")
def test_all_that_ranks_ranks_them_and_the_set_is_left_as_it_is(ranking_runs, name, monkeypatch):
    run = ranking_runs[name]
    over = run_models.ModelsOverSet(run.settings(), tokenized_by(run), run_models.load_models(run))
    before = [query.text for query in over.retrieval_set.source.queries()]
    rows = over.retrieval_set.queries_in("validation")
    short = {rows[1]: before[rows[0]]}
    monkeypatch.setattr(short_queries, "cut_short", lambda texts, as_is: texts | short)
    for own, hits in short_queries.hits_of_short_queries(over).items():
        (whole,) = over.retrievers[own].rank(rows, 10)
        np.testing.assert_allclose(hits.scores[1], whole.scores[0, :10], rtol=1e-5)
        np.testing.assert_allclose(hits.scores[2:], whole.scores[2:, :10], rtol=1e-5)
    assert [query.text for query in over.retrieval_set.source.queries()] == before
