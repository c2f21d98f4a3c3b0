"""The harness of `benchmarks.rivals`: on small sets and with rivals made up here."""

import json
import multiprocessing
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks import common
from benchmarks.rivals import bm25, fast_text, measured, ours, set_page, static_embedding, systems
from benchmarks.rivals.catalogue import RIVALS
from benchmarks.rivals.page import METRICS
from benchmarks.rivals.rival import DEPTH, Ready, Rival
from benchmarks.rivals.systems import Systems, Work
from benchmarks.rivals.texts import RivalTexts
from benchmarks.rivals.translations import Translations
from tests.cases import cases
from tests.small_world import SmallWorld
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.toy_world import ToyWorld
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.training.train import train
from tf_smoothclir.utils.errors import InputError

PACKAGE = {"pip": "pip"}  # stands for a rival's package: installed wherever tests run


@pytest.fixture
def in_this_process(monkeypatch):
    """Systems are measured here, and this process keeps its cores."""
    monkeypatch.setattr(systems, "_alone", systems._guarded)
    monkeypatch.setattr(measured, "_stay_on_one_core", lambda: None)


def ready(retrieval_set, quality, setting="", seconds=1.0):
    """A variant whose scores are a share `quality` of the grades, and noise."""
    grades = np.zeros((len(retrieval_set.query_ids), len(retrieval_set.document_ids)), np.float32)
    grades[retrieval_set.query_rows, retrieval_set.document_rows] = retrieval_set.grades
    scores = quality * grades + np.random.default_rng(13).random(grades.shape, np.float32)
    return Ready(lambda rows: scores[rows], lambda query: np.arange(DEPTH), seconds, setting)


def rival(*qualities, title="A rival"):
    def variants(texts):
        for quality in qualities:
            yield ready(texts.retrieval_set, quality, f"quality {quality}", seconds=quality)

    return Rival(title, "judgments themselves", PACKAGE, variants)


def failing(texts):
    yield ready(texts.retrieval_set, 1)
    raise RuntimeError("no room\nfor a second variant")


def world(**parts):
    return RivalTexts.of(RetrievalSet.load(SmallWorld(**parts)), TextSettings())


def test_training_pairs_are_the_training_queries_with_their_mates():
    texts = world()
    # Of the small world's queries, q1, q2 and q3 are for training; d2, d4 and d6 have grade 2.
    assert texts.pairs.tolist() == [[0, 1], [1, 3], [2, 5]]
    assert texts.queries[2] == "an old house , a cat"
    texts = world(judgments=[("q1", "d2", 1), ("q4", "d8", 1), ("q5", "d9", 2)])
    with pytest.raises(InputError, match="no training query has a document of the highest grade"):
        Translations.learn(texts)


def test_a_table_is_turned_round_by_bayes_rule():
    # hund stands for dog alone; tier for dog and cat alike, and twice as often.
    shares = sp.csr_array(np.array([[0.0, 1.0], [0.5, 0.5]]))
    table = Translations(["cat", "dog"], ["hund", "tier"], shares, np.array([1.0, 2.0]))
    assert table.of_document_words() == {"hund": {"dog": 1.0}, "tier": {"cat": 0.5, "dog": 0.5}}
    # P(hund, dog) = 1 * 1, P(tier, dog) = 0.5 * 2: as likely, so by name.
    assert table.of_query_words == {"cat": [("tier", 1.0)], "dog": [("hund", 0.5), ("tier", 0.5)]}


def test_the_table_is_learned_from_training_pairs():
    texts = world(
        queries=[("q1", "red apple"), ("q2", "red sea"), ("q3", "green apple"), ("q4", "v")],
        documents=[("d1", "roter apfel"), ("d2", "rotes meer"), ("d3", "gruener apfel")],
        judgments=[("q1", "d1", 2), ("q2", "d2", 2), ("q3", "d3", 2), ("q4", "d3", 2)],
        splits=dict(zip(["q1", "q2", "q3", "q4"], ["train", "train", "train", "test"])),
    )
    table = Translations.learn(texts)
    assert table.query_words == ["apple", "green", "red", "sea"]
    best = {word: found[0][0] for word, found in table.of_query_words.items()}
    assert (best["apple"], best["green"]) == ("apfel", "gruener")


def test_translations_share_the_places_of_a_word():
    table = {"dog": [("hund", 0.6), ("tier", 0.3), ("rest", 0.1)]}
    assert bm25.translated("a dog", table, 1, 1) == ["a", "hund"]
    # 10 places: 0.6 / 0.9 and 0.3 / 0.9 of them, 6.7 and 3.3.
    assert bm25.translated("dog", table, 2, 10) == ["hund"] * 7 + ["tier"] * 3
    assert bm25.translated("", table, 2, 10) == []


def _cores():
    measured._stay_on_one_core()
    tasks = Path("/proc/self/task")
    return {frozenset(os.sched_getaffinity(int(task.name))) for task in tasks.iterdir()}


@pytest.mark.slow
def test_a_killed_process_is_named_and_a_timed_one_has_one_core(monkeypatch):
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.test_rivals"])
    monkeypatch.setattr(common, "PROCESSES", processes)
    assert systems._alone(os.abort)[1].startswith("its process was killed")
    (cores,), reason = systems._alone(_cores)
    assert (len(cores), reason) == (1, "")


def test_one_page_has_ours_and_the_rivals(in_this_process, monkeypatch, tmp_path, tiny_dir, tiny):
    run = tmp_path / "run"
    monkeypatch.setattr(ours, "_search", lambda *arguments: lambda query: None)
    monkeypatch.setattr(ours, "_indexed_per_second", lambda *arguments: 12_345.0)
    # 40 negatives as in the candidate lists of the rivals.
    train(tiny(negatives=40, retriever="lexical"), run)
    rivals = {"good": rival(0.1, 1.0, 0.5, title="Good"), "poor": rival(0.05, title="Poor")}
    rivals["failing"] = Rival("Failing", "", PACKAGE, failing)
    rivals["missing"] = Rival("Missing", "", {"no-such-package": "no_such_package"}, failing)
    rivals["none"] = rival(title="None")
    for module in (systems, set_page):
        monkeypatch.setattr(module, "RIVALS", rivals)
    set_page.measure_set(
        DataSettings(data_dir=str(tiny_dir)),
        rivals=list(rivals),
        presets=["paper"],  # not trained, as there are runs
        runs={"ours": run, "nothing": Path("nothing")},
        work_dir=str(tmp_path / "work"),
        output_dir=str(tmp_path / "out"),
        latency_queries=12,
    )
    page, file = (next((tmp_path / "out").glob(f"*.{suffix}")) for suffix in ("md", "json"))
    text, content = page.read_text(), json.loads(file.read_text())
    own = json.loads((run / "metrics.json").read_text())["test"]
    metrics = content["systems"]["ours"]["metrics"]
    assert metrics == {name: pytest.approx(own[name], abs=1e-6) for name in METRICS}
    assert content["best"] == "ours"
    assert content["systems"]["Good"]["setting"] == "quality 1.0"  # by validation
    tested = {(one["system"], one["metric"]) for one in content["differences"]}
    assert tested == {(name, metric) for name in ("Good", "Poor") for metric in METRICS}
    left_out = content["left_out"]
    assert left_out.pop("nothing")
    assert left_out == {
        "Missing": "not installed; pip install no-such-package",
        "Failing": "RuntimeError: no room",
        "None": "ValueError: None has no variant.",
    }
    assert "* Failing: RuntimeError: no room" in text
    assert "| 12,345 |" in text
    for written in (text, file.read_text()):
        assert str(tmp_path) not in written  # paths of this machine are of no use to readers
        assert str(tiny_dir.parent) not in written


@cases("enough, sizes", (1.0, [64]), (60.0, [64, 128, 150]))
def test_encoding_is_timed_until_a_batch_takes_enough(in_this_process, monkeypatch, enough, sizes):
    monkeypatch.setattr(measured, "_ENOUGH_SECONDS", enough)
    clock = iter(range(2 * len(sizes)))  # each batch takes a second
    monkeypatch.setattr(measured.time, "perf_counter", lambda: next(clock))
    seen = []
    speed = measured.texts_per_second(lambda texts: seen.append(len(texts)), ["a text"] * 150)
    assert (seen, speed) == (sizes, sizes[-1] / 1)


@pytest.mark.slow
def test_a_run_answers_by_its_export_but_not_for_another_set(in_this_process, finished, tmp_path):
    (hits,) = ours._search(finished, tmp_path, "")("worda wordd")
    assert len(hits) == DEPTH
    assert ours._indexed_per_second(tmp_path, "") > 0
    measuring = Systems(Work(DataSettings(toy_entities=300), tmp_path / "work", "a set", 20))
    measuring.add_run("theirs", "theirs", finished.path)
    assert "trained on another set" in measuring.left_out["theirs"]


@pytest.mark.slow
@cases("name", *RIVALS)
def test_a_package_answers_with_the_best_documents_of_its_scores(name, monkeypatch):
    if RIVALS[name].missing():
        pytest.skip(RIVALS[name].missing())
    monkeypatch.setattr(static_embedding, "_FEW_STEPS", 1)
    monkeypatch.setattr(static_embedding, "_MORE_STEPS", 2)
    monkeypatch.setattr(fast_text, "_SHUFFLES", 2)
    toy_texts = RivalTexts.of(RetrievalSet.load(ToyWorld("fr", "en", 300, 13)), TextSettings())
    rows = toy_texts.retrieval_set.queries_in("test")[:20]
    for found in RIVALS[name].variants(toy_texts):
        scores = found.rows(rows)
        assert scores.shape == (20, len(toy_texts.documents))
        assert np.isfinite(scores).all()
        for row, of_query in zip(rows, scores, strict=True):
            answer = found.answer(toy_texts.queries[row])
            assert len(set(answer)) == DEPTH
            worst, others = of_query[answer].min(), np.delete(of_query, answer).max()
            assert worst >= others - 1e-5 * abs(others)
        for strange in ("", "never-seen"):
            assert len(found.answer(strange)) == DEPTH
