"""What is known of a text: words, n-grams of words, or nothing."""

import pytest
import tensorflow as tf

from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.text.evidence import word_evidence
from tf_smoothclir.text.evidence_levels import NGRAMS, NOTHING, WORDS
from tf_smoothclir.text.subword_encoder import text_encoder
from tf_smoothclir.text.vocabulary import write_vocabulary

VOCABULARY = ["[PAD]", "[UNK]", "mountain", ".", "sea", "日"]
NGRAMS_OF_4 = TextSettings(ngram_buckets=50, min_ngram=4, max_ngram=5)


@pytest.fixture
def found(tmp_path):
    """`found(text, settings)` is the level and the unknown words of one text."""
    path = tmp_path / "query.txt"
    write_vocabulary(path, VOCABULARY)

    def ask(text, settings=TextSettings()):  # noqa: B008 - frozen
        encoder = text_encoder(path, settings, "query")
        levels, unknown = word_evidence(path, encoder, settings)(tf.constant([text]))
        return levels.numpy().tolist()[0], unknown.numpy()[0].decode()

    return ask


@pytest.mark.parametrize(
    ("text", "level", "unknown"),
    [
        ("the Sea", WORDS, "the"),
        ("日本", WORDS, "本"),
        ("zebra?", NOTHING, "zebra"),
        (".", NOTHING, ""),  # in the vocabulary, but it says nothing
        ("", NOTHING, ""),
        (" \t", NOTHING, ""),
        ("😀", NOTHING, ""),
        (b"\xff\xfe", NOTHING, ""),
        ("mountains", NOTHING, "mountains"),
    ],
)
def test_words_alone(found, text, level, unknown):
    assert found(text) == (level, unknown)


@pytest.mark.parametrize(
    ("text", "level"),
    [
        # <mountains>: 8 n-grams of 4 and 7 of 5; <mountain> has the first 6 and 5 of them.
        ("mountains", NGRAMS),
        # <mount>: 4 of 4 and 3 of 5; <mountain> has 3 and 2.
        ("mount", NGRAMS),
        # <mouse>: 4 and 3; <mountain> has <mou alone.
        ("mouse", NOTHING),
        ("zebra", NOTHING),
        ("sea zebra", WORDS),
        ("a", NOTHING),  # too short for any n-gram
        ("?!", NOTHING),
    ],
)
def test_an_unknown_word_counts_if_half_of_its_ngrams_are_known(found, text, level):
    # With 50 rows for n-grams, nearly all have an n-gram of the vocabulary: rows say nothing.
    assert found(text, NGRAMS_OF_4)[0] == level


def test_words_behind_the_limit_are_not_read(found):
    assert found("zebra sea", TextSettings(max_query_tokens=1)) == (NOTHING, "zebra")
