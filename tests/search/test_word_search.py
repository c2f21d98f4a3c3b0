"""Search by words, and by words and vectors: it ranks as evaluation does, and says why."""

import dataclasses
import functools
import json
import math
import subprocess
import sys

import numpy as np
import pytest

from tests.cases import cases
from tests.published import grades_of_hits
from tests.search.test_dense_search import the_same
from tests.training.tiny_set import DOCUMENTS
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.encoder.tokenizer import tokens_of
from tf_smoothclir.families.lexical import word_ranker as ranker_of
from tf_smoothclir.hybrid.fusion import Fusion
from tf_smoothclir.index import builder, document_index, lexical_half, vector_index
from tf_smoothclir.index.ranker import Ranker
from tf_smoothclir.lexical.feedback import FEW_TERMS, TERMS, Similarity
from tf_smoothclir.protocols.text_search import QueryReading
from tf_smoothclir.publishing import export_directory, exported_models
from tf_smoothclir.search import query_reading, text_search, word_explanation, word_ranker
from tf_smoothclir.search.opening import open_search
from tf_smoothclir.text.vocabulary import read_vocabulary
from tf_smoothclir.training.run_data import tokenized_set_of
from tf_smoothclir.training.run_models import RunModels, load_cut_points, load_models
from tf_smoothclir.utils.errors import InputError

RETRIEVERS = "dense", "lexical", "hybrid"
QUERIES = ["wordb worde", "wordi unheard", "motd worda worda", "nothing", ""]
_SEARCH = """
import atexit, sys
from export import search
atexit.register(lambda: print("tensorflow" in sys.modules, file=sys.stderr))
search.run()
"""


def fused(share, feedback=0.0):
    return Fusion(share, 2.0, 0.25, feedback)


@pytest.fixture(scope="module")
def opened(ranking_exports, tmp_path_factory):
    """`opened(name, retriever)` searches the export of a run by an index that it builds once."""
    indexes = tmp_path_factory.mktemp("indexes")

    @functools.lru_cache
    def opened(name, retriever="auto"):
        return open_search(ranking_exports[name], indexes / name, the_same, retriever=retriever)

    opened.indexes = indexes
    return opened


@pytest.fixture(scope="module")
def evaluated(ranking_runs):
    return lambda name, *more, **changes: ranked_by_evaluation(ranking_runs[name], *more, **changes)


def ranked_by_evaluation(run, retriever, **changes):
    """The texts of all queries, and the ids and scores that evaluation gives them."""
    models, settings = load_models(run), run.settings()
    source = source_of(settings.data)
    tokenized_set = tokenized_set_of(source, settings, run, SPLITS)
    retrieval_set = tokenized_set.retrieval_set
    found = RunModels(settings, {**models, **changes}).retrievers(tokenized_set)[retriever]
    rankings = list(found.rank(np.arange(len(retrieval_set.query_ids)), DOCUMENTS))
    ids = [retrieval_set.document_ids[row] for r in rankings for row in r.document_rows.ravel()]
    scores = np.concatenate([ranking.scores for ranking in rankings])
    return [text.text for text in source.queries()], np.reshape(ids, scores.shape).tolist(), scores


def check_ranks(search, texts, ids, scores):
    for hits, expected, own in zip(search.search(texts, DOCUMENTS), ids, scores, strict=True):
        # Documents that share nothing with the query are no hits.
        expected = [id_ for id_, score in zip(expected, own) if score]
        own = own[own != 0]
        np.testing.assert_allclose([hit.score for hit in hits], own, rtol=1e-5, atol=1e-6)
        keys = {id_: round(float(score), 3) for id_, score in zip(expected, own)}
        assert [keys[hit.id] for hit in hits] == [keys[id_] for id_ in expected[: len(hits)]]
        assert len({hit.id for hit in hits}) == len(hits)
        assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))


@cases("name, retriever", *((name, name) for name in RETRIEVERS), ("hybrid", "lexical"))
def test_it_ranks_as_evaluation_does(opened, evaluated, name, retriever):
    texts, ids, scores = evaluated(name, retriever)
    search = opened(name, retriever)
    check_ranks(search, texts, ids, scores)
    if retriever == "lexical":  # nothing but sums of the same float32 numbers: ties too are equal
        found = [[hit.id for hit in hits] for hits in search.search(texts, DOCUMENTS)]
        assert found == [own[: len(ranked)] for own, ranked in zip(ids, found)]
    assert search.search(["", "zebra ?", "wordb"], 3)[:2] == [[], []]
    answers = search.search(["", "zebra ?", "motd", "wordb zebra"], 1)
    assert [answer.reading for answer in answers] == [
        QueryReading("nothing"),
        QueryReading("nothing", ("zebra",)),
        QueryReading("nothing", ("motd",)) if name == "dense" else QueryReading("spelling"),
        QueryReading("words", ("zebra",)),
    ]


@pytest.fixture(scope="module")
def hybrid(opened, ranking_exports, tmp_path_factory):
    search, path = opened("hybrid"), ranking_exports["hybrid"]
    models = exported_models.load_exported_models(path)
    lexical, manifest = models["lexical"], models.manifest
    with_feedback = dataclasses.replace(lexical, fusion=Fusion(0.5, 1.0, 1.0, feedback=1.0))
    halves = [builder.export_halves(path)[0][0], lexical_half.LexicalHalf(with_feedback)]
    index_dir = tmp_path_factory.mktemp("hybrid") / "index"
    builder.build_index(index_dir, source_of(manifest.data), halves, manifest)
    index = document_index.DocumentIndex(index_dir)
    encode = query_reading.by_tower(export_directory.load_part(path, "query").model)

    def hybrid(fusion):
        parts = dataclasses.replace(lexical, fusion=fusion)
        return text_search.TextSearch(search.collection, ranker_of("hybrid", parts, index, encode))

    return hybrid


@cases(
    "fusion", *(fused(dense, words) for dense in (0.0, 0.01, 0.3, 0.9, 1.0) for words in (0.0, 7.0))
)
def test_any_fusion_ranks_as_evaluation_does(hybrid, evaluated, fusion, monkeypatch):
    expected = evaluated("hybrid", "hybrid", hybrid=fusion)
    tries = (1, (1, 1), (2, 2)), (100, (8, 1000), (64, 8000)), (1, (8, 3), (9, 30))
    for first, *bounding in tries:
        monkeypatch.setattr(word_ranker, "_FIRST", first)
        monkeypatch.setattr(word_ranker, "_BOUNDING", bounding)
        check_ranks(hybrid(fusion), *expected)


@cases("share", 0.0, 0.02, 0.4)
@cases("fusion", fused(0.3, 7.0), fused(0.0, 7.0))
def test_a_mask_leaves_the_ranking_of_the_others(hybrid, monkeypatch, fusion, share):
    monkeypatch.setattr(word_ranker, "_FIRST", 1)
    monkeypatch.setattr(word_ranker, "_BOUNDING", ((8, 4), (64, 4)))
    search = hybrid(fusion)
    queries = ["wordb worde", "wordi", "motd worda worda"]
    mask = np.random.default_rng(7).random(DOCUMENTS) < share
    kept = {search.ranker.index.documents[place].id for place in np.flatnonzero(mask)}
    whole = search.search(queries, DOCUMENTS)
    monkeypatch.setattr(search.ranker.index, "mask", lambda filter: mask)
    for all_, hits in zip(whole, search.search(queries, 5, "of the mask"), strict=True):
        expected = [hit for hit in all_ if hit.id in kept][:5]
        assert [hit.id for hit in hits] == [hit.id for hit in expected]
        scores = [hit.score for hit in expected]
        assert [hit.score for hit in hits] == pytest.approx(scores, rel=1e-6)


def test_vectors_of_documents_that_cannot_be_among_the_best_are_not_read(hybrid, monkeypatch):
    search = hybrid(fused(0.3))
    (expected,) = search.search(["wordi"], 3)
    read = set()
    for method in (Ranker.about, Ranker.scores):

        def counted(ranker, query, positions, method=method):
            read.update(positions.tolist())
            return method(ranker, query, positions)

        monkeypatch.setattr(Ranker, method.__name__, counted)
    monkeypatch.setattr(word_ranker, "_FIRST", 1)
    monkeypatch.setattr(word_ranker, "_BOUNDING", ((8, 4), (64, 4)))
    assert search.search(["wordi"], 3) == [expected]
    assert 3 <= len(read) < DOCUMENTS / 2


def test_what_ranks_by_words_alone_takes_no_memory_for_vectors(opened, monkeypatch):
    opened("hybrid")  # builds the index
    opened.cache_clear()
    monkeypatch.setattr(vector_index.FlatIndex, "__init__", None)
    (hits,) = opened("hybrid", "lexical").search(["wordb worde"], 3)
    assert len(hits) == 3


@cases(
    "name, arguments, reason",
    ("dense", {"retriever": "lexical"}, "--retriever=lexical: .*no impacts"),
    ("dense", {"retriever": "hybrid"}, "--retriever=hybrid: .*no impacts"),
    ("lexical", {"retriever": "dense"}, "--retriever=dense: .*no vectors"),
    ("lexical", {"retriever": "hybrid"}, "--retriever=hybrid: .*no vectors"),
)
def test_what_is_not_there_is_refused(opened, ranking_exports, name, arguments, reason):
    opened(name)  # builds the index
    with pytest.raises(InputError, match=reason):
        open_search(ranking_exports[name], opened.indexes / name, the_same, **arguments)


@cases("name", "dense", "lexical", "hybrid")
def test_hits_have_the_grades_of_the_cut_points_of_the_run(opened, ranking_runs, name):
    cut_points = load_cut_points(ranking_runs[name], load_models(ranking_runs[name]))[name]
    texts = [text.text for text in source_of(ranking_runs[name].settings().data).queries()]
    vocabulary = {*read_vocabulary(ranking_runs[name].vocabulary / "query.txt")}
    vocabulary |= {*read_vocabulary(ranking_runs[name].vocabulary / "document.txt")}
    grades = set()
    for text, hits in zip(texts, opened(name).search(texts, 8), strict=True):
        found = [hit.grade for hit in hits]
        own = cut_points.scores, cut_points.shares
        known = 1 if name == "dense" else sum(word in vocabulary for word in tokens_of(text))
        factor = cut_points.of_words(known)
        assert not hits or found == grades_of_hits([hit.score for hit in hits], own, factor)
        grades.update(found)
    assert len(grades) > 1 or name == "dense"  # whose hits are hardly better than chance


@cases("role", "document", "query")
@cases("name", "lexical", "hybrid")
def test_explanations_add_up_to_the_scores(opened, name, role):
    search = opened(name)
    for query, hits in zip(QUERIES, search.search(QUERIES, 6), strict=True):
        for hit, explanation in zip(hits, search.explain(query, hits, role), strict=True):
            assert explanation.score == pytest.approx(hit.score, rel=1e-5, abs=1e-5)
            words = math.fsum(word.share for word in explanation.words)
            assert words + explanation.remainder == pytest.approx(explanation.of_words, abs=1e-3)
            # Each word that is left out has less than a hundredth; a text has five at most.
            assert abs(explanation.remainder) < 0.05 * abs(explanation.of_words) + 1e-3
            for word in explanation.words:
                met = sum(match.share for match in word.matches)
                assert 1 <= len(word.matches) <= 3
                assert word.share > met - 1e-5
                assert len(word.matches) == 3 or word.share == pytest.approx(met)
                assert all(0 < match.probability <= 1 + 1e-6 for match in word.matches)
                text, other = (query, hit.text) if role == "query" else (hit.text, query)
                assert word.word in text.split()
                assert all(match.word in other.split() for match in word.matches)


def test_a_hit_is_explained_by_the_words_that_translate_each_other(opened):
    search = opened("lexical")
    (hits,) = search.search(["wordb worde"], 1)
    (explanation,) = search.explain("wordb worde", hits)
    best = {word.word: word.matches[0] for word in explanation.words}
    for word, translation in (("motb", "wordb"), ("mote", "worde")):
        assert best[word].word == translation
        assert best[word].probability > 0.2


def test_common_words_are_no_evidence_beside_rarer_ones(opened, monkeypatch):
    monkeypatch.setattr(word_explanation, "_TIMES", 0.5)  # of nine words, none stands out by more
    search = opened("lexical")
    (hits,) = search.search(["worde worda worda"], 1)
    (explanation,) = search.explain("worde worda worda", hits, "query")
    assert [word.word for word in explanation.words] == ["worde"]
    assert explanation.remainder > 1
    # But of a text that has the translation of such a word alone, it is the reason.
    (explanation,) = search.explain(
        "worde worda worda", [dataclasses.replace(hits[0], text="mota")], "query"
    )
    assert [word.word for word in explanation.words] == ["worda"]
    assert explanation.remainder == pytest.approx(0, abs=1e-3)


def test_few_words_bound_the_similarity_to_the_first_hits(hybrid, monkeypatch):
    search, terms = hybrid(fused(0.0, 7.0)), []
    (ranked,) = search.search(["wordb worde"], DOCUMENTS)
    of_all = Similarity.at_most
    monkeypatch.setattr(Similarity, "at_most", lambda own, n: terms.append(n) or of_all(own, n))
    for depth in (1, 4, DOCUMENTS):
        assert search.search(["wordb worde"], depth) == [ranked[:depth]]
    assert terms == [FEW_TERMS, FEW_TERMS, TERMS]


def test_what_towers_and_feedback_add_is_told_apart(hybrid):
    (hits,) = hybrid(fused(0.3, 7.0)).search(["wordb worde"], 4)
    both, vectors = (hybrid(f).explain("wordb worde", hits) for f in (fused(0.3, 7.0), fused(0.3)))
    assert hits[0].constant == pytest.approx(both[0].feedback)
    assert hits[0].shown_score == pytest.approx(both[0].without(hits[0].constant).score)
    for explanation, without in zip(both, vectors, strict=True):
        assert 0 < explanation.feedback <= 7 + 1e-4
        assert without.feedback == 0
        assert without.towers == explanation.towers != 0
        assert without.score == pytest.approx(explanation.score - explanation.feedback, abs=1e-4)


@cases("retriever", "dense", "lexical", "hybrid")
def test_a_search_by_words_or_averages_loads_no_tensorflow(opened, ranking_exports, retriever):
    opened("hybrid")  # builds the index
    command = [sys.executable, "-c", _SEARCH, "--query=zebra", "--query=wordb worde", "--json"]
    command += [f"--export_dir={ranking_exports['hybrid']}", f"--retriever={retriever}"]
    command += [f"--index_dir={opened.indexes / 'hybrid'}", "--explain"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "False"
    nothing, found = (json.loads(line)["results"] for line in done.stdout.splitlines())
    assert (len(nothing), len(found)) == (0, 10)
    assert (found[0]["grade"] is None) == (retriever == "lexical")  # words of a hybrid alone
    explanation = found[0]["explanation"]
    parts = {"score", "words", "remainder", "towers", "encoder", "feedback", "reranker", "pairs"}
    assert parts == explanation.keys()
    matches = explanation["words"][0]["matches"]
    assert bool(matches) == (retriever != "dense")
    assert all({"word", "probability", "share"} == match.keys() for match in matches)
