"""A run begins with another one (`--init_from`): new words come to those that it has."""

import shutil

import numpy as np
import pytest

import tf_smoothclir as sc
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.training.initial_run import check_begins_with_words
from tf_smoothclir.training.run_directory import RunDirectory


def language(letters, seed):
    """A set of English queries of 40 words, and of documents whose words have other letters."""
    random = np.random.default_rng(seed)
    english = ["".join(word) for word in np.random.default_rng(0).choice(list("bcdfaeio"), (40, 6))]
    foreign = ["".join(word) for word in random.choice(list(letters), (40, 6))]
    said = [random.choice(40, 6, replace=False) for _ in range(90)]
    queries = {f"q{n}": " ".join(english[one] for one in words) for n, words in enumerate(said)}
    documents = {f"d{n}": " ".join(foreign[one] for one in words) for n, words in enumerate(said)}
    return {
        "queries": queries,
        "documents": documents,
        "judgments": [(f"q{n}", f"d{n}", 1) for n in range(90)],
        "splits": {f"q{n}": ("train", "train", "validation", "test")[n % 4] for n in range(90)},
    }


@pytest.mark.parametrize("shared_vocabulary", [True, False])
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


@pytest.mark.slow
@pytest.mark.parametrize("shared_vocabulary", [True, False])
def test_towers_keep_the_vectors_of_known_words(tmp_path, shared_vocabulary):
    first, second = language("klmnuöü", 1), language("pqrstwy", 2)
    settings = {"cache_dir": tmp_path / "cache", "thresholds": (0.5,), "epochs": 1}
    ngrams = {"ngram_buckets": 10_000, "ngram_rows_per_word": 2}
    form = {"preset": "fast", "dim": 64, "shared_vocabulary": shared_vocabulary, **ngrams}
    before = sc.train(**first, **form, **settings, output_dir=tmp_path / "first")
    still = {"learning_rate": 1e-9}  # a step of length nearly 0
    after = sc.train(**second, **settings, **still, init_from=before.path)
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
