"""Unknown words of queries read as known ones of similar spelling, in Python and in the graph."""

import itertools
import unicodedata

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import cases
from tf_smoothclir.encoder.word_evidence import NAMES, NOTHING, SPELLING, WORDS
from tf_smoothclir.lexical.nearest_words import NearestWords
from tf_smoothclir.lexical.plain_reader import PlainReader
from tf_smoothclir.lexical.text_reader import TextReader
from tf_smoothclir.lexical.words import NO_WORD
from tf_smoothclir.protocols.text_search import QueryReading
from tf_smoothclir.search.display import remarks
from tf_smoothclir.text.tokenizer import tokenize
from tf_smoothclir.text.vocabulary import write_vocabulary

SPECIAL = ["[PAD]", "[UNK]"]
VOCABULARY = [*SPECIAL, "albanien", "abce", "abcf", "haha", "es2015", "cat", "1848", "жизнь"]
VOCABULARY += ["αθήνα", "đà", "nẵng", "ẹ\u0301gbọn", "が", "sri", "angora", "caledonia"]
VOCABULARY += ["что", "оман", "минск", "андорра", "მაკედონია", "קלדוניה", "तमिल", "کابل"]
WORD = st.text("abáÄ𝒳1\u0301", max_size=9)  # few letters: common trigrams, some more than once


def reader_of(kind, directory, queries, documents):
    for name, words in (("query", queries), ("document", documents)):
        write_vocabulary(directory / f"{name}.txt", words)
    return kind(directory, "query", 64, True)


def trigrams(word):
    plain = [
        letter for letter in unicodedata.normalize("NFD", word) if letter not in "\u0301\u0308"
    ]
    marked = ["<", *plain, ">"]  # no word below has these two
    return [(*marked[begin : begin + 3],) for begin in range(len(plain))]


def shares(word, vocabulary):
    """By sets and loops: what the module says of each word of a vocabulary."""
    for known in vocabulary:
        common = sum(trigram in trigrams(known) for trigram in trigrams(word))
        share = 2 * common / (len(trigrams(word)) + len({*trigrams(known)}) or 1)
        is_short = len(trigrams(word)) < 4
        is_compared = is_short or len({*trigrams(known)}) > 3
        yield share if is_compared and share >= (1 if is_short else 0.5) else 0


@given(words=st.lists(WORD.filter(bool), max_size=12, unique=True), word=WORD)
def test_it_is_the_first_word_with_the_largest_share(words, word):
    is_compared = [len(one) >= 4 or "𝒳" not in one for one in words]
    compared = [one for one in itertools.compress(words, is_compared) if "1" not in one]
    best = max(zip(shares(word, compared), compared), key=lambda pair: pair[0], default=(0, ""))
    found = NearestWords([*SPECIAL, *words]).id_of(word)
    if not best[0] or "1" in word or (len(word) < 4 and "𝒳" in word):
        assert found == NO_WORD
    else:
        assert words[found - len(SPECIAL)] == best[1]


@cases(
    "word, nearest",
    ("albania", "albanien"),  # <al, alb, lba, ban, ani of 7 and 8 trigrams: 10 / 15
    ("abcd", "abce"),  # <ab and abc of 4 each: a half, as with abcf, which comes later
    ("abxy", None),  # <ab alone: a quarter
    ("жизни", "жизнь"),
    ("1849", None),
    ("cats", None),  # the words that are like it are too short
    ("cät", "cat"),
    ("αθηνα", "αθήνα"),
    ("da", "đà"),
    ("nang", "nẵng"),
    ("egbon", "ẹ\u0301gbọn"),
    ("か", None),  # another letter
    ("\u0301", None),
    ("hahahaha", "haha"),
    ("", None),
    ("minsk", "минск"),
    ("andorre", "андорра"),  # <an, and, ndo, dor, orr of 7 each: 10 / 14
    ("macedonia", "მაკედონია"),  # as makedonia
    ("kaledonia", "caledonia"),  # the same letters before the same sounds
    ("tamil", "तमिल"),  # tml; by letters tmil, and four of nine trigrams
    ("kabul", "کابل"),  # kbl of kbl
    ("каледония", "caledonia"),  # the other way round
    ("ангара", "angora"),  # by letters four of eight trigrams
    ("албнийн", None),  # lbnn, as the most frequent word: an unknown word is no other spelling
    ("sir", None),  # by sounds, words of one script are not compared
    ("oman", "оман"),
    ("cut", None),  # sounds of `что`; of the pairs <c, cu, ut, t> and <c, ct, to, o> a quarter
)
def test_by_hand(word, nearest):
    found = NearestWords(VOCABULARY).id_of(word)
    assert (None if found == NO_WORD else VOCABULARY[found]) == nearest


OTHER = st.text("ckdlnabкдлабקלदिल्", max_size=7)
TEXT = st.lists(WORD | OTHER | st.sampled_from("!!.()"), max_size=5).map(" ".join)


@given(texts=st.lists(TEXT | st.text(max_size=8), max_size=4))
@settings(max_examples=60)
def test_the_graph_reads_as_python_does(both, texts):
    plain, in_graph = both
    expected, readings = plain.queries(texts)
    tokens, known = in_graph.read(tokenize(tf.constant(texts, tf.string), 64, True))
    np.testing.assert_array_equal(tokens.ids, expected.ids)
    for reading, level, unknown in zip(readings, known.levels.numpy(), known.unknown.numpy()):
        assert reading.evidence == NAMES[level]
        assert list(reading.unknown) == unknown.decode().split()


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Readers of queries in Python and in the graph, with one vocabulary of both languages."""
    words = [*SPECIAL, "aabb", "abab", "bÄ𝒳a", "aaaaaa", "ab", "b1b1b", "bá", "!", ".", "("]
    words += ["кадал", "клад", "קלדן", "candla", "दिल्ली", "b", "1", "aaa", "bab", "áá\u0301b"]
    directory = tmp_path_factory.mktemp("vocabulary")
    return [reader_of(kind, directory, words, words) for kind in (PlainReader, TextReader)]


def test_a_search_says_what_it_read(tmp_path):
    reader = reader_of(PlainReader, tmp_path, VOCABULARY, VOCABULARY)
    queries = ["cat albania xyzzy", "albania", "xyzzy", "cat al - banien", "haah zz"]
    words, readings = reader.queries(queries)
    cat, albanien, haha = map(VOCABULARY.index, ("cat", "albanien", "haha"))
    ids = [[cat, albanien, 0], [albanien], [0], [cat, albanien, 0, 0], [haha, 0]]
    assert [of.tolist() for of in np.split(words.ids, words.offsets[1:-1])] == ids
    read_as = {"albania": "albanien"}
    assert readings == [
        QueryReading(NAMES[WORDS], ("xyzzy",), read_as),
        QueryReading(NAMES[SPELLING], (), read_as),
        QueryReading(NAMES[NOTHING], ("xyzzy",)),
        QueryReading(NAMES[WORDS], (), {"al": "albanien", "banien": "albanien"}),
        QueryReading(NAMES[SPELLING], ("zz",), {"haah": "haha"}),
    ]
    said = "Not known, so read by their spelling: albania as albanien."
    assert remarks(readings[0], [None])[-1] == said
    repeated = QueryReading(NAMES[WORDS], ("zz", "xyzzy", "zz"))
    assert remarks(repeated, [None])[0].endswith("not searched for by meaning: zz, xyzzy.")
    _, (long,) = reader.queries(["cat " * 64 + "xyzzy albania"])
    assert long == QueryReading(NAMES[WORDS], cut=2)
    assert remarks(long, [None]) == ["The query is long: its last 2 tokens were not read."]


@cases("kind", PlainReader, TextReader)
@cases("queries", SPECIAL, [*SPECIAL, "cat"])
def test_vocabularies_of_their_own_and_empty_ones_have_none(tmp_path, kind, queries):
    # As in the papers, whose systems read unknown words as unknown.
    documents = VOCABULARY if len(queries) > len(SPECIAL) else queries
    reader = reader_of(kind, tmp_path, queries, documents)
    assert reader.batch(["albania"]).ids.tolist() == [NO_WORD]
    own = len(queries) + VOCABULARY.index("albanien") if documents is VOCABULARY else NO_WORD
    assert reader.batch(["albanien"]).ids.tolist() == [own]
