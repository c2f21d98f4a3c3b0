"""Word vectors from gensim: what they know, how long they are, what is refused."""

import builtins
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tf_smoothclir.text.embeddings import load_embeddings
from tf_smoothclir.text.word2vec import train_word_vectors
from tf_smoothclir.utils.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = {"dim": 8, "epochs": 200, "min_count": 1, "workers": 1, "seed": 13}
# Two topics that share no word.
SEA = "Ship harbour wave sail anchor"
WOOD = "tree leaf root bark moss"


def topics(times=200):
    rng = np.random.default_rng(0)
    for _ in range(times):
        for topic in (SEA, WOOD):
            yield " ".join(rng.permutation(topic.split()))


@pytest.fixture(scope="module")
def trained():
    pytest.importorskip("gensim", reason="gensim is an extra, .[vectors]")
    return train_word_vectors(topics(), **SETTINGS)


def test_words_of_a_topic_are_near_each_other(trained):
    words, vectors = trained
    unit = dict(zip(words, vectors / np.linalg.norm(vectors, axis=1, keepdims=True)))
    sea, wood = ([unit[word] for word in topic.lower().split()] for topic in (SEA, WOOD))
    within = np.array(sea) @ np.array(sea).T
    across = np.array(sea) @ np.array(wood).T
    assert within.min() > across.max() + 0.3


def test_words_are_those_of_our_tokeniser_and_vectors_have_unit_variance(trained):
    words, vectors = trained
    assert set(words) == set(f"{SEA} {WOOD}".lower().split())
    assert vectors.dtype == np.float32
    assert vectors.std() == pytest.approx(1, abs=1e-5)


def test_one_worker_gives_the_same_vectors_again(trained):
    words, vectors = train_word_vectors(topics(), **SETTINGS)
    assert words == trained[0]
    np.testing.assert_array_equal(vectors, trained[1])


def test_rare_words_have_no_vector(trained):
    words, _ = train_word_vectors([*topics(5), "unique"], **{**SETTINGS, "min_count": 2})
    assert set(words) == set(trained[0])
    with pytest.raises(InputError, match=r"--min_count=3.*no word is seen as often.*Lower it"):
        train_word_vectors(["a b", "c"], **{**SETTINGS, "min_count": 3})


def test_without_gensim_the_message_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("gensim"):
            raise ImportError("No module named 'gensim'")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"pip install '\.\[vectors\]'"):
        train_word_vectors(["a"], **SETTINGS)


def command(output):
    flags = ["--toy_entities=300", "--dim=8", "--epochs=1", "--verbosity=-1"]
    return subprocess.run(
        [sys.executable, "-m", "trainers.train_vectors", f"--output={output}", *flags],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_a_file_that_cannot_be_written_is_refused_before_training(tmp_path):
    (tmp_path / "file").write_text("")
    done = command(tmp_path / "file" / "fr.npz")
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: --output={tmp_path}/file: the directory cannot be")


def test_the_command_writes_what_training_reads(trained, tmp_path):
    output = tmp_path / "fr.npz"
    done = command(output)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{output}: ")
    found = load_embeddings(output, ["[PAD]", "[UNK]", "la", "notaword"], dim=8, seed=13)
    assert (found.found, found.total) == (1, 2)
