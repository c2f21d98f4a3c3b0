"""Search of an export: vectors, explanations, what is missing is built, mixed parts refused."""

import dataclasses
import json
import math
import shutil
import types
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from tests.cases import cases
from tests.published import EPSILON
from tests.training import test_run_directory, tiny_set
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.encoder.encoder import TokenVectors
from tf_smoothclir.families.dense import training_query_vectors
from tf_smoothclir.index import builder, document_collections
from tf_smoothclir.protocols.text_search import Explanation, QueryReading, WordShare
from tf_smoothclir.publishing.exported_models import load_exported_models
from tf_smoothclir.search import opening, query_reading, text_search, word_ranker
from tf_smoothclir.search.explanation import SavedTower, explain
from tf_smoothclir.storage import files, folder
from tf_smoothclir.text.tokens import TextEncoder
from tf_smoothclir.training.tasks import load_model
from tf_smoothclir.utils.errors import InputError

SCORES = np.array([0.5, 0, -0.25, 0, 0, -0.5, 0.25, 0], np.float32)
DIM = 6
QUERY = "wordb worde wordc"


class Half:
    """Ranks by the scores above, times a query of one number."""

    def rank(self, vectors, depth, mask):
        for (factor,) in vectors:
            allowed = np.arange(len(SCORES)) if mask is None else np.flatnonzero(mask)
            order = np.argsort(-factor * SCORES[allowed], kind="stable")[:depth]
            yield allowed[order], factor * SCORES[allowed][order]


def ranker_of(kind, factor):
    def rank(depth, mask):
        return next(Half().rank([[factor]], depth, mask))

    ranker = kind.__new__(kind)
    ranker._half, ranker.vectors = Half(), {"dense"}
    ranker._asked = lambda batch, place: types.SimpleNamespace(rank=rank)
    ranker._hashes, ranker._score = np.arange(len(SCORES)), lambda queries: [factor * SCORES]
    return ranker


@cases("kind", text_search.DenseRanker, word_ranker.WordRanker, text_search.TextRanker)
@cases(
    "factor, depth, mask, expected",
    (1, 2, None, [0, 6]),
    (1, 3, None, [0, 6, 2]),  # the third is the seventh of all
    (1, 4, None, [0, 6, 2, 5]),
    (1, 9, None, [0, 6, 2, 5]),
    (-1, 3, None, [5, 2, 6]),
    (1, 2, SCORES <= 0, [2, 5]),
    (0, 2, None, []),
)
def test_an_empty_document_takes_no_place_of_a_hit(kind, factor, depth, mask, expected):
    """Hazard: a score of 0 is no hit, but stands before those below 0; there were fewer hits."""
    batch = query_reading.QueryBatch(["q"], [types.SimpleNamespace()], np.float32([[factor]]))
    ((positions, scores),) = ranker_of(kind, factor).rank(batch, depth, mask)
    assert positions.tolist() == expected
    np.testing.assert_array_equal(scores, factor * SCORES[expected])


def example(words=7, scale=1.0, epsilon=0.5):
    """A text with `words` words, and a smooth-normalised vector of the other side."""
    generator = np.random.default_rng(0)
    vectors, other = scale * generator.normal(size=(words, DIM)), generator.normal(size=DIM)
    words = [f"w{n}" for n in range(words)]
    return TokenVectors(words, vectors), other / (np.linalg.norm(other) + epsilon)


def shares_of(explanation):
    return {word.word: word.share for word in explanation.words}


@cases("scale", 1e-3, 0.1, 1.0, 10.0)
@cases("epsilon", 0.0, 0.25, 1.0)
def test_shares_and_remainder_sum_up_to_the_score(scale, epsilon):
    text, other = example(scale=scale, epsilon=epsilon)
    found = explain(text, other, epsilon)
    total = math.fsum([*shares_of(found).values(), found.remainder])
    assert total == pytest.approx(found.score, abs=1e-15)
    pooled = np.tanh(text.vectors.mean(axis=0))
    expected = pooled @ other / (np.linalg.norm(pooled) + epsilon)
    assert found.score == pytest.approx(expected, abs=1e-14)


def test_share_is_the_slope_by_finite_differences():
    # Of the numerator, when the word is moved in or out of the mean; the length is held.
    text, other = example(scale=1.5)
    mean, step = text.vectors.mean(axis=0), 1e-6
    length = np.linalg.norm(np.tanh(mean)) + 0.5
    shares = shares_of(explain(text, other, 0.5))
    for word in range(7):
        moved = [np.tanh(mean + sign * step * text.vectors[word] / 7) @ other for sign in (1, -1)]
        slope = (moved[0] - moved[1]) / (2 * step) / length
        assert shares[f"w{word}"] == pytest.approx(slope, rel=1e-6)


def test_each_word_stands_once_with_all_its_occurrences_largest_first():
    text, other = example(words=3)
    again = TokenVectors(["w0", "w1", "w2", "w0", "w1", "w0"], text.vectors[[0, 1, 2, 0, 1, 0]])
    found = explain(again, other, 0.5)
    names = [f"{word}-{n}" for n, word in enumerate(again.words)]
    apart = shares_of(explain(again._replace(words=names), other, 0.5))
    expected = {w: sum(v for k, v in apart.items() if k.startswith(w)) for w in ("w0", "w1", "w2")}
    assert shares_of(found) == pytest.approx(expected)
    values = [word.share for word in found.words]
    assert values == sorted(values, reverse=True)


@cases("epsilon", 0.0, 1.0)
def test_without_a_word_or_of_length_0_there_is_no_share(epsilon):
    other = np.ones(DIM) / 4
    no_word = TokenVectors([], np.zeros((0, DIM)))
    assert explain(no_word, other, epsilon) == Explanation(0.0, (), 0.0)
    found = explain(TokenVectors(["a"], np.zeros((1, DIM))), other, epsilon)
    assert found == Explanation(0.0, (WordShare("a", 0.0),), 0.0)


def test_a_tower_must_know_words():
    with pytest.raises(InputError, match="only average pooling can"):
        SavedTower(tf.Module(), 0.5).token_vectors(["an apple"])


def the_same(trained_on):
    return trained_on


@pytest.fixture(scope="module")
def index_dir(export_dir, tmp_path_factory):
    path = tmp_path_factory.mktemp("index") / "index"
    opening.open_search(export_dir, path, the_same)
    return path


@pytest.fixture(scope="module")
def search(export_dir, index_dir):
    return opening.open_search(export_dir, index_dir, the_same)


def test_queries_of_a_batch_are_answered_as_alone_and_without_a_known_word_by_nothing(search):
    unknown = {"": (), " \t": (), "zebra": ("zebra",), "unheard ÄÖ!": ("unheard", "äö")}
    queries = [QUERY, *unknown, "wordi"]
    together = search.search(queries, 5)
    assert together == [search.search([query], 5)[0] for query in queries]
    assert [len(hits) for hits in together] == [5, 0, 0, 0, 0, 5]
    answers = search.search([*unknown], 1)
    assert [answer.reading for answer in answers] == [
        QueryReading("nothing", words) for words in unknown.values()
    ]
    assert search.search([], 5) == []


def test_index_is_enough_if_its_collection_changed_or_went(export_dir, tiny_run, tmp_path, caplog):
    data = shutil.copytree(tiny_run.settings().data.data_dir, tmp_path / "data")
    settings = dataclasses.replace(tiny_run.settings().data, data_dir=str(data))
    path, collection = tmp_path / "index", source_of(settings)
    builder.build_index(path, collection, *builder.export_halves(export_dir), data=settings)
    opening.open_search(export_dir, path, the_same)
    assert "has changed" not in caplog.text
    with open(data / "wiki_fr.documents", "a", encoding="utf-8") as file:
        file.write(f"{tiny_set.DOCUMENTS}\tNouveau\tmotb motb\n")
    search = opening.open_search(export_dir, path, the_same)
    assert "data-en-fr has changed since it was indexed" in caplog.text
    assert "smoothclir-index --update" in caplog.text
    assert len(search.search([QUERY], 1000)[0]) == tiny_set.DOCUMENTS - 1  # one is empty
    shutil.rmtree(data)
    assert len(opening.open_search(export_dir, path, the_same).search([QUERY], 3)[0]) == 3


def test_index_of_an_earlier_training_is_refused_and_named(commands, export_dir, tmp_path):
    export = shutil.copytree(export_dir, tmp_path / "an export")
    (tmp_path / "own.tsv").write_text("a\tmotb motc\nb\tmotd\n")
    collection = document_collections.open_files(tmp_path / "own.tsv", "--collection")
    builder.build_index(export / "index", collection, *builder.export_halves(export))
    with pytest.raises(InputError, match=r"of another collection, .*own\.tsv"):  # no toy world
        opening.open_search(export, "", lambda data: dataclasses.replace(data, query_language="de"))
    for part in ("query_tower", "document_tower"):
        path = shutil.copytree(export / part / "1", export / part / "2")
        kind = files.read_json(path / folder.MANIFEST)["kind"]
        facts = {**folder.Folder.read(path, kind).facts, "version": 2, "pair_id": "f" * 64}
        folder.write_manifest(path, kind, facts)
    before = test_run_directory.snapshot(export)
    reason = r"different training run.*--version=1 to .* index of .*own\.tsv again"
    for version, match in ((None, reason), (3, "there is no complete version 3")):
        with pytest.raises(InputError, match=match):
            opening.open_search(export, "", the_same, version=version)
    flags, more = [f"--export_dir={export}", "--version=1"], f"--collection={tmp_path}/own.tsv"
    commands.run("export.build_index", *flags, more, "--update", check=True)
    assert "motb" in commands.run("export.search", *flags, f"--query={QUERY}", check=True).stdout
    assert test_run_directory.snapshot(export) == before


def test_queries_of_the_run_measure_the_recall_if_there(export_dir, tiny_run, monkeypatch, caplog):
    texts = [text.text for text in source_of(tiny_run.settings().data).queries()]
    encoder = TextEncoder(tiny_run.vocabulary / "query.txt", 200)
    raw = load_model(tiny_run).query_tower(encoder(tf.constant(texts))).numpy()
    expected = raw / (np.linalg.norm(raw, axis=1, keepdims=True) + EPSILON)
    models = load_exported_models(export_dir)
    asked = models["dense"], models.manifest.data
    np.testing.assert_allclose(training_query_vectors(*asked), expected, atol=1e-6)
    empty = mock.Mock(**{"queries.return_value": []})
    gone = mock.Mock(side_effect=[empty, InputError("data: there is no such directory")])
    monkeypatch.setattr("tf_smoothclir.families.dense.source_of", gone)
    assert training_query_vectors(*asked) is training_query_vectors(*asked) is None
    assert "no such directory" in caplog.text


def test_command_answers_in_json_as_a_search_does(commands, export_dir, index_dir, search):
    queries = [QUERY, "", "unheard ÄÖ", "wordb caf\ufffd"]
    typed = "".join(f"{query}\n" for query in queries).replace("\ufffd", "\udce9")  # no UTF-8
    flags = [f"--export_dir={export_dir}", f"--index_dir={index_dir}", "--json", "--top_k=5"]
    done = commands.run("export.search", *flags, stdin=typed, check=True)
    given = commands.run("export.search", *flags, f"--query={QUERY}")
    assert done.stdout.startswith(given.stdout)
    nothing = commands.run("export.search", *flags, f"--query={QUERY}", "--filter=id = ''")
    assert json.loads(nothing.stdout)["results"] == []
    assert "The filter holds for no document" in nothing.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["query"] for answer in answers] == queries
    assert [answer["evidence"] for answer in answers] == ["words", "nothing", "nothing", "words"]
    for answer, results in zip(answers, search.search(queries, 5), strict=True):
        expected = [dataclasses.asdict(result) for result in results]
        scores = [result.pop("score") for result in answer["results"]]
        assert scores == pytest.approx([result.pop("score") for result in expected], abs=1e-6)
        assert answer["results"] == expected
