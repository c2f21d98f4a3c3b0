"""A dictionary from training pairs, and the rotation of one space into another."""

import numpy as np
import pytest

from tests.small_world import SmallWorld
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.interaction.alignment import aligned, mined_dictionary
from tf_smoothclir.interaction.networks.base import unit_rows
from tf_smoothclir.interaction.texts import InteractionTexts
from tf_smoothclir.lexical.word_vectors import WordVectors
from tf_smoothclir.utils.errors import InputError

WORDS = 6  # ids 2 to 7 of each language; i translates i


def pairs_of(number, splits=None):
    """Queries and documents that translate each other word by word, and their padded ids."""
    random = np.random.default_rng(5)
    texts = np.array([random.permutation(np.arange(2, 2 + WORDS))[:2] for _ in range(number)])
    world = SmallWorld(
        queries=[(f"q{i}", "x") for i in range(number)],
        documents=[(f"d{i}", "x") for i in range(number)],
        judgments=[(f"q{i}", f"d{i}", 2) for i in range(number)],
        splits=splits or {f"q{i}": "train" for i in range(number)},
    )
    ids = texts.astype(np.int32)
    return RetrievalSet.load(world), InteractionTexts(ids, ids.copy())


def test_words_of_five_pairs_translate_each_other():
    rows, columns = mined_dictionary(*pairs_of(80), (8, 8))
    assert dict(zip(rows, columns)) == {word: word for word in range(2, 8)}
    assert not len(mined_dictionary(*pairs_of(4), (8, 8))[0])


def test_only_training_pairs_count():
    """Judgments of other queries, however many, add no entry and change none."""
    splits = {f"q{i}": "train" if i < 80 else ("validation", "test")[i % 2] for i in range(200)}
    retrieval_set, texts = pairs_of(200, splits)
    of_others = texts.documents.copy()
    of_others[80:] = of_others[80:, ::-1] % 6 + 2
    changed = InteractionTexts(texts.queries, of_others)
    before, after = (mined_dictionary(retrieval_set, one, (8, 8)) for one in (texts, changed))
    np.testing.assert_array_equal(before, after)


def test_a_rotation_of_the_space_is_undone():
    random = np.random.default_rng(3)
    documents = unit_rows(random.normal(size=(40, 5)).astype(np.float32))
    rotation, _ = np.linalg.qr(random.normal(size=(5, 5)))
    vectors = WordVectors(documents @ rotation.astype(np.float32), documents)
    seeds = np.arange(2, 20)  # half of the words
    found = aligned(vectors, (seeds, seeds))
    np.testing.assert_allclose(found.queries, found.documents, atol=1e-5)
    assert not found.queries[:2].any()  # padding and unknown words


def test_words_without_a_vector_stay_without():
    random = np.random.default_rng(3)
    vectors = random.normal(size=(12, 4)).astype(np.float32)
    vectors[7] = 0
    found = aligned(WordVectors(vectors, vectors), (np.arange(2, 12), np.arange(2, 12)))
    assert not found.queries[7].any()
    norms = np.linalg.norm(found.queries[2:], axis=1)
    assert sorted(norms.round(4)) == pytest.approx([0, *[1] * 9])
    nothing = np.zeros((4, 3), np.float32)
    with pytest.raises(InputError, match="none of the 1 words"):
        aligned(WordVectors(nothing, nothing), (np.array([2]), np.array([3])))
