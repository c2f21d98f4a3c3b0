"""Vocabularies from files: their words as the tokeniser makes them, numbers of the texts."""

import pytest

from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.text.given_vocabulary import given_vocabulary
from tf_smoothclir.utils.errors import InputError

COUNTS = {b"1999": 3, b"2001": 5, b"42": 5, b"a4": 1, b"b2b": 9, b"cat": 7}


def write(path, text):
    path.write_bytes(text.encode())
    return path


def words(path, size=100, least=1):
    return given_vocabulary(path, COUNTS, max_size=size, min_count=least)[2:]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dog\ncat\n", ["dog", "cat"]),  # in the order of the file, whatever the texts have
        ("Paris\nparis\nPARIS\nthe", ["paris", "the"]),  # the first of equal ones
        ("[PAD]\n[UNK]\n<UNK>\n<S>\n</S>\n<PAD>\nthe\n", ["the"]),
        ("New-York\ndon't\nthe\n", ["the"]),  # several tokens: no token equals them
        ("\ufeffthe\r\n\r\ncat\r\n", ["the", "cat"]),  # as Windows writes it
        ("水\n水道\n", ["水"]),
    ],
)
def test_words_are_tokens_in_the_order_of_the_file(text, expected, tmp_path):
    assert words(write(tmp_path / "words.txt", text)) == expected


def test_it_begins_with_padding_and_unknown(tmp_path):
    path = write(tmp_path / "words.txt", "the\n")
    assert given_vocabulary(path, {}, max_size=9, min_count=1) == ["[PAD]", "[UNK]", "the"]


def test_numbers_of_the_texts_that_the_file_has_with_marks_for_digits(tmp_path):
    path = write(tmp_path / "words.txt", "the\n####\na#\n")
    # 2001 occurs 5 times, 1999 3 times, a4 once; neither "##" nor "b#b" is in the file.
    assert words(path) == ["the", "2001", "1999", "a4"]
    assert words(path, least=2) == ["the", "2001", "1999"]
    assert words(path, size=4) == ["the", "2001"]
    assert words(path, size=3) == ["the"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the\ncat 0.1 0.2\n", r"words.txt:2: 3 words in a line\. Give one word a line"),
        ("", r"words.txt: the file has no word\. Give one word a line"),
        ("<S>\n---\n", "the file has no word"),
    ],
)
def test_files_without_words_are_refused(text, message, tmp_path):
    with pytest.raises(InputError, match=message):
        words(write(tmp_path / "words.txt", text))


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none.txt: the file cannot be read .*Check the path"):
        words(tmp_path / "none.txt")
    (tmp_path / "latin.txt").write_bytes("été".encode("latin-1"))
    with pytest.raises(InputError, match=r"latin.txt: the file is not UTF-8"):
        words(tmp_path / "latin.txt")


@pytest.mark.parametrize(
    ("shared", "query", "document", "expected"),
    [
        (False, "en.txt", "", ("en.txt", "")),
        (False, "en.txt", "fr.txt", ("en.txt", "fr.txt")),
        (True, "both.txt", "", ("both.txt", "both.txt")),
        (True, "", "both.txt", ("both.txt", "both.txt")),
        (True, "", "", ("", "")),
    ],
)
def test_a_shared_vocabulary_has_one_file(shared, query, document, expected):
    settings = TextSettings(
        shared_vocabulary=shared, query_vocabulary=query, document_vocabulary=document
    )
    assert tuple(map(settings.given_vocabulary, ("query", "document"))) == expected
