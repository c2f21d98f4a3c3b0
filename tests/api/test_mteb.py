"""MTEB's encoder interface; as mteb 2 calls it, without the package, which needs PyTorch."""

from __future__ import annotations

import enum
import sys

import numpy as np
import pytest

import tf_smoothclir as sc
from tf_smoothclir.utils.errors import InputError

pytestmark = pytest.mark.slow


class PromptType(enum.Enum):
    """As in mteb.types."""

    query = "query"
    document = "document"


BATCHES = [{"text": ["word1", "word2 word3"], "id": ["a", "b"]}, {"text": ["word4"], "id": ["c"]}]
TEXTS = ["word1", "word2 word3", "word4"]
TASK = {"task_metadata": object(), "hf_split": "test", "hf_subset": "en-fr", "batch_size": 32}


@pytest.fixture(scope="module")
def model(ranking_runs):
    return sc.load(ranking_runs["dense"].path)


def test_each_kind_of_text_has_its_tower(model):
    encoder = sc.MtebEncoder(model)
    queries = encoder.encode(BATCHES, prompt_type=PromptType.query, **TASK)
    documents = encoder.encode(BATCHES, prompt_type=PromptType.document, **TASK)
    np.testing.assert_array_equal(queries, model.encode_queries(TEXTS))
    np.testing.assert_array_equal(documents, model.encode_documents(TEXTS))
    assert not np.allclose(queries, documents)
    np.testing.assert_array_equal(encoder.encode(TEXTS, prompt_type="passage"), documents)


def test_similarity_is_the_score(model):
    encoder = sc.MtebEncoder(model)
    queries, documents = model.encode_queries(TEXTS), model.encode_documents(TEXTS)
    every = encoder.similarity(queries, documents)
    assert every.shape == (3, 3)
    expected = model.score(TEXTS, TEXTS)
    np.testing.assert_allclose(np.diag(every), expected, atol=1e-6)
    np.testing.assert_allclose(encoder.similarity_pairwise(queries, documents), expected, atol=1e-6)
    np.testing.assert_allclose(encoder.similarity(queries[1], documents), every[1:2], atol=1e-6)


def test_what_does_not_fit_is_refused(model, ranking_runs, monkeypatch):
    encoder = sc.MtebEncoder(model)
    with pytest.raises(InputError, match="does not say which of them its texts are"):
        encoder.encode(BATCHES, prompt_type=None, **TASK)
    with pytest.raises(InputError, match="a batch has image, and no 'text'"):
        encoder.encode([{"image": [1]}], prompt_type=PromptType.query, **TASK)
    with pytest.raises(InputError, match="has no towers"):
        sc.MtebEncoder(sc.load(ranking_runs["lexical"].path))
    monkeypatch.setitem(sys.modules, "mteb.models.model_meta", None)
    with pytest.raises(InputError, match=r"mteb is missing.*pip install 'mteb>=2'"):
        _ = encoder.mteb_model_meta
