"""Ten thousand hostile strings through the exported models: no error, all vectors finite."""

import itertools
import random

import numpy as np
import pytest
import tensorflow as tf

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.publishing.export_directory import load_part

pytestmark = pytest.mark.slow

NUMBER, BATCH = 10_000, 500
PIECES = [
    *(b"", b" ", b"\t\r\n", b"\0", b"\x1b[31m", b"word1", b"MOT2", b"?!", b"\\x00", b"%s%n", b"{}"),
    *(b"\xff", b"\xc3", b"\xc0\x80", b"\xf5\x80\x80\x80", b"\xf0\x9f\x98"),  # no UTF-8
    *(b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xef\xbf\xbe"),  # surrogates, a noncharacter
    *map(
        str.encode,
        [
            *("日本語", "ภาษาไทย", "яблоко", "\u0130I\u0131", "ß", "ﬁ", "e\u0301", "\u0301" * 50),
            *("مرحبا", "\u202eשלום\u202c", "\u2066a\u2069", "\u200b", "\u200d", "\ufeff", "\u00ad"),
            *("👩‍👩‍👧‍👦", "🏳️‍🌈", "\U0010ffff", "\ue000", "\u2028", "\u3000", "\u00a0"),
        ],
    ),
]


def hostile_strings():
    """Yields strings of every kind, the same ones each time."""
    generator = random.Random(20201)
    for number in range(NUMBER):
        kind = number % 4
        if kind == 0:  # any bytes
            yield generator.randbytes(generator.randrange(200))
        elif kind == 1:  # any code points, surrogates too
            points = (generator.randrange(0x110000) for _ in range(generator.randrange(100)))
            yield "".join(map(chr, points)).encode("utf-8", "surrogatepass")
        else:  # hazards side by side, some of them cut inside of a character
            text = b"".join(generator.choices(PIECES, k=generator.randrange(30)))
            yield text[: generator.randrange(len(text) + 1)] if kind == 2 else text
    yield from (b"word1 " * 170_000, b"x" * 1_000_000, b"\0" * 1_000_000, b"\xff" * 1_000_000)


def batches():
    strings = hostile_strings()
    while batch := list(itertools.islice(strings, BATCH)):
        yield batch


@pytest.mark.parametrize("role", ROLES)
def test_towers_give_finite_vectors(export_dir, role):
    model, manifest = load_part(export_dir, role)
    number = 0
    for batch in batches():
        vectors = model.signatures["serving_default"](text=tf.constant(batch))["vector"].numpy()
        assert vectors.shape == (len(batch), manifest.dim)
        assert np.isfinite(vectors).all()
        assert np.linalg.norm(vectors, axis=1).max() < 1
        number += len(batch)
    assert number == NUMBER + 4


@pytest.mark.parametrize(("name", "every"), [("dense", 1), ("lexical", 4), ("hybrid", 4)])
def test_search_gives_finite_scores_and_documents_of_the_collection(ranking_exports, name, every):
    model, manifest = load_part(ranking_exports[name], "search")
    known = {str(number).encode() for number in range(manifest.documents)}
    for batch in itertools.islice(batches(), 0, None, every):
        found = model.signatures["serving_default"](text=tf.constant(batch))
        ids, scores, grades, evidence = (
            found[key].numpy() for key in ("ids", "scores", "grades", "evidence")
        )
        pairs = model.signatures["score"](
            query=tf.constant(batch), document=tf.constant(batch[::-1])
        )
        for each in (scores, pairs["score"].numpy()):
            assert np.isfinite(each).all()
            assert name != "dense" or np.abs(each).max() < 1
        assert set(pairs["grade"].numpy()) <= {0, 1, 2}
        # Places are empty where nothing is known of the query, and only there.
        nothing = evidence == b"nothing"
        assert 0 < nothing.sum() < len(nothing)  # of each batch, some
        empty = ids == b""
        np.testing.assert_array_equal(empty, np.broadcast_to(nothing[:, None], empty.shape))
        assert set(ids[~empty]) <= known
        assert not scores[empty].any()
        assert not grades[empty].any()


def test_tokens_with_any_ids_give_finite_vectors(export_dir):
    model, _ = load_part(export_dir, "query")
    generator = np.random.default_rng(20201)
    for _ in range(20):
        lengths = generator.integers(0, 30, 100, dtype=np.int32)
        ids = generator.integers(-(2**31), 2**31, lengths.sum(), dtype=np.int32)
        ids[::2] %= 20
        vectors = model.signatures["tokens"](ids=tf.constant(ids), lengths=tf.constant(lengths))
        assert np.isfinite(vectors["vector"]).all()
