"""Runs that translate queries and rank within one language."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from tests.training.tiny_set import QUERIES, WORDS, words_of
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.lexical.learning import DICTIONARY_SHARES
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.publishing.export import export_run
from tf_smoothclir.training.retrievers import load_models
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.train import tokenized_set_of, train
from tf_smoothclir.utils.errors import InputError

pytestmark = pytest.mark.usefixtures("without_plots")
PARAMETERS = {"bm25": {"k1", "b"}, "ql": {"mu"}}


@pytest.fixture
def with_human_queries(tiny_dir, tmp_path):
    """The tiny set with queries that people translated, all but the last."""
    directory = shutil.copytree(tiny_dir, tmp_path / "human")
    lines = (
        f"{n}\tTitre\t" + " ".join(f"mot{w}" for w in words_of(n)[:2]) for n in range(QUERIES - 1)
    )
    (directory / "wiki_fr.queries").write_text("\n".join(lines) + "\n")
    return directory


def opened(path):
    """The lexical model of a run, the words of its set, and both vocabularies."""
    run = RunDirectory.load(path)
    settings = run.settings()
    tokenized_set = tokenized_set_of(source_of(settings.data), settings, run, ("test",))
    vocabularies = [tokenized_set.vocabulary(role) for role in ("query", "document")]
    return load_models(run).lexical, LexicalTexts(tokenized_set, 200), *vocabularies


def share_translated(path):
    """How many of word0 ... word8 have the right word as their best translation."""
    model, _, query_words, document_words = opened(path)
    found = model.translation.toarray()
    best = {
        word: document_words[int(found[place].argmax())] for place, word in enumerate(query_words)
    }
    return np.mean([best[f"word{n}"] == f"mot{n}" for n in range(WORDS)])


@pytest.mark.slow
@pytest.mark.parametrize("ranker", ["bm25", "ql"])
@pytest.mark.parametrize("translation", ["table", "nearest"])
def test_a_run_translates_queries_and_says_so(tiny, tmp_path, ranker, translation):
    settings = tiny(retriever="lexical", ranker=ranker, query_translation=translation)
    metrics = train(settings, tmp_path / "run")
    assert metrics["lexical"].keys() == {"ranker", "parameters", "query_translation", "seconds"}
    assert metrics["lexical"]["ranker"] == ranker
    assert metrics["lexical"]["parameters"].keys() == PARAMETERS[ranker]
    assert share_translated(tmp_path / "run") >= 0.7
    report = (tmp_path / "run" / "report.md").read_text()
    assert f"| translation of queries | {translation}, at most" in report
    assert "smoothclir-export" not in report
    assert train(settings, tmp_path / "run")["test"] == metrics["test"]  # finished


def test_words_of_files_with_vectors_translate_by_the_nearest(tiny, tmp_path):
    vectors = np.random.default_rng(1).standard_normal((WORDS, 4))
    for language, stem in (("en", "word"), ("fr", "mot")):
        words = [f"{stem}{n}" for n in range(WORDS)]
        lines = (f"{word} {' '.join(map(str, row))}\n" for word, row in zip(words, vectors))
        (tmp_path / f"{language}.vec").write_text("".join(lines))
    settings = tiny(
        retriever="lexical",
        ranker="bm25",
        query_translation="nearest",
        query_embeddings=str(tmp_path / "en.vec"),
        document_embeddings=str(tmp_path / "fr.vec"),
    )
    train(settings, tmp_path / "run")
    assert share_translated(tmp_path / "run") == 1


def test_a_hybrid_translates_by_the_words_of_its_own_towers(tiny, tmp_path):
    settings = tiny(
        retriever="hybrid",
        ranker="bm25",
        query_translation="nearest",
        dim=16,
        epochs=1,
        learning_rate=1e-6,
        initial_vectors="bilingual",
    )
    metrics = train(settings, tmp_path / "run")
    assert set(metrics["components"]) == {"dense", "lexical"}
    assert share_translated(tmp_path / "run") >= 0.7  # the towers have hardly moved


def test_untranslated_queries_need_no_training_pairs(tiny, tiny_dir, tmp_path):
    directory = shutil.copytree(tiny_dir, tmp_path / "data")
    judged = (directory / "en2fr.rel").read_text().splitlines()
    splits = dict(line.split("\t") for line in (directory / "splits.tsv").read_text().splitlines())
    kept = [line for line in judged if splits[line.split("\t")[0]] != "train"]
    (directory / "en2fr.rel").write_text("\n".join(kept) + "\n")
    with open(directory / "wiki_fr.documents", "a", encoding="utf-8") as file:
        file.write("99\tTitre\tword1 mot2\n")  # one document has a word of queries
    settings = tiny(directory, retriever="lexical", ranker="bm25", query_translation="none")
    train(settings, tmp_path / "run")
    model, texts, query_words, _ = opened(tmp_path / "run")
    scores = model.rows(texts)(np.arange(QUERIES))
    asked = texts.queries.toarray()[:, query_words.index("word1")] > 0
    assert (scores[:, -1] > 0).tolist() == asked.tolist()
    assert not scores[:, :-1].any()
    with pytest.raises(InputError, match="no query of the train split has a judgment"):
        train(tiny(directory, retriever="lexical"), tmp_path / "psq")


def write_dictionary(path, words=range(WORDS)):
    """Words of the set, and new ones."""
    path.write_text("".join(f"word{n} mot{n}\nnew{n} mot{n}\n" for n in words))
    return str(path)


@pytest.mark.parametrize("ranker", ["psq", "bm25"])
def test_a_dictionary_alone_is_enough(tiny, tiny_dir, tmp_path, ranker):
    directory = shutil.copytree(tiny_dir, tmp_path / "data")
    judged = (directory / "en2fr.rel").read_text().splitlines()
    splits = dict(line.split("\t") for line in (directory / "splits.tsv").read_text().splitlines())
    kept = [line for line in judged if splits[line.split("\t")[0]] != "train"]
    (directory / "en2fr.rel").write_text("\n".join(kept) + "\n")
    dictionary = write_dictionary(tmp_path / "en-fr.txt")
    settings = tiny(directory, retriever="lexical", ranker=ranker, dictionary=dictionary)
    metrics = train(settings, tmp_path / "run")
    assert metrics["test"]["full/MRR@10"] > 0.5
    model, _, query_words, _ = opened(tmp_path / "run")
    assert {f"new{n}" for n in range(WORDS)} <= set(query_words)
    if ranker == "psq":
        assert metrics["lexical"]["dictionary"] == 1
        assert model.table.nnz == 2 * WORDS
    else:
        assert share_translated(tmp_path / "run") == 1


@pytest.mark.slow
def test_a_dictionary_is_mixed_with_what_is_learned(tiny, tmp_path):
    dictionary = write_dictionary(tmp_path / "en-fr.txt", range(2))
    settings = tiny(retriever="hybrid", dictionary=dictionary)
    metrics = train(settings, tmp_path / "run")
    assert metrics["lexical"]["dictionary"] in DICTIONARY_SHARES
    run = RunDirectory.load(tmp_path / "run")
    assert run.vocabulary_tokens("query")[-2:] == ["new0", "new1"]
    assert "of the dictionary" in run.report.read_text() or not metrics["lexical"]["dictionary"]


def test_a_bad_dictionary_stops_a_run_before_it_learns(tiny, tmp_path):
    path = tmp_path / "en-fr.txt"
    path.write_text("word1 mot1\nword2\n")
    with pytest.raises(InputError, match=r"en-fr\.txt:2: 1 columns instead of 2"):
        train(tiny(retriever="hybrid", dictionary=str(path)), tmp_path / "run")
    assert not (tmp_path / "run" / "vocabulary").exists()


def test_people_translate_best_and_a_query_without_translation_finds_nothing(
    tiny, with_human_queries, tmp_path, caplog
):
    settings = tiny(
        with_human_queries, retriever="lexical", ranker="bm25", query_translation="human"
    )
    with caplog.at_level("WARNING", logger="absl"):
        train(settings, tmp_path / "run")
    assert "1 queries have no translation" in caplog.text
    model, texts, *_ = opened(tmp_path / "run")
    scores = model.rows(texts)(np.arange(QUERIES))
    assert scores[:-1].any(axis=1).all()
    assert not scores[-1].any()
    assert (scores[np.arange(QUERIES - 1), np.arange(QUERIES - 1)] > 0).all()  # the mates


def test_human_translations_that_are_not_there_are_one_message(tiny, tmp_path):
    settings = tiny(retriever="lexical", ranker="ql", query_translation="human")
    with pytest.raises(InputError, match=r"wiki_fr\.queries: there is no such file"):
        train(settings, tmp_path / "run")


def test_a_run_of_another_ranker_is_not_exported(tiny, tmp_path):
    train(tiny(retriever="lexical", ranker="ql", query_translation="none"), tmp_path / "run")
    with pytest.raises(InputError, match="--ranker=ql cannot be exported"):
        export_run(RunDirectory.load(tmp_path / "run"), tmp_path / "export")
