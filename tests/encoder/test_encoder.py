"""Towers and tokens without TensorFlow: those of the SavedModel, for any text."""

import json
import runpy
import shutil
import types
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import cases
from tests.command_line.forked import program
from tests.published import EPSILON, OPTIONS, NoVerifier, encode
from tests.text.test_tokenizer import tokens
from tests.training.fixtures import run_of
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.encoder import Encoder, description, encoder, tokenizer, word_evidence
from tf_smoothclir.encoder.tokenizer import has_letters, passage_text, tokens_of
from tf_smoothclir.publishing.export import export_run
from tf_smoothclir.publishing.export_directory import load_part
from tf_smoothclir.search.explanation import SavedTower
from tf_smoothclir.storage.folder import write_manifest
from tf_smoothclir.text import evidence, subwords
from tf_smoothclir.text.tokenizer import tokenize
from tf_smoothclir.utils import composition, parallel
from tf_smoothclir.utils.errors import InputError

TEXTS = ["", " ", b"\xff", b"a\0B", "x" * 5000, "ΟΔΟΣ ΣΑΣ", "漢字 タワー", "กำลังดี", "\ud800"]
TEXTS.append("a  b ")
MANIFEST, DESCRIPTION = "manifest.json", "assets.extra/encoder.json"
BUCKETS = 2**63 - 1  # almost the whole hash
INVISIBLE = tokenizer._class("invisible")
# Of what tokens have: of other code points, releases of TensorFlow have other n-grams.
VISIBLE = st.characters(codec="utf-8").filter(lambda character: ord(character) not in INVISIBLE)
GRAPH = runpy.run_path(str(Path(__file__).parents[2] / ".ci" / "unicode_tables"))
SETTINGS = settings(max_examples=300)
# Sigmas and what decides about them, unspaced scripts and their marks, joiners, kinds of space,
# letters whose lower case is special.
_TRAPS = (
    "aAbZ09_ΣσςİIıiＩｉßẞﬁﻻ٣๗ｶﾞ\u0307\u064eـ"
    "เกาลั่ຄົ\u0e4d\u0e32ကင\u103a\u1039\u1037ខ\u17d2కட\u0bcd\u0c4dനൻ\u0d4dአ።أىکا\u0654и"
    "中タกำ\u0301\u0345\u200b\u200d\xad.,'’ⓐⒶ\u3099한Ꙁ\0\t\xa0\u3000\x85\ufffd😀K\ufdd0\U0001ffff"
)
# Lead and continuation bytes that almost make characters: overlong, surrogates, too large, cut.
_BYTES = (
    b"aA \0\xc0\xc2\x85\xa0\xc3\xa4\xce\xa3\xe0\xbf\xe4\xb8\xad\xed\xa0\x80\xf0\x9f\xf4\x90\xff"
)
DRAWN_TEXTS = st.one_of(
    *(texts.map(str.encode) for texts in (st.text(_TRAPS, max_size=30), st.text(max_size=20))),
    *(st.lists(st.sampled_from(_BYTES), max_size=16).map(bytes), st.binary(max_size=16)),
)


@pytest.fixture(scope="module")
def exports(export_dir, tiny, tmp_path_factory):
    """Kind of tower -> an export: words alone, and all options of the average pooling tower."""
    path = tmp_path_factory.mktemp("encoder")
    run = run_of(tiny(epsilon=EPSILON, **OPTIONS, max_query_tokens=30), path / "run")
    export_run(run, path / "options", search_model=False, verifier=NoVerifier())
    return {"words": export_dir, "options": path / "options"}


@pytest.fixture
def copy(export_dir, tmp_path):
    return shutil.copytree(export_dir, tmp_path / "copy")


def rows_of(texts):
    rows = [t if isinstance(t, bytes) else t.encode("utf-8", "surrogatepass") for t in texts]
    return tf.constant(rows, tf.string)


@cases("kind", "words", "options")
@cases("role", *ROLES)
def test_vectors_of_texts_and_words_are_those_of_the_saved_model(exports, tiny_run, kind, role):
    words = tiny_run.vocabulary_tokens(role)[2:]
    generator = np.random.default_rng(13)
    texts = [" ".join(generator.choice(words, n)) for n in (1, 2, 5, 29, 30, 31, 200, 900)]
    texts += [text.upper() + ", xunseen!" for text in texts] + TEXTS
    encoder = Encoder(exports[kind], role)
    found = encoder.encode(texts)
    expected = encode(load_part(exports[kind], role).model, rows_of(texts))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    assert np.abs(found).max() > 0.01
    texts = ["wordb WORDC, wordb motd", "", "漢字 xunseen!", "worde motf " * 300]
    found = encoder.token_vectors(texts)
    theirs = SavedTower(load_part(exports[kind], role).model, EPSILON).token_vectors(texts)
    assert [one.words for one in found] == [one.words for one in theirs]
    for ours, one in zip(found, theirs, strict=True):
        np.testing.assert_allclose(ours.vectors, one.vectors, rtol=1e-5, atol=1e-6)
    assert encoder.token_vectors([]) == []
    assert encoder.encode([]).shape == (0, encoder.dim)
    for wrong in ("text", {"d1": "text"}, types.SimpleNamespace(columns=["id"]), 5):
        with pytest.raises(TypeError, match=r"no list of texts, but a .*write \[text\]"):
            encoder.encode(wrong)
    for read in (encoder.encode, encoder.known, encoder.token_vectors):
        with pytest.raises(TypeError, match=r"texts\[1\] is nan, a float: give a string"):
            read(["text", float("nan")])  # as a data frame has it


@cases("kind", "words", "options")
def test_what_is_known_of_texts_is_what_the_saved_model_says(exports, tiny_run, kind):
    words = tiny_run.vocabulary_tokens("query")[2:]
    places = np.random.default_rng(14).integers(4, size=len(words))
    texts = [word[:place] + word[place + 1 :] for word, place in zip(words, places)]  # misspelt
    texts += [word[: place + 1] + word[place:] for word, place in zip(words, places)]
    texts += ["xunseen " * 200 + words[0], ".", "?! ...", *TEXTS]
    texts += [f"{words[0]}, {text}!" for text in texts[:9]]
    found = load_part(exports[kind], "query").model.signatures["evidence"](text=rows_of(texts))
    names = {(True, False): b"words", (False, True): b"n-grams", (False, False): b"nothing"}
    read = Encoder(exports[kind], "query").known(texts)
    levels = [names[one.known, one.resembling] for one in read]
    assert levels == found["evidence"].numpy().tolist()
    unknown = [" ".join(one.unknown).encode("utf-8", "surrogatepass") for one in read]
    assert unknown == found["unknown"].numpy().tolist()
    most = 30 if kind == "options" else 200
    assert [one.cut for one in read[: 2 * len(words) + 1]] == [0] * 2 * len(words) + [201 - most]
    assert set(levels) == {b"words", b"nothing"} | ({b"n-grams"} if kind == "options" else set())


def test_a_vector_does_not_depend_on_the_batch(exports, monkeypatch):
    texts = ["apple red", "", *(f"word{i} apple, Sea" for i in range(40)), "sea"]
    whole = Encoder(exports["options"], "query").encode(texts)
    monkeypatch.setattr(parallel, "TEXTS_PER_BATCH", 7)
    monkeypatch.setattr(encoder, "_MOST_REMEMBERED", 3)  # forgets all the time
    monkeypatch.setattr(encoder, "_NUMBERS_PER_STEP", 1)
    parts = Encoder(exports["options"], "query").encode(iter(texts))
    np.testing.assert_allclose(parts, whole, rtol=0, atol=1e-6)


def test_importing_and_encoding_need_numpy_alone(export_dir):
    code = "import sys; from tf_smoothclir.encoder import Encoder;"
    code += "print(Encoder(sys.argv[1], 'query').encode(['a', 'b']).shape[0],"
    code += " *{name.split('.')[0] for name in sys.modules})"
    number, *modules = program(code, str(export_dir))[0].split()
    assert number == "2"
    assert not {"tensorflow", "keras", "absl", "scipy"} & set(modules)


def test_the_latest_complete_version_counts_and_any_may_be_asked_for(copy, export_dir):
    for role in ROLES:
        shutil.copytree(copy / f"{role}_tower/1", copy / f"{role}_tower/2")
        (copy / f"{role}_tower/007").mkdir()  # what somebody named so is no version
    shutil.copytree(copy / "document_tower/1", copy / "document_tower/3")
    assert [description.version_directory(copy, role, None).name for role in ROLES] == ["2", "2"]
    assert description.version_directory(copy, "document", 1).name == "1"
    for name in ("document_tower", "search"):  # a copy of one tower will do
        shutil.rmtree(copy / name)
    assert Encoder(copy, "query").pair_id == Encoder(export_dir, "query").pair_id


@cases("name", "variables/variables.data-00000-of-00001", "assets/query.txt", DESCRIPTION)
def test_a_changed_file_is_named(copy, name):
    path = copy / "query_tower/1" / name
    for change, said in (lambda: path.write_bytes(b" "), "has"), (path.unlink, "cannot be read"):
        change()
        with pytest.raises(InputError, match=f"it is damaged: {name} {said}"):
            Encoder(copy, "query")


def test_what_is_no_tower_that_can_be_read_is_refused(copy):
    path = copy / "query_tower/1"
    manifest = (path / MANIFEST).read_text()
    for text, message in (
        ("{", "not a manifest of the kind 'query'"),
        (manifest.replace('"fr"', '"it"'), "its entries are not those that"),
    ):
        (path / MANIFEST).write_text(text)
        with pytest.raises(InputError, match=message):
            Encoder(copy, "query")
    (path / DESCRIPTION).unlink()
    write_manifest(path, "query", json.loads(manifest)["facts"])
    with pytest.raises(InputError, match=r"without TensorFlow.*Load the tower as a SavedModel"):
        Encoder(copy, "query")
    with pytest.raises(InputError, match="no complete query tower of version 7"):
        Encoder(copy, "query", 7)
    with pytest.raises(InputError, match="Give 'query' or 'document'"):
        Encoder(copy, "search")


def tokens_in_graph(texts, pretokenized=False):
    rows = tokenize(tf.constant(texts, tf.string), 1_000_000, pretokenized).to_list()
    return [[token.decode() for token in row] for row in rows]


@given(st.lists(DRAWN_TEXTS, min_size=1, max_size=20))
@SETTINGS
def test_any_bytes_and_chunks_between_spaces_have_the_tokens_of_the_graph(rows):
    texts = [row.decode("utf-8", "replace") for row in rows]
    found = [tokens_of(text) for text in texts]
    assert found == tokens_in_graph(rows)
    assert found == [[one for part in text.split(" ") for one in tokens_of(part)] for text in texts]
    as_they_are = tokens_in_graph(rows, pretokenized=True)
    assert [tokens_of(text, pretokenized=True) for text in texts] == as_they_are


@cases(
    "text, title, passages",
    ("Ein Haus, das alt ist", "", ["Ein Haus, das", "Haus, das alt ist"]),
    ("日本語です", "", ["日本語", "本語で"]),
    ("alt und neu", "Das Haus", ["alt und", "alt und neu"]),
    ("alt", "", ["alt"]),
)
def test_passages_are_shown_in_whole_words(text, title, passages):
    assert [passage_text(text, n, 4, title) for n in range(len(passages))] == passages


def test_long_texts():
    text = "Wörter Σ 漢字! " * 20_000
    assert tokens_of(text) == tokens(text)
    assert tokens_of("x" * (1 << 20)) == ["x" * (1 << 20)]
    assert tokens_of("a\ud800b") == ["a", "\ufffd", "b"]


@cases("number", 0x3000, pytest.param(None, marks=pytest.mark.slow))
def test_the_tables_and_what_is_a_word_are_those_of_the_graph(number):
    characters = GRAPH["CHARACTERS"][:number]
    found, lower = GRAPH["classes"](characters)
    codes = set(map(ord, characters))
    for name, members in found.items():
        of_table = {code for range_ in tokenizer._class(name).ranges for code in range(*range_)}
        assert of_table & codes == set(members), name
    table = {code: text.strip(" ") for code, text in tokenizer._lower_case().items()}
    assert {code: text for code, text in table.items() if code in codes} == lower
    assert set(tokenizer._tables()["long_lower"]) == {"df", "1e9e"}
    of_forms = {text: tokens_of(text) for text in map(chr, composition.forms())}
    assert list(of_forms.values()) == tokens_in_graph(list(of_forms))
    tokens = GRAPH["ALL"][:number]  # pretokenized texts may have any character as a token
    tokens += ["_", "__", "a_", "_\u0301", "\u0301", "x\u0301", "\u4e2d\u0301", "\U0001f600"]
    words = tf.strings.regex_full_match(tokens, evidence.WORD).numpy()
    assert [token for token, word in zip(tokens, words) if has_letters(token) != word] == []


def test_hashes_are_those_of_the_graph():
    generator = np.random.default_rng(65)
    texts = [generator.bytes(length) for length in range(65) for _ in range(20)]
    expected = tf.strings.to_hash_bucket_fast(texts, BUCKETS).numpy().astype(np.uint64)
    np.testing.assert_array_equal(word_evidence.fingerprints(texts) % np.uint64(BUCKETS), expected)


@given(
    st.lists(st.text(VISIBLE, min_size=1, max_size=70), max_size=20),
    st.integers(1, 5),
    st.integers(0, 11),
    st.integers(1, 1 << 31 - 1),
)
@SETTINGS
def test_buckets_are_those_of_the_graph(words, shortest, more, buckets):
    found, numbers = word_evidence.ngram_buckets(words, buckets, shortest, shortest + more)
    expected = subwords.ngrams(tf.constant(words, tf.string), buckets, shortest, shortest + more)
    np.testing.assert_array_equal(found, expected.flat_values)
    np.testing.assert_array_equal(numbers, expected.row_lengths())
