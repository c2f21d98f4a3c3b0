"""Runs that translate queries and rank within one language."""

import numpy as np
import pytest

from tests.training.fixtures import tokenized_by
from tests.training.test_retrievers import data as data
from tests.training.test_retrievers import without_training_pairs
from tests.training.tiny_set import QUERIES, WORDS, words_of
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.papers.laboratory import translated as translated  # registers it
from tf_smoothclir.publishing.export import export_run
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import load_models
from tf_smoothclir.training.train import train
from tf_smoothclir.utils.errors import InputError

pytestmark = pytest.mark.usefixtures("without_plots")


def opened(path):
    """The lexical model of a run, the words of its set, and both vocabularies."""
    run = RunDirectory.load(path)
    tokenized_set = tokenized_by(run, splits=("test",))
    vocabularies = [tokenized_set.vocabulary(role) for role in ("query", "document")]
    return load_models(run)["translated"], LexicalTexts(tokenized_set, 200), *vocabularies


def share_translated(path):
    """How many of word0 ... word8 have the right word as their best translation."""
    model, _, query_words, document_words = opened(path)
    found = model.translation.toarray()[[query_words.index(f"word{n}") for n in range(WORDS)]]
    return np.mean(found.argmax(axis=1) == [document_words.index(f"mot{n}") for n in range(WORDS)])


def test_a_run_translates_queries_by_its_table_and_says_so(tiny, tmp_path):
    settings = tiny(retriever="translated", ranker="ql", query_translation="table")
    metrics = train(settings, tmp_path / "run")
    assert metrics["lexical"].keys() == {"ranker", "parameters", "query_translation", "seconds"}
    assert metrics["lexical"]["parameters"].keys() == {"mu"}
    assert share_translated(tmp_path / "run") >= 0.7
    assert "smoothclir-export" not in (tmp_path / "run" / "report.md").read_text()


def test_words_of_files_with_vectors_translate_by_the_nearest(tiny, tmp_path):
    vectors = np.random.default_rng(1).standard_normal((WORDS, 4))
    for language, stem in (("en", "word"), ("fr", "mot")):
        lines = (f"{stem}{n} {' '.join(map(str, row))}\n" for n, row in enumerate(vectors))
        (tmp_path / f"{language}.vec").write_text("".join(lines))
    files = {"query_embeddings": f"{tmp_path}/en.vec", "document_embeddings": f"{tmp_path}/fr.vec"}
    nearest = {"retriever": "translated", "ranker": "bm25", "query_translation": "nearest"}
    train(tiny(**nearest, **files), tmp_path / "run")
    assert share_translated(tmp_path / "run") == 1


def test_untranslated_queries_need_no_training_pairs_and_are_not_exported(tiny, data, tmp_path):
    without_training_pairs(data)
    with open(data / "wiki_fr.documents", "a", encoding="utf-8") as file:
        file.write("99\tTitre\tword1 mot2\n")  # one document has a word of queries
    settings = tiny(data, retriever="translated", ranker="bm25", query_translation="none")
    train(settings, tmp_path / "run")
    model, texts, query_words, _ = opened(tmp_path / "run")
    scores = model.rows(texts)(np.arange(QUERIES))
    asked = texts.queries.toarray()[:, query_words.index("word1")] > 0
    assert (scores[:, -1] > 0).tolist() == asked.tolist()
    assert not scores[:, :-1].any()
    with pytest.raises(InputError, match="--retriever=translated cannot be exported"):
        export_run(RunDirectory.load(tmp_path / "run"), tmp_path / "export")
    with pytest.raises(InputError, match="no query of the train split has a judgment"):
        train(tiny(data, retriever="translated"), tmp_path / "table")


def test_a_query_that_nobody_translated_finds_nothing(tiny, data, tmp_path, caplog):
    settings = tiny(data, retriever="translated", ranker="bm25", query_translation="human")
    with pytest.raises(InputError, match=r"wiki_fr\.queries: there is no such file"):
        train(settings, tmp_path / "without")
    lines = [f"{n}\tTitre\tmot{words_of(n)[0]}\n" for n in range(QUERIES - 1)]  # not of the last
    (data / "wiki_fr.queries").write_text("".join(lines))
    with caplog.at_level("WARNING", logger="absl"):
        train(settings, tmp_path / "run")
    assert "1 queries have no translation" in caplog.text
    model, texts, *_ = opened(tmp_path / "run")
    scores = model.rows(texts)(np.arange(QUERIES))
    assert not scores[-1].any()
    assert (np.diag(scores)[:-1] > 0).all()  # the mates
