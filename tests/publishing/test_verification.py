"""Written models are loaded and run in a fresh process, and compared with the trained ones."""

import numpy as np
import pytest
import tensorflow as tf

from tests.published import WORDS, publish_small, small_tower
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.encoder import Encoder
from tf_smoothclir.publishing import verification
from tf_smoothclir.publishing.export_directory import exported_versions
from tf_smoothclir.publishing.exported_search import SearchModel
from tf_smoothclir.publishing.exported_tower import ExportedTower
from tf_smoothclir.publishing.verification import Verifier, _compare

TEXTS = {role: [word.encode() for word in WORDS[role]] for role in ROLES}
EXPECTED = {
    "scores": tf.constant([[0.9, 0.5, 0.5, 0.1]]),
    "ids": tf.constant([["a", "b", "c", "d\xff".encode("latin-1")]]),
}


def test_towers_with_other_vectors_are_not_published(tmp_path, monkeypatch):
    path, other = tmp_path / "export", small_tower(tmp_path, "query", seed=99)
    with monkeypatch.context() as patch:
        encode = Encoder.encode
        patch.setattr(Encoder, "encode", lambda *arguments: encode(*arguments) + 1e-5)
        with pytest.raises(RuntimeError, match=r"tower without TensorFlow differs .* 1\..*e-05"):
            publish_small(tmp_path, path)
    save = ExportedTower.save
    monkeypatch.setattr(ExportedTower, "save", lambda tower, path: save(other, path))
    with pytest.raises(RuntimeError, match=r"query_tower, serving_default, differs .* by [01]"):
        publish_small(tmp_path, path)
    assert exported_versions(path, "query") == exported_versions(path, "document") == []


def test_model_that_does_not_load_is_not_published(tmp_path, monkeypatch):
    def truncated(model, path, save=SearchModel.save):
        save(model, path)
        with open(f"{path}/variables/variables.data-00000-of-00001", "r+b") as file:
            file.truncate(5)

    monkeypatch.setattr(SearchModel, "save", truncated)
    with pytest.raises(RuntimeError, match="do not load and run:"):
        publish_small(tmp_path, tmp_path / "export")
    assert [path.name for path in (tmp_path / "export").iterdir()] == [".smoothclir-export.lock"]


def test_process_ends_with_the_exporter_even_if_nothing_was_sent():
    with Verifier() as verifier:
        child = verifier._child
        assert child.poll() is None
    assert child.returncode is not None


def test_error_says_why_the_process_failed_at_the_start(monkeypatch, tmp_path):
    # Fills the pipe of standard error, and reads nothing.
    failing = "import sys; sys.exit('x' * 100_000 + ' no TensorFlow here')"
    monkeypatch.setattr(verification, "_LOAD_AND_RUN", failing)
    with Verifier() as verifier:
        verifier._child.wait(timeout=60)
        verifier.send("query", small_tower(tmp_path, "query"), tmp_path, TEXTS)
        with pytest.raises(RuntimeError, match=r"(?s)do not load and run:.*no TensorFlow here"):
            verifier.compare()


@pytest.mark.parametrize(
    ("scores", "ids", "error"),
    [
        ([0.9, 0.5, 0.5, 0.1], ["a", "c", "b", "d\xff"], None),  # equal scores, by rounding
        ([0.9, 0.5, 0.5, 0.1], ["a", "b", "c", "e"], None),  # the fifth may be as near
        ([0.9, 0.5, 0.5, 0.1], ["x", "b", "c", "d\xff"], "finds other documents"),
        ([0.9, 0.500002, 0.5, 0.1], ["a", "b", "c", "d\xff"], "differs from the trained one"),
        ([0.9, np.nan, 0.5, 0.1], ["a", "b", "c", "d\xff"], "differs from the trained one by nan"),
    ],
)
def test_scores_may_differ_by_rounding_and_ids_among_equal_scores(scores, ids, error):
    found = {"scores": [scores], "ids": [ids]}
    if error is None:
        _compare("It", EXPECTED, found)
    else:
        with pytest.raises(RuntimeError, match=error):
            _compare("It", EXPECTED, found)
