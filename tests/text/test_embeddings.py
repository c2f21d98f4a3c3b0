"""Every format gives the same rows; every kind of damage is an error that says where."""

import itertools
import tracemalloc

import numpy as np
import pytest

from tf_smoothclir.text.embeddings import load_embeddings, save_embeddings
from tf_smoothclir.utils.errors import InputError

VOCABULARY = ["[PAD]", "[UNK]", "maison", "chat", "été", "absent", "paris"]
WORDS = ["the", "chat", "Paris", "été", "PARIS", "maison"]
ROWS = np.float32([[9, 9, 9], [0.5, -1, 2], [7, 0.25, 1], [1, 2, 3], [8, 8, 8], [-0.125, 0, 4]])
DIM = 3


def lines(words=WORDS, rows=ROWS, end="\n"):
    return "".join(f"{word} {' '.join(map(str, row))}{end}" for word, row in zip(words, rows))


def write_word2vec_text(path, words=WORDS, rows=ROWS):
    path.write_text(f"{len(words)} {rows.shape[1]}\n{lines(words, rows)}", encoding="utf-8")


def write_fasttext(path, words=WORDS, rows=ROWS):  # a blank at the end of each line
    text = f"{len(words)} {rows.shape[1]}\n{lines(words, rows, end=' ' + chr(10))}"
    path.write_text(text, encoding="utf-8")


def write_glove(path, words=WORDS, rows=ROWS):
    path.write_text(lines(words, rows), encoding="utf-8")


def write_glove_crlf(path, words=WORDS, rows=ROWS):
    path.write_bytes(lines(words, rows, end="\r\n").encode())


def write_binary(path, words=WORDS, rows=ROWS, newline=b"\n"):
    records = (w.encode() + b" " + r.astype("<f4").tobytes() + newline for w, r in zip(words, rows))
    path.write_bytes(b"%d %d\n" % (len(words), rows.shape[1]) + b"".join(records))


def write_binary_without_newlines(path, words=WORDS, rows=ROWS):
    write_binary(path, words, rows, newline=b"")


def write_npz(path, words=WORDS, rows=ROWS):
    path = path.with_suffix(".npz")
    save_embeddings(path, words, rows)
    return path


WRITERS = (
    write_word2vec_text,
    write_fasttext,
    write_glove,
    write_glove_crlf,
    write_binary,
    write_binary_without_newlines,
    write_npz,
)
every_format = pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__[6:])


def load(path, vocabulary=VOCABULARY, dim=DIM, seed=0):
    return load_embeddings(path, vocabulary, dim=dim, seed=seed)


@every_format
def test_rows_by_hand(write, tmp_path):
    path = write(tmp_path / "words") or tmp_path / "words"
    matrix, found, total, in_file = load(path)
    assert matrix.dtype == np.float32
    assert matrix.shape == (7, DIM)
    assert (found, total) == (4, 5)  # all but "absent"
    assert in_file[2:].tolist() == [True, True, True, False, True]
    np.testing.assert_array_equal(matrix[0], 0)
    np.testing.assert_array_equal(matrix[2], [-0.125, 0, 4])
    np.testing.assert_array_equal(matrix[3], [0.5, -1, 2])
    np.testing.assert_array_equal(matrix[4], [1, 2, 3])
    np.testing.assert_array_equal(matrix[6], [7, 0.25, 1])  # "Paris", the first cased entry


@every_format
def test_many_rows_cross_every_chunk_border(write, tmp_path):
    rng = np.random.default_rng(0)
    words = [f"w{i}" + "é" * (i % 5) for i in range(3000)]
    rows = rng.normal(size=(3000, 100)).astype("f4")  # 1.2 MB, more than one chunk
    path = write(tmp_path / "words", words, rows) or tmp_path / "words"
    matrix, found, _, _ = load(path, ["[PAD]", "[UNK]", *words[::-1]], dim=100)
    assert found == 3000
    np.testing.assert_allclose(matrix[2:], rows[::-1], rtol=1e-6)


@pytest.mark.parametrize("order", itertools.permutations(["Été", "ÉTÉ", "été"]))
def test_exact_token_wins_over_cased_ones_in_any_order(order, tmp_path):
    rows = np.float32([[0, 0, 1], [0, 0, 2], [0, 0, 3]])
    write_glove(tmp_path / "words", order, rows)
    matrix, found, _, _ = load(tmp_path / "words", ["[PAD]", "[UNK]", "été"])
    np.testing.assert_array_equal(matrix[2], rows[order.index("été")])
    assert found == 1


def test_first_of_equal_tokens_wins(tmp_path):
    write_glove(tmp_path / "words", ["chat", "chat"], np.float32([[1, 1, 1], [2, 2, 2]]))
    np.testing.assert_array_equal(load(tmp_path / "words").matrix[3], [1, 1, 1])


def test_unknown_row_comes_from_the_file_and_is_not_counted(tmp_path):
    write_glove(tmp_path / "words", ["[UNK]", "chat"], np.float32([[1, 2, 3], [4, 5, 6]]))
    matrix, found, total, _ = load(tmp_path / "words")
    np.testing.assert_array_equal(matrix[1], [1, 2, 3])
    assert (found, total) == (1, 5)


def test_rows_not_found_have_the_spread_of_the_found_ones(tmp_path):
    words = [f"w{i}" for i in range(2000)]
    rows = np.random.default_rng(0).normal(size=(1000, 8), scale=0.3).astype("f4")
    write_glove(tmp_path / "words", words[:1000], rows)
    matrix = load(tmp_path / "words", ["[PAD]", "[UNK]", *words], dim=8).matrix
    assert matrix[1002:].std() == pytest.approx(rows.std(), rel=0.05)
    assert abs(matrix[1002:].mean()) < 0.02
    assert len(np.unique(matrix[1002:])) > 7000


def test_rows_not_found_depend_on_seed_and_id_alone(tmp_path):
    vocabulary = ["[PAD]", "[UNK]", "a", "b", "c"]
    write_glove(tmp_path / "one", ["a"], np.float32([[1, -1, 0]]))
    write_glove(tmp_path / "two", ["a", "b"], np.float32([[1, -1, 0], [1, -1, 0]]))
    one, two = load(tmp_path / "one", vocabulary), load(tmp_path / "two", vocabulary)
    np.testing.assert_array_equal(one.matrix[4], two.matrix[4])
    np.testing.assert_array_equal(one.matrix, load(tmp_path / "one", vocabulary).matrix)
    assert (one.matrix[4] != load(tmp_path / "one", vocabulary, seed=1).matrix[4]).all()


def test_tokens_with_spaces_are_skipped(tmp_path):
    (tmp_path / "words").write_text("chat 1 2 3\n. . . 4 5 6\nat name@example.com 7 8 9\n")
    assert load(tmp_path / "words").found == 1


@pytest.mark.parametrize("shift", range(4))
def test_letter_cut_by_the_first_look_is_not_taken_for_binary(shift, tmp_path):
    words = ["chat", "x" * shift + "é中" * 2000]
    write_word2vec_text(tmp_path / "words", words, ROWS[:2])
    np.testing.assert_array_equal(load(tmp_path / "words").matrix[3], ROWS[0])


@every_format
def test_memory_follows_the_vocabulary_not_the_file(write, tmp_path):
    rows = np.random.default_rng(0).normal(size=(10_000, 100)).astype("f4")  # 4 MB as float32
    words = ["chat", *(f"w{i}" for i in range(9_999))]
    path = write(tmp_path / "words", words, rows) or tmp_path / "words"
    tracemalloc.start()
    try:
        load(path, dim=100)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2e6


# ---- mistakes and damage ------------------------------------------------------------------------


@every_format
def test_wrong_dimension_names_the_flag(write, tmp_path):
    path = write(tmp_path / "words") or tmp_path / "words"
    with pytest.raises(InputError, match=r"words.* dimension 3, but the model has 64.*--dim=3"):
        load(path, dim=64)
    with pytest.raises(InputError, match="--dim=3"):
        load(path, dim=2)


@every_format
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_non_finite_value_is_named(write, bad, tmp_path):
    rows = ROWS.copy()
    rows[1, 2] = bad
    path = write(tmp_path / "words", WORDS, rows) or tmp_path / "words"
    with pytest.raises(InputError, match=r"words(\.npz)?:(2|3|.* record 2).* not finite"):
        load(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("chat 1 2 3\nmaison 1 2\n", r"words:2: has 2 numbers after its token, not 3"),
        ("chat 1 2 3\nmaison 1 2 3 4\n", r"words:2: has 4 numbers after its token, not 3"),
        ("chat 1 2 3\n\nmaison 1 2 3\n", r"words:2: has 0 numbers"),
        ("chat 1 2 3\nmaison 1 zwei 3\n", r"words:2: has a bad number .*zwei"),
        ("chat 1 2 3\nmaison 1 2 1e39\n", r"words:2: .*not finite"),
        ("2 3\nchat 1 2 3\nmaison 1 zwei 3\n", r"words:3: has a bad number"),
        ("3 3\nchat 1 2 3\nmaison 1 2 3\n", r"states 3 tokens, but the file has 2"),
        ("1 3\nchat 1 2 3\nmaison 1 2 3\n", r"states 1 tokens, but the file has 2"),
        ("chat 1 2 3\n" + "x" * (1 << 20), r"words:2: is longer than"),
        ("house 1 2 3\n", r"none of the 5 words of the vocabulary"),
        ("", r"words: the file is empty"),
        ("5 3", r"states 5 tokens, but the file has 0"),
    ],
)
def test_damaged_text_file_says_where_and_why(content, message, tmp_path):
    (tmp_path / "words").write_text(content)
    with pytest.raises(InputError, match=message):
        load(tmp_path / "words")


@pytest.mark.parametrize("cut", [1, 5, 40, 60])
def test_truncated_binary_names_the_record(cut, tmp_path):
    path = tmp_path / "words.bin"
    write_binary_without_newlines(path)
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(InputError, match=r"words\.bin: record [3-6] is cut off, but .* states 6"):
        load(path)


def test_truncated_or_flipped_npz_is_refused(tmp_path):
    path = write_npz(tmp_path / "words")
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    with pytest.raises(InputError, match=r"words\.npz: the file is not a whole embedding archive"):
        load(path)
    place = whole.index(ROWS.tobytes())
    path.write_bytes(whole[:place] + b"\x01" + whole[place + 1 :])
    with pytest.raises(InputError, match=r"not a whole embedding archive .*CRC"):
        load(path)


@pytest.mark.parametrize(
    "change",
    [
        {"offsets": np.int64([0, 4, 2, 8])},
        {"offsets": np.int64([0, 4, 8, 1 << 40])},
        {"offsets": np.int64([-4, 0, 4, 4])},
        {"offsets": np.int64([0, 4])},
        {"tokens": np.array(["chat", None], object)},
        {"vectors": np.zeros(3, "f4")},
        {"vectors": np.zeros([3, 3], "f8")},
    ],
)
def test_npz_of_another_layout_is_refused(change, tmp_path):
    arrays = {
        "tokens": np.frombuffer(b"chatchat", np.uint8),
        "offsets": np.int64([0, 4, 8, 8]),
        "vectors": np.ones([3, 3], "f4"),
    }
    np.savez(tmp_path / "right.npz", **arrays)
    assert load(tmp_path / "right.npz").found == 1
    np.savez(tmp_path / "wrong.npz", **{**arrays, **change})
    with pytest.raises(InputError, match=r"wrong\.npz: the file is not a whole embedding archive"):
        load(tmp_path / "wrong.npz")


@pytest.mark.parametrize("name", ["words.pkl", "words.vec"])
def test_pickle_is_not_opened_and_names_the_converter(name, tmp_path):
    (tmp_path / name).write_bytes(b"\x80\x02cposix\nsystem\n.")
    with pytest.raises(InputError, match=r"is a pickle.*trainers\.convert_polyglot --input="):
        load(tmp_path / name)


def test_fasttext_model_and_gzip_ask_for_the_vec_file(tmp_path):
    for magic in (b"\xba\x16\x4f\x2f", b"\x1f\x8b\x08\x00"):
        (tmp_path / "words.bin").write_bytes(magic + bytes(100))
        with pytest.raises(InputError, match=r"Give the \.vec file"):
            load(tmp_path / "words.bin")


def test_missing_file_and_directory_are_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere: the file cannot be read"):
        load(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"cannot be read"):
        load(tmp_path)


def test_failed_save_leaves_the_old_file_and_nothing_else(tmp_path):
    path = write_npz(tmp_path / "words")
    before = path.read_bytes()
    with pytest.raises(ValueError, match="could not convert"):
        save_embeddings(path, ["a"], [["x"]])
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
