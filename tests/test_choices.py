"""What is chosen: never by the test split, and the best of what there is."""

import dataclasses
import re
import shutil

import numpy as np
import pytest

from tests.lexical.helpers import tokenized
from tests.training.tiny_set import QUERIES, SPLITS
from tf_smoothclir.hybrid.fusion import Fusion
from tf_smoothclir.hybrid.learning import _Learner as FusionLearner
from tf_smoothclir.lexical import ranker_learning
from tf_smoothclir.lexical.learning import FEEDBACK_WEIGHTS, _Learner, learn_lexical_model
from tf_smoothclir.lexical.ranker_learning import PARAMETERS, learn_translated_queries
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.lexical.translated_queries import TranslatedQueries
from tf_smoothclir.lexical.validation import Validation
from tf_smoothclir.settings.presets import preset_settings
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.train import train

TEST_QUERIES = [number for number in range(QUERIES) if SPLITS[number % len(SPLITS)] == "test"]


def with_rubbish_for(queries, data):
    """The judgments of some queries go to others of them, with the grades the other way round.

    The same documents are somebody's mates: pseudo-queries are for documents that are nobody's.
    """
    lines = [line.split("\t") for line in (data / "en2fr.rel").read_text().splitlines()]
    others = dict(zip(map(str, queries), map(str, [*queries[1:], queries[0]])))
    lines = [[others.get(query, query), *rest] for query, *rest in lines]
    (data / "en2fr.rel").write_text("".join("\t".join(line) + "\n" for line in lines))
    return data


def learned_files(path):
    """Path -> content of all that a run learned and chose; seconds, which vary, are left out."""
    run = RunDirectory.load(path)
    learned = [run.vocabulary, run.lexical, run.reranker, run.pseudo_queries, run.checkpoints]
    files = [file for folder in learned for file in folder.rglob("*") if file.is_file()]
    kept = {}
    for file in [*files, run.fusion, run.cut_points]:
        content = file.read_bytes()
        if file.suffix == ".json":
            content = re.sub(rb'"(seconds|modified|digest|mtime\w*)": [^,}]*', b"", content)
        if "manifest" not in file.name and "progress" not in file.name:
            kept[str(file.relative_to(path))] = content
    return kept


@pytest.mark.usefixtures("without_plots")
def test_nothing_is_chosen_by_the_test_split(tiny, tiny_dir, tmp_path):
    """Hazard: a choice that reads the test split makes every figure too good."""
    rubbish = with_rubbish_for(TEST_QUERIES, shutil.copytree(tiny_dir, tmp_path / "data"))
    settings = {"retriever": "hybrid", "reranker": "late_interaction", "rerank_depth": 8}
    settings |= {"batching": "in_batch", "hard_negatives": 2, "pseudo_queries": 18}
    metrics = {}
    for name, data in (("true", tiny_dir), ("rubbish", rubbish)):
        metrics[name] = train(tiny(data, **settings), tmp_path / name)
    true, other = (learned_files(tmp_path / name) for name in metrics)
    assert {name for name in true if true[name] != other.get(name)} == set()
    assert true.keys() == other.keys()
    assert {"lexical", "reranker", "checkpoints", "pseudo_queries"} <= {
        name.split("/")[0] for name in true
    }
    assert metrics["true"]["validation"] == metrics["rubbish"]["validation"]
    assert metrics["true"]["test"] != metrics["rubbish"]["test"]


@pytest.fixture(scope="module")
def texts(tiny):
    return LexicalTexts(tokenized(tiny()), tiny().text.max_query_tokens)


@pytest.fixture(scope="module")
def model(texts):
    return learn_lexical_model(texts, seed=13)


@pytest.mark.parametrize("best", range(len(FEEDBACK_WEIGHTS)))
def test_the_best_weight_of_feedback_is_taken(texts, model, monkeypatch, best):
    qualities = [0.5 + 0.1 * (place == best) for place in range(len(FEEDBACK_WEIGHTS))]
    monkeypatch.setattr(Validation, "of_variants", lambda self, variants: qualities)
    assert _Learner(texts, 13, None).best_feedback(model) == FEEDBACK_WEIGHTS[best]


@pytest.mark.parametrize("best", [(0, 2), (3, 0)])
def test_each_fusion_has_its_best_weight_of_feedback(texts, monkeypatch, best):
    shape = len(best), len(FEEDBACK_WEIGHTS)
    qualities = [0.5 + 0.1 * (best[row] == place) for row, place in np.ndindex(*shape)]
    learner = FusionLearner(texts, *[lambda rows: np.ones((len(rows), 30), np.float32)] * 2)
    monkeypatch.setattr(Validation, "of_variants", lambda self, variants: qualities)
    fusions = [Fusion(0.0, 1.0, 1.0), Fusion(0.3, 1.0, 1.0)]
    found = [fusion.feedback for fusion in learner.best_weights(fusions)]
    assert found == [FEEDBACK_WEIGHTS[place] for place in best]


@pytest.mark.parametrize(
    ("gain", "chosen"),
    [
        (0.2, 0.3),
        (0.0, 0.0),
        ([1.0, -0.9] * 10, 0.0),  # 0.05 on average with a standard error of 0.2: chance
    ],
)
def test_a_hybrid_ranks_only_if_it_is_better_than_its_better_half(texts, monkeypatch, gain, chosen):
    learner = FusionLearner(texts, *[lambda rows: np.ones((len(rows), 30), np.float32)] * 2)
    fused = dataclasses.replace(learner._lexical_alone, share=0.3)
    # Of the lexical model, of the fusion, of the towers: three metrics of 20 queries.
    each = [np.zeros(20), np.resize(gain, 20), np.full(20, -0.1)]
    measured = [0.5 + np.tile(gains[:, np.newaxis], 3) for gains in each]
    monkeypatch.setattr(Validation, "per_query", lambda self, variants: measured)
    assert learner.choose([learner._lexical_alone, fused]).share == chosen


@pytest.mark.parametrize(
    ("ranker", "best"), [("bm25", {"k1": 2.0, "b": 0.25}), ("ql", {"mu": 30.0})]
)
def test_the_best_parameters_of_a_ranker_are_taken(texts, monkeypatch, ranker, best):
    monkeypatch.setattr(TranslatedQueries, "rows", lambda model, texts: model.ranker)

    def quality(validation, ranker):
        return -sum(abs(getattr(ranker, name) - value) for name, value in best.items())

    monkeypatch.setattr(Validation, "__call__", quality)
    assert all(value in PARAMETERS[ranker][name] for name, value in best.items())
    found = learn_translated_queries(texts, ranker, ranker_learning.NONE, seed=13)
    assert dataclasses.asdict(found.ranker).items() >= best.items()


def test_words_are_weighed_by_queries_that_their_table_has_not_seen(texts, model, monkeypatch):
    """Hazard: a table knows the words of the queries that it was learned from too well."""
    learner, seen, weighed = _Learner(texts, 13, None), [], []
    table, candidates = learner._pairs.table, learner._hard_candidates

    def learned_from(profile, lower_grades, queries):
        seen.append(set(queries.tolist()))
        return table(profile, lower_grades, queries)

    def weighed_by(rows, *rest):
        weighed.append(set(rows.tolist()))
        return candidates(rows, *rest)

    monkeypatch.setattr(learner._pairs, "table", learned_from)
    monkeypatch.setattr(learner, "_hard_candidates", weighed_by)
    learner.word_weights(model)
    assert len(seen) == len(weighed) > 1
    for of_table, of_weights in zip(seen, weighed):
        assert of_table
        assert of_weights
        assert not of_table & of_weights
    assert set.union(*weighed) == set(texts.retrieval_set.queries_in("train").tolist())


def test_texts_that_are_cut_elsewhere_have_tokens_of_their_own(tiny):
    """Hazard: the cache answers with the tokens of another length."""
    lengths = {most: tokenized(tiny(max_query_tokens=most)).tokens("query") for most in (200, 1)}
    assert max(lengths[200].lengths) == 2
    assert max(lengths[1].lengths) == 1


def test_the_paper_trains_on_as_many_queries_as_it_says():
    assert preset_settings("paper").data.max_queries == 25_000  # of each language: Table 1
