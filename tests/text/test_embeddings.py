"""Every format gives the same rows; damage is an error that says where; the recipe of the page."""

import functools
import itertools
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from tests.cases import cases
from tf_smoothclir.text.embeddings import load_embeddings
from tf_smoothclir.utils.errors import InputError

VOCABULARY = ["[PAD]", "[UNK]", "maison", "chat", "été", "absent", "paris"]
WORDS = ["the", "chat", "Paris", "été", "PARIS", "maison"]
ROWS = np.float32([[9, 9, 9], [0.5, -1, 2], [7, 0.25, 1], [1, 2, 3], [8, 8, 8], [-0.125, 0, 4]])
DIM = 3


def lines(words=WORDS, rows=ROWS, end="\n"):
    return "".join(f"{word} {' '.join(map(str, row))}{end}" for word, row in zip(words, rows))


def write_word2vec(path, words=WORDS, rows=ROWS, end="\n"):
    path.write_text(f"{len(words)} {rows.shape[1]}\n{lines(words, rows, end)}", encoding="utf-8")


def write_glove(path, words=WORDS, rows=ROWS, end="\n"):
    path.write_bytes(lines(words, rows, end).encode())


WRITERS = {"word2vec": write_word2vec, "glove": write_glove}
WRITERS["fasttext"] = functools.partial(write_word2vec, end=" \n")
WRITERS["glove, CRLF"] = functools.partial(write_glove, end="\r\n")
every_format = cases("write", *WRITERS.values(), ids=WRITERS)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "words"


def load(path, vocabulary=VOCABULARY, dim=DIM, seed=0, **kwargs):
    return load_embeddings(path, vocabulary, dim=dim, seed=seed, **kwargs)


@every_format
def test_rows_by_hand(write, path):
    write(path)
    matrix, found, total, in_file = load(path)
    assert matrix.dtype == np.float32
    assert matrix.shape == (7, DIM)
    assert (found, total) == (4, 5)  # all but "absent"
    assert in_file[2:].tolist() == [True, True, True, False, True]
    expected = [[0, 0, 0], [-0.125, 0, 4], [0.5, -1, 2], [1, 2, 3], [7, 0.25, 1]]
    np.testing.assert_array_equal(matrix[[0, 2, 3, 4, 6]], expected)  # "Paris", the first cased one


@cases("order", *itertools.permutations(["Été", "ÉTÉ", "été"]))
def test_exact_token_wins_over_cased_ones_in_any_order(order, path):
    rows = np.float32([[0, 0, 1], [0, 0, 2], [0, 0, 3]])
    write_glove(path, order, rows)
    matrix, found, _, _ = load(path, ["[PAD]", "[UNK]", "été"])
    np.testing.assert_array_equal(matrix[2], rows[order.index("été")])
    assert found == 1


@cases("name", "[UNK]", "<UNK>", "<unk>")
def test_unknown_row_has_the_names_that_files_give_it_and_first_of_equal_tokens_wins(name, path):
    write_glove(path, ["chat", name, "chat"], ROWS[:3])
    matrix, found, total, _ = load(path)
    np.testing.assert_array_equal(matrix[1], ROWS[1])
    np.testing.assert_array_equal(matrix[3], ROWS[0])
    assert (found, total) == (1, 5)  # the unknown row is not counted


@cases("order", *itertools.permutations(range(3)))
def test_a_number_takes_the_row_of_its_digits_unless_the_file_has_it(order, path):
    write_glove(path, [["1999", "####", "A#"][i] for i in order], ROWS[list(order)])
    result = load(path, ["[PAD]", "[UNK]", "1999", "2001", "a4", "12"])
    # 1999 itself, 2001 as ####, a4 as A# in any case; ## is not in the file
    np.testing.assert_array_equal(result.matrix[2:5], ROWS[:3])
    np.testing.assert_array_equal(result.in_file[2:], [True, True, True, False])


def test_rows_not_found_have_the_spread_of_the_found_ones(path):
    words = [f"w{i}" for i in range(2000)]
    rows = np.random.default_rng(0).normal(size=(1000, 8), scale=0.3).astype("f4")
    write_glove(path, words[:1000], rows)
    matrix = load(path, ["[PAD]", "[UNK]", *words], dim=8).matrix
    assert matrix[1002:].std() == pytest.approx(rows.std(), rel=0.05)
    assert abs(matrix[1002:].mean()) < 0.02
    assert len(np.unique(matrix[1002:])) > 7000


def test_rows_not_found_depend_on_seed_and_id_alone(tmp_path):
    vocabulary = ["[PAD]", "[UNK]", "a", "b", "c"]
    for name, words in (("one", ["a"]), ("two", ["a", "b"])):
        write_glove(tmp_path / name, words, np.float32([[1, -1, 0]] * len(words)))
    one, two = (load(tmp_path / name, vocabulary).matrix for name in ("one", "two"))
    np.testing.assert_array_equal(one[4], two[4])
    assert (one[4] != load(tmp_path / "one", vocabulary, seed=1).matrix[4]).all()


def test_tokens_with_spaces_are_skipped(path):
    path.write_text("chat 1 2 3\n. . . 4 5 6\nat name@example.com 7 8 9\n")
    assert load(path).found == 1


@pytest.mark.slow
def test_memory_follows_the_vocabulary_not_the_file(path):
    rows = np.random.default_rng(0).normal(size=(10_000, 100)).astype("f4")  # 4 MB as float32
    write_glove(path, ["chat", *(f"w{i}" for i in range(9_999))], rows)
    tracemalloc.start()
    load(path, dim=100)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2e6


@every_format
def test_wrong_dimension_and_non_finite_values_are_named(write, path):
    write(path)
    for dim in (2, 64):
        with pytest.raises(InputError, match=rf"words.* dimension 3, .* has {dim}.*--dim=3"):
            load(path, dim=dim)
    for bad in (np.nan, np.inf):
        write(path, WORDS, np.where(ROWS == 2, np.float32(bad), ROWS))
        with pytest.raises(InputError, match=r"words:(2|3): .*not finite"):
            load(path)


@cases(
    "content, message",
    ("chat 1 2 3\nmaison 1 2\n", r"words:2: has 2 numbers after its token, not 3"),
    ("chat 1 2 3\nmaison 1 2 3 4\n", r"words:2: has 4 numbers after its token, not 3"),
    ("chat 1 2 3\nmaison 1 zwei 3\n", r"words:2: has a bad number .*zwei"),
    ("chat 1 2 3\nmaison 1 2 1e39\n", r"words:2: .*not finite"),
    ("1 3\nchat 1 2 3\nmaison 1 2 3\n", r"states 1 tokens, but the file has 2"),
    ("chat 1 2 3\n" + "x" * (1 << 20), r"words:2: is longer than"),
    ("house 1 2 3\n", r"none of the 5 words of the vocabulary"),
    ("", r"words: the file is empty"),
    ("5 3", r"states 5 tokens, but the file has 0"),
    ("chat 3e38 3e38 3e38\nmaison -3e38 -3e38 -3e38", "words: its numbers are so large that"),
)
def test_damaged_text_file_says_where_and_why(content, message, path):
    path.write_text(content)
    words = [*VOCABULARY, *(f"absent{i}" for i in range(20))]  # whose rows are drawn
    with pytest.raises(InputError, match=message):
        load(path, words if "large" in message else VOCABULARY)


@cases(
    "content, message",
    (b"\x80\x02cposix\nsystem\n.", r"is a pickle.*smoothclir-convert-polyglot --input="),
    (b"\xba\x16\x4f\x2f", r"fastText model\. Give the \.vec file"),
    (b"\x1f\x8b\x08\x00", "compressed. Unpack it"),
    ("chat 1 2 3\n".encode("utf-16"), r"is UTF-16\. Convert it: iconv"),
    (b"6 3\n", r":2: the file is binary\. Convert it with gensim: KeyedVectors"),
)
def test_other_kinds_of_files_are_named_with_a_remedy(content, message, path):
    path.write_bytes(content + b"the " + ROWS.tobytes())
    with pytest.raises(InputError, match=message):
        load(path)
    by_name = path.with_suffix(".pkl")
    by_name.write_text("chat 1 2 3\n")
    with pytest.raises(InputError, match="is a pickle"):
        load(by_name)
    with pytest.raises(InputError, match="cannot be read"):
        load(path.parent)


@cases("junk", 0, 1, 7, 8, 11, 12, 27, 31)
def test_a_control_character_does_not_turn_text_into_binary(junk, path):
    write_word2vec(path, ["the", "chat", f"x{chr(junk)}y", *WORDS[3:]])
    np.testing.assert_array_equal(load(path).matrix[[3, 2]], ROWS[[1, 5]])


@cases("byte", 0, 255)
@cases("write", write_word2vec, write_glove)
def test_any_changed_byte_gives_right_rows_or_an_error(write, byte, path):
    write(path)
    right, content = load(path).matrix, path.read_bytes()
    loaded = 0
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([byte]) + content[place + 1 :])
        try:
            matrix = load(path).matrix
        except InputError:
            continue
        loaded += 1
        differ = [row for row in (2, 3, 4, 6) if not np.array_equal(matrix[row], right[row])]
        assert len(differ) <= 1, place
    assert loaded > 10


@cases("write, place", (write_word2vec, "line 5"), (write_glove, "line 4"))
def test_another_encoding_is_named_with_its_first_line(write, place, path):
    write(path)
    path.write_bytes(path.read_bytes().replace("été".encode(), "été".encode("latin-1")))
    message = rf"words: 1 of 6 tokens are not UTF-8, the first of them in {place}\. Convert it"
    with pytest.raises(InputError, match=message):
        load(path)


def test_few_cut_letters_are_left_out_with_a_warning(path, caplog):
    texts = [f"w{i} 1 2 3\n".encode() for i in range(2000)]
    texts[7] = b"cut\xc3 1 2 3\n"
    path.write_bytes(b"chat 1 2 3\n" + b"".join(texts))
    assert load(path).found == 1
    assert "1 of 2001 tokens are not UTF-8, the first of them in line 9" in caplog.text


@cases("write", write_word2vec, write_glove)
def test_a_byte_order_mark_is_no_part_of_the_first_word(write, path):
    write(path, ["chat", *WORDS[2:]], ROWS[1:])
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    np.testing.assert_array_equal(load(path).matrix[3], ROWS[1])


@cases("found", 20, 21, 200, 201)
def test_few_words_of_the_vocabulary_are_warned_of_and_hardly_any_an_error(found, path, caplog):
    vocabulary = ["[PAD]", "[UNK]", *(f"w{i}" for i in range(2000))]
    path.write_text("".join(f"w{i} 1 2 3\n" for i in range(found)))
    message = f"contains {found} of the 2000 words of the vocabulary"
    if found == 20:
        with pytest.raises(InputError, match=message):
            load(path, vocabulary)
        return
    assert load(path, vocabulary).found == found
    assert (message in caplog.text) == bool(caplog.text) == (found < 201)


def test_recipe_writes_vectors_of_our_tokens_with_unit_variance(tmp_path, monkeypatch):
    pytest.importorskip("gensim", reason="the recipe needs gensim")
    folder = tmp_path / "my_set"
    folder.mkdir()
    texts = ["Das Haus, das Meer!", "HAUS Meer Schiff"] * 10
    for role, lines in {
        "queries": ["q\tthe sea"],
        "documents": [f"d{number}\t{text}" for number, text in enumerate(texts)],
        "judgments": ["q\td0\t2"],
    }.items():
        (folder / f"{role}.tsv").write_text("".join(f"{line}\n" for line in lines))
    monkeypatch.chdir(tmp_path)

    page = Path(__file__).resolve().parents[2] / "docs" / "word_vectors.md"
    exec(re.search(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)[1], {})

    vocabulary = ["[PAD]", "[UNK]", "das", "haus", ",", "meer", "!", "schiff", "Haus"]
    loaded = load_embeddings(tmp_path / "de.vec", vocabulary, dim=64, seed=13)
    assert (loaded.found, loaded.total) == (6, 7)  # all but the last: tokens are lower-cased
    assert np.std(loaded.matrix[2:8]) == pytest.approx(1, abs=1e-4)
