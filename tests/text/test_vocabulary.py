"""Counting words, the vocabulary file; ids and n-grams in the graph and in a SavedModel."""

import collections
import dataclasses
import itertools

import numpy as np
import pytest
import tensorflow as tf

from tests.cases import cases
from tests.text.test_tokenizer import SCRIPTS, tokens
from tf_smoothclir.encoder.word_evidence import MOST_CHARACTERS_OF_WORD, NGRAMS, NOTHING, WORDS
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.text import evidence, vocabulary
from tf_smoothclir.text.new_vocabulary import TokenCounter, given_vocabulary
from tf_smoothclir.text.subwords import SubwordTextEncoder, ngrams, text_encoder
from tf_smoothclir.text.tokens import TextEncoder
from tf_smoothclir.text.vocabulary import PADDING, UNKNOWN, UNKNOWN_ID, write_vocabulary
from tf_smoothclir.utils import parallel
from tf_smoothclir.utils.errors import InputError
from tf_smoothclir.utils.parallel import in_batches, text_batches

VOCABULARY = [PADDING, UNKNOWN, "haus", "ü", "漢", "the", "\ufffd", "#", "b"]
TEXTS = ["Haus ü 漢漢", "", "the unheard-of", " \0 ", b"\xff # cut off here", "a\0b"]
COUNTS = {b"1999": 3, b"2001": 5, b"42": 5, b"a4": 1, b"b2b": 9, b"cat": 7}
SETTINGS = TextSettings(max_document_tokens=4, ngram_buckets=1000, min_ngram=3, max_ngram=4)
UNSEEN = ["the sea, the", "", "unseen sea ünseen unseen cut", "\xff"]
BUCKETS = 1_000_003  # so many that two n-grams of a test share none
# Umlauts, CJK and marks are one character each; the last ones are short or strange.
SPELLINGS = ["where", "überzüge", "日本", "😀x", "e\u0301te", "a_1", "<>", "a\0b", "ab", "a", ""]
MOUNTAIN = ["[PAD]", "[UNK]", "mountain", ".", "sea", "日"]
NGRAMS_OF_4 = TextSettings(ngram_buckets=50, min_ngram=4, max_ngram=5)


def count(*batches, max_tokens=9):
    counter = TokenCounter()
    for texts in batches:
        counter.add(counter.split(texts, max_tokens))
    return counter


@pytest.fixture(scope="module")
def vocabulary_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "document.txt"
    write_vocabulary(path, VOCABULARY)
    return path


@pytest.fixture(scope="module")
def encoder(vocabulary_path):
    return TextEncoder(vocabulary_path, max_tokens=3)


def encode(encoder, texts):
    found = encoder(tf.constant(texts, tf.string))
    return np.split(found.ids.numpy(), np.cumsum(found.lengths.numpy())[:-1])


def test_no_token_left_is_an_error_that_says_what_to_do():
    message = r"document vocabulary: no token .* \(1 distinct tokens seen\)\. Lower --min_count"
    counter = count(["a a", " a"])
    counter.add(counter.split(["b"], 9), np.array([False]))  # not counted, and not seen
    with pytest.raises(InputError, match=message):
        counter.vocabulary(max_size=9, min_count=4, role="document")
    # A text cannot write the special entries.
    found = count([f"{PADDING} {UNKNOWN}"]).vocabulary(max_size=99, min_count=1, role="query")
    assert found == [PADDING, UNKNOWN, "[", "]", "pad", "unk"]


def zipf_texts():
    generator = np.random.default_rng(5)
    words = np.array([*"abcdefgh", "Ü", "ü", "ß", "漢字", "x!", "snake_case", "\u200b", "لا"])
    return [" ".join(words[generator.zipf(1.3, 7) % len(words)]) for _ in range(400)]


@cases("max_size, min_count", (1000, 1), (100, 60), (20, 1), (3, 1))
def test_words_are_counted_and_have_the_ids_of_the_encoder(tmp_path, max_size, min_count):
    texts = [*(text for text, _ in SCRIPTS.values()), *TEXTS, *zipf_texts()]
    counted, words = np.arange(len(texts)) % 3 > 0, [tokens(text, 6) for text in texts]
    plain = collections.Counter(itertools.chain(*itertools.compress(words, counted)))
    kept = sorted((-n, word.encode()) for word, n in plain.items() if n >= min_count)
    counter, numbers = TokenCounter(), []
    for begin in range(0, len(texts), 29):
        part = slice(begin, begin + 29)
        numbers.append(counter.add(counter.split(texts[part], 6), counted[part]))
    found = counter.vocabulary(max_size=max_size, min_count=min_count, role="document")
    assert found[2:] == [word.decode() for _, word in kept][: max_size - 2]
    write_vocabulary(tmp_path / "document.txt", found)
    expected = TextEncoder(tmp_path / "document.txt", max_tokens=6)(tf.constant(texts))
    ids = counter.ids(found)[np.concatenate(numbers)]
    np.testing.assert_array_equal(ids, expected.ids)
    np.testing.assert_array_equal(list(map(len, words)), expected.lengths)
    assert ids.dtype == np.int32
    assert UNKNOWN_ID in ids  # words that only uncounted texts have, too


def test_more_distinct_tokens_than_the_first_buffer_holds():
    batches = [[str(token) for token in range(begin, begin + 50_000)] for begin in (0, 40_000)]
    found = count(*batches, ["7"]).vocabulary(max_size=10_003, min_count=2, role="document")
    assert set(found[2:]) == {"7", *map(str, range(40_000, 50_000))}


def test_the_file_begins_with_the_special_entries(vocabulary_path, tmp_path):
    assert vocabulary.read_vocabulary(vocabulary_path) == VOCABULARY
    assert vocabulary_path.read_bytes().startswith(b"[PAD]\n[UNK]\nhaus\n\xc3\xbc\n")
    path = tmp_path / "words.txt"
    for content in ("", "[UNK]\n[PAD]\nhaus\n", "[PAD]\nhaus\n"):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(InputError, match=r"words.txt: a vocabulary begins with the lines \[P"):
            vocabulary.read_vocabulary(path)


def test_ids_of_any_text(encoder):
    assert [ids.tolist() for ids in encode(encoder, TEXTS)] == [
        [2, 3, 4],  # cut at three tokens
        [],
        [5, UNKNOWN_ID, UNKNOWN_ID],
        [],
        [6, 7, UNKNOWN_ID],
        [UNKNOWN_ID, 8],  # what follows a NUL byte counts, also in a list of Python strings
    ]
    words = {"haus": 2, "nie_gehört": 1, "#": 7, "b": 8, "hau": 1, "hauss": 1, "[PAD]": 1}
    assert [ids[0] for ids in encode(encoder, list(words))] == list(words.values())
    found = encoder(tf.zeros([0], tf.string))
    assert (found.ids.shape, found.lengths.shape) == ((0,), (0,))
    assert found.ids.dtype == found.lengths.dtype == tf.int32


def test_an_overwritten_vocabulary_is_read_again(tmp_path):
    # TensorFlow by itself finds the table of the same path again, with the old words.
    path = tmp_path / "query.txt"
    write_vocabulary(path, [PADDING, UNKNOWN, "a", "b"])
    old = TextEncoder(path, max_tokens=9)
    assert encode(old, ["a b"])[0].tolist() == [2, 3]
    write_vocabulary(path, [PADDING, UNKNOWN, "b", "a"])
    assert encode(TextEncoder(path, max_tokens=9), ["a b"])[0].tolist() == [3, 2]
    assert encode(old, ["a b"])[0].tolist() == [2, 3]


def words(path, content=None, size=100, least=1):
    if content is not None:
        path.write_bytes(content)
    return given_vocabulary(path, COUNTS, max_size=size, min_count=least)[2:]


@cases(
    "text, expected",
    ("dog\ncat\n", ["dog", "cat"]),  # in the order of the file, whatever the texts have
    ("Paris\nparis\nPARIS\nthe", ["paris", "the"]),  # the first of equal ones
    ("[PAD]\n[UNK]\n<UNK>\n<S>\n</S>\n<PAD>\nthe\n", ["the"]),
    ("New-York\ndon't\nthe\n", ["the"]),  # several tokens: no token equals them
    ("\ufeffthe\r\n\r\ncat\r\n", ["the", "cat"]),  # as Windows writes it
    ("水\n水道\n", ["水"]),
)
def test_words_are_tokens_in_the_order_of_the_file(text, expected, tmp_path):
    assert words(tmp_path / "words.txt", text.encode()) == expected


def test_numbers_of_the_texts_that_the_file_has_with_marks_for_digits(tmp_path):
    path = tmp_path / "words.txt"
    # 2001 occurs 5 times, 1999 3 times, a4 once; neither "##" nor "b#b" is in the file.
    assert words(path, b"the\n####\na#\n") == ["the", "2001", "1999", "a4"]
    assert given_vocabulary(path, {}, max_size=9, min_count=1)[:2] == ["[PAD]", "[UNK]"]
    assert words(path, least=2) == ["the", "2001", "1999"]
    assert words(path, size=4) == ["the", "2001"]
    assert words(path, size=3) == ["the"]


@cases(
    "content, message",
    (b"the\ncat 0.1 0.2\n", r"words.txt:2: 3 words in a line\. Give one word a line"),
    (b"", r"words.txt: the file has no word\. Give one word a line"),
    ("été".encode("latin-1"), r"words.txt: the file is not UTF-8"),
    (None, r"words.txt: the file cannot be read .*Check the path"),
)
def test_files_without_words_are_refused(content, message, tmp_path):
    with pytest.raises(InputError, match=message):
        words(tmp_path / "words.txt", content)


def test_a_shared_vocabulary_has_one_file():
    for shared, expected in ((False, ["a.txt", ""]), (True, ["a.txt", "a.txt"])):
        settings = TextSettings(shared_vocabulary=shared, query_vocabulary="a.txt")
        assert [settings.given_vocabulary(role) for role in ("query", "document")] == expected


def test_text_batches_end_at_a_number_of_texts_or_of_characters(monkeypatch):
    monkeypatch.setattr(parallel, "TEXTS_PER_BATCH", 3)
    monkeypatch.setattr(parallel, "CHARACTERS_PER_BATCH", 10)
    for items, expected in (([], []), ([1, 2], [[1, 2]]), ([1, 2, 3], [[1, 2], [3]])):
        assert list(in_batches(iter(items), 2)) == expected
    assert list(text_batches([])) == []
    assert list(text_batches(iter("abcd"))) == [["a", "b", "c"], ["d"]]
    assert list(text_batches("abc")) == [["a", "b", "c"]]
    long = "x" * 99
    assert list(text_batches([long, "a", "bc" * 5, "d"])) == [[long], ["a", "bc" * 5], ["d"]]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "document.txt"
    vocabulary.write_vocabulary(path, [vocabulary.PADDING, vocabulary.UNKNOWN, "the", "sea", ","])
    return path


@pytest.fixture(scope="module")
def with_ngrams(path):
    return text_encoder(path, SETTINGS, "document")


def ngrams_of_tokens(tokens):
    rows = tf.RaggedTensor.from_row_lengths(tokens.ngrams.ids, tokens.ngrams.lengths)
    np.testing.assert_array_equal(tokens.ngrams.texts, rows.value_rowids())
    return tf.gather(rows, tokens.positions).to_list()


def expected_ngrams(words):
    return ngrams(tf.constant(words), 1000, 3, 4).to_list()


def test_ids_are_those_without_ngrams_and_every_word_has_its_ngrams(with_ngrams, path):
    plain = TextEncoder(path, max_tokens=4)(tf.constant(UNSEEN))
    found = with_ngrams(tf.constant(UNSEEN))
    for name in ("ids", "lengths", "texts"):
        np.testing.assert_array_equal(getattr(found, name), getattr(plain, name))
        assert getattr(found, name).dtype == tf.int32
    assert found.texts.numpy().tolist() == [0] * 4 + [2] * 4 + [3]
    words = ["the", "sea", ",", "the", "unseen", "sea", "ünseen", "unseen", "ÿ"]
    of_words = ngrams_of_tokens(found)
    assert of_words == expected_ngrams(words)
    assert of_words[4] != of_words[6]  # both unknown, and told apart
    nothing = with_ngrams(tf.constant([], tf.string))
    assert nothing.lengths.shape == nothing.ngrams.lengths.shape == 0


def test_by_ids_the_words_of_the_vocabulary_have_the_same_ngrams_and_no_other_ids(with_ngrams):
    ids = tf.constant([2, 3, 4, 2, -1, 0, 1, 5, 2**31 - 1])
    found = with_ngrams.complete(ids, tf.constant([3, 6]))
    assert ngrams_of_tokens(found) == [*expected_ngrams(["the", "sea", ",", "the"]), *[[]] * 5]
    np.testing.assert_array_equal(found.ids, ids)
    assert found.texts.numpy().tolist() == [0] * 3 + [1] * 6


def test_every_setting_of_the_ngrams_is_part_of_the_digest(path):
    changes = [{}, {"ngram_buckets": 999}, {"min_ngram": 2}, {"max_ngram": 5}]
    variants = [dataclasses.replace(SETTINGS, **change) for change in changes]
    digests = {text_encoder(path, each, "query").vocabulary_digest for each in variants}
    words_alone = text_encoder(path, TextSettings(max_query_tokens=3), "query")
    assert not isinstance(words_alone, SubwordTextEncoder)
    assert words_alone.max_tokens == 3
    assert len(digests | {words_alone.vocabulary_digest}) == len(variants) + 1


def by_hand(word: str, shortest: int, longest: int) -> list[str]:
    marked = f"<{word}>" if word else ""
    return [
        marked[begin : begin + length]
        for length in range(shortest, longest + 1)
        for begin in range(len(marked) - length + 1)
    ]


def hashed(texts, buckets=BUCKETS):
    return tf.strings.to_hash_bucket_fast(tf.constant(texts, tf.string), buckets).numpy().tolist()


@cases("shortest, longest", (3, 6), (1, 2), (4, 4), (4, 5))
@cases("words", *[[word] for word in SPELLINGS] + [SPELLINGS, []])
def test_ngrams_are_those_of_fasttext_and_words_of_a_batch_do_not_mix(words, shortest, longest):
    found = ngrams(tf.constant(words, tf.string), BUCKETS, shortest, longest)
    assert found.dtype == tf.int32
    assert by_hand("where", 3, 3) == ["<wh", "whe", "her", "ere", "re>"]  # of the paper
    assert found.to_list() == [hashed(by_hand(word, shortest, longest)) for word in words]


@cases("letter", "x", "ü", "日", "😀")
def test_only_the_first_characters_of_a_very_long_word_count(letter):
    found = ngrams(tf.constant([letter * 100_000]), BUCKETS, 3, 5).to_list()
    assert found == [hashed(by_hand(letter * MOST_CHARACTERS_OF_WORD, 3, 5))]


@cases("word", b"\xff\xfea", b"ab\xc3", b"\xed\xa0\x80", b"\xff" * 300)
def test_invalid_utf8_becomes_replacement_characters(word):
    expected = tf.strings.unicode_transcode([word], "UTF-8", "UTF-8").numpy()[0].decode()
    found = ngrams(tf.constant([word]), BUCKETS, 3, 5).to_list()
    assert found == [hashed(by_hand(expected[:MOST_CHARACTERS_OF_WORD], 3, 5))]
    assert found[0]


def test_hashes_never_change():
    # Of trained tables they decide what each row means.
    found = ngrams(tf.constant(["über"]), 100_000, 3, 4).to_list()
    assert found == [[84419, 21262, 82089, 96646, 40312, 60773, 19818]]
    words = tf.strings.as_string(tf.range(2000))
    assert set(ngrams(words, 7, 3, 5).flat_values.numpy()) == set(range(7))  # inside the table


@cases(
    "settings, text, level, unknown",
    (TextSettings(), "the Sea", WORDS, "the"),
    (TextSettings(), "日本", WORDS, "日本 本"),
    (TextSettings(), "zebra?", NOTHING, "zebra"),
    (TextSettings(), ".", NOTHING, ""),  # in the vocabulary, but it says nothing
    (TextSettings(), " \t😀", NOTHING, ""),
    (TextSettings(), b"\xff\xfe", NOTHING, ""),
    (TextSettings(max_query_tokens=1), "zebra sea", NOTHING, "zebra"),
    # An unknown word counts if half of its n-grams are known. With 50 rows for n-grams, nearly
    # all have one of the vocabulary: rows say nothing.
    # <mountains>: 8 n-grams of 4 and 7 of 5; <mountain> has the first 6 and 5 of them.
    (NGRAMS_OF_4, "mountains", NGRAMS, "mountains"),
    # <mount>: 4 of 4 and 3 of 5; <mountain> has 3 and 2.
    (NGRAMS_OF_4, "mount", NGRAMS, "mount"),
    # <mouse>: 4 and 3; <mountain> has <mou alone.
    (NGRAMS_OF_4, "mouse", NOTHING, "mouse"),
    (NGRAMS_OF_4, "sea zebra", WORDS, "zebra"),
    (NGRAMS_OF_4, "a", NOTHING, "a"),  # too short for any n-gram
)
def test_evidence_is_words_or_ngrams_or_nothing(tmp_path, settings, text, level, unknown):
    path = tmp_path / "query.txt"
    vocabulary.write_vocabulary(path, MOUNTAIN)
    encoder = text_encoder(path, settings, "query")
    levels, words = evidence.word_evidence(MOUNTAIN, encoder, settings)(tf.constant([text]))
    assert (levels.numpy().tolist(), words.numpy()[0].decode()) == ([level], unknown)
