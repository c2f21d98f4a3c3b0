"""Towers without TensorFlow: the vectors of the SavedModel, what is refused, what is imported."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.published import EPSILON, NoVerifier
from tests.training.tiny_set import tiny_settings, write_tiny_set
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.encoder import Encoder, encoder
from tf_smoothclir.encoder.version_directory import version_directory
from tf_smoothclir.publishing.export import export_run
from tf_smoothclir.publishing.export_directory import load_part, load_tower
from tf_smoothclir.search.explanation import SavedTower
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.train import train
from tf_smoothclir.utils.digests import file_digest, with_own_digest
from tf_smoothclir.utils.errors import InputError
from tf_smoothclir.utils.files import read_json, write_json

SETTINGS = settings(deadline=None, max_examples=100, derandomize=True)
OPTIONS = {
    "ngram_buckets": 50,
    "min_count": 4,  # rare words have n-grams alone
    "token_weights": "learned",
    "position_weights": "learned",
    "max_query_tokens": 30,
}
HOSTILE = [
    "",
    " ",
    b"\xff",
    b"a\0B",
    "x" * 5000,
    "ΟΔΟΣ ΣΑΣ",
    "漢字 タワー",
    "กำลังดี",
    "\ud800",
    "a  b ",
]


@pytest.fixture(scope="module")
def exports(export_dir, tmp_path_factory):
    """Kind of tower -> an export: words alone, and all options of the average pooling tower."""
    path = tmp_path_factory.mktemp("encoder")
    data = write_tiny_set(path / "data")
    options = tiny_settings(data, path / "cache", epochs=2, epsilon=EPSILON, **OPTIONS)
    train(options, path / "run")
    run = RunDirectory.load(path / "run")
    export_run(run, path / "options", search_model=False, verifier=NoVerifier())
    return {"words": export_dir, "options": path / "options"}


@pytest.fixture
def copy(export_dir, tmp_path):
    return shutil.copytree(export_dir, tmp_path / "copy")


def expected(export_dir, role, texts):
    rows = [t if isinstance(t, bytes) else t.encode("utf-8", "surrogatepass") for t in texts]
    return load_tower(export_dir, role).encode(text=tf.constant(rows, tf.string))["vector"].numpy()


@pytest.mark.parametrize("kind", ["words", "options"])
@pytest.mark.parametrize("role", ROLES)
def test_vectors_are_those_of_the_saved_model(exports, tiny_run, kind, role):
    words = tiny_run.vocabulary_tokens(role)[2:]
    generator = np.random.default_rng(13)
    texts = [" ".join(generator.choice(words, n)) for n in (1, 2, 5, 29, 30, 31, 200, 900)]
    texts += [text.upper() + ", xunseen!" for text in texts] + HOSTILE
    found = Encoder(exports[kind], role).encode(texts)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected(exports[kind], role, texts), rtol=0, atol=1e-6)
    assert np.abs(found).max() > 0.01


@pytest.mark.parametrize("kind", ["words", "options"])
@pytest.mark.parametrize("role", ROLES)
def test_words_and_their_vectors_are_those_of_the_saved_model(exports, kind, role):
    texts = ["word1 WORD2, word1 mot3", "", "漢字 xunseen!", "word4 mot5 " * 300]
    found = Encoder(exports[kind], role).token_vectors(texts)
    theirs = SavedTower(load_part(exports[kind], role).model, EPSILON).token_vectors(texts)
    assert [one.words for one in found] == [one.words for one in theirs]
    for ours, one in zip(found, theirs):
        np.testing.assert_allclose(ours.vectors, one.vectors, rtol=1e-5, atol=1e-6)
    assert Encoder(exports[kind], role).token_vectors([]) == []


@pytest.fixture(scope="module")
def pair(exports):
    return Encoder(exports["options"], "query"), load_tower(exports["options"], "query").encode


@given(st.lists(st.one_of(st.binary(max_size=40), st.text(max_size=40)), min_size=1, max_size=20))
@SETTINGS
def test_vectors_of_any_texts_are_those_of_the_saved_model(pair, texts):
    ours, theirs = pair
    rows = [t if isinstance(t, bytes) else t.encode("utf-8", "surrogatepass") for t in texts]
    vectors = theirs(text=tf.constant(rows, tf.string))["vector"]
    np.testing.assert_allclose(ours.encode(texts), vectors, rtol=0, atol=1e-6)


def misspelt(words, generator):
    """Words with one letter left out or doubled, or with an end of another one."""
    for word in words:
        place = int(generator.integers(len(word)))
        yield word[:place] + word[place + 1 :]
        yield word[: place + 1] + word[place:]
        yield word[:place] + str(generator.choice(words))[place:]


@pytest.mark.parametrize("kind", ["words", "options"])
def test_what_is_known_of_texts_is_what_the_saved_model_says(exports, tiny_run, kind):
    words = tiny_run.vocabulary_tokens("query")[2:]
    generator = np.random.default_rng(14)
    texts = [*misspelt(words, generator), "xunseen " * 200 + words[0], ".", "?! ...", *HOSTILE]
    texts += [f"{words[0]}, {text}!" for text in texts[:9]]
    rows = [t if isinstance(t, bytes) else t.encode("utf-8", "surrogatepass") for t in texts]
    model = load_part(exports[kind], "query").model
    found = model.signatures["evidence"](text=tf.constant(rows, tf.string))
    names = {(True, False): b"words", (False, True): b"n-grams", (False, False): b"nothing"}
    read = Encoder(exports[kind], "query").known(texts)
    levels = [names[one.known, one.resembling] for one in read]
    assert levels == found["evidence"].numpy().tolist()
    unknown = [" ".join(one.unknown).encode("utf-8", "surrogatepass") for one in read]
    assert unknown == found["unknown"].numpy().tolist()
    assert set(levels) == {b"words", b"nothing"} | ({b"n-grams"} if kind == "options" else set())


def test_a_vector_does_not_depend_on_the_batch(exports, monkeypatch):
    texts = ["apple red", "", *(f"word{i} apple, Sea" for i in range(40)), "sea"]
    whole = Encoder(exports["options"], "query").encode(texts)
    monkeypatch.setattr(encoder, "_TEXTS_PER_BATCH", 7)
    monkeypatch.setattr(encoder, "_MOST_CHUNKS", 3)  # forgets all the time
    monkeypatch.setattr(encoder, "_NUMBERS_PER_STEP", 1)
    parts = Encoder(exports["options"], "query").encode(iter(texts))
    np.testing.assert_allclose(parts, whole, rtol=0, atol=1e-6)


def test_no_text_gives_no_vector(export_dir):
    tower = Encoder(export_dir, "query")
    assert tower.encode([]).shape == (0, tower.dim)


def test_a_single_text_is_refused(export_dir):
    with pytest.raises(TypeError, match=r"write \[text\]"):
        Encoder(export_dir, "query").encode("text")


def test_importing_and_encoding_need_numpy_alone(export_dir):
    program = (
        "import sys; from tf_smoothclir.encoder import Encoder;"
        "print(Encoder(sys.argv[1], 'query').encode(['a', 'b']).shape[0],"
        " *{name.split('.')[0] for name in sys.modules})"
    )
    child = [sys.executable, "-c", program, str(export_dir)]
    number, *modules = subprocess.run(
        child, capture_output=True, text=True, check=True
    ).stdout.split()
    assert number == "2"
    assert not {"tensorflow", "keras", "absl", "scipy"} & set(modules)


def test_the_latest_complete_version_counts_and_any_may_be_asked_for(copy):
    for role in ROLES:
        shutil.copytree(copy / f"{role}_tower/1", copy / f"{role}_tower/2")
    shutil.copytree(copy / "document_tower/1", copy / "document_tower/3")
    versions = {"query": "2", "document": "2"}
    for role, version in versions.items():
        assert version_directory(copy, role, None).name == version
    assert version_directory(copy, "document", 1).name == "1"


@pytest.mark.parametrize("role", ROLES)
def test_a_copy_of_one_tower_will_do(copy, export_dir, role):
    for name in {"query_tower", "document_tower", "search"} - {f"{role}_tower"}:
        shutil.rmtree(copy / name)
    found, whole = Encoder(copy, role), Encoder(export_dir, role)
    assert found.pair_id == whole.pair_id
    np.testing.assert_array_equal(found.encode(["a b"]), whole.encode(["a b"]))


@pytest.mark.parametrize(
    "name",
    ["variables/variables.data-00000-of-00001", "assets/query.txt", "assets.extra/encoder.json"],
)
def test_a_changed_file_is_named(copy, name):
    path = copy / "query_tower/1" / name
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(InputError, match=f"{name}: the file is not the one"):
        Encoder(copy, "query")


def test_a_tower_without_a_description_is_refused_with_a_remedy(copy):
    (copy / "query_tower/1/assets.extra/encoder.json").unlink()
    with pytest.raises(InputError, match=r"without TensorFlow.*Load the tower as a SavedModel"):
        Encoder(copy, "query")


def test_a_changed_entry_of_a_manifest_is_found(copy):
    path = copy / "query_tower/1/manifest.json"
    write_json(path, {**read_json(path), "pair_id": "f" * 64})
    with pytest.raises(InputError, match="its entries are not those that its digest was made of"):
        Encoder(copy, "query")


def test_longer_ngrams_than_can_be_hashed_are_refused(exports, tmp_path):
    copied = shutil.copytree(exports["options"], tmp_path / "copy") / "query_tower/1"
    description = read_json(copied / "assets.extra/encoder.json")
    description["ngrams"]["longest"] = 17
    write_json(copied / "assets.extra/encoder.json", description)
    manifest = read_json(copied / "manifest.json")
    digest = file_digest(copied / "assets.extra/encoder.json")
    manifest["files"]["assets.extra/encoder.json"] = digest
    write_json(copied / "manifest.json", with_own_digest(manifest))
    with pytest.raises(InputError, match=r"17 characters.*at most 16"):
        Encoder(tmp_path / "copy", "query")


@pytest.mark.parametrize("content", ["{", "[]", json.dumps({"role": "search", "files": {}})])
def test_a_manifest_of_something_else_is_refused(copy, content):
    (copy / "query_tower/1/manifest.json").write_text(content)
    with pytest.raises(InputError, match="not the manifest of a query tower"):
        Encoder(copy, "query")


@pytest.mark.parametrize(("role", "version"), [("query", 7), ("document", 7)])
def test_a_missing_version_is_named(export_dir, role, version):
    with pytest.raises(InputError, match=f"no complete {role} tower of version 7"):
        Encoder(export_dir, role, version)


def test_another_role_is_refused(export_dir):
    with pytest.raises(InputError, match="Give 'query' or 'document'"):
        Encoder(export_dir, "search")
