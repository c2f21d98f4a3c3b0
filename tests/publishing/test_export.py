"""Exporting a run: the same vectors in a process that has only TensorFlow."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

from tests.published import DEPTH, EPSILON
from tests.training.tiny_set import DOCUMENTS, QUERIES, words_of
from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.publishing.export import export_run
from tf_smoothclir.publishing.export_directory import (
    MODELS,
    exported_versions,
    load_part,
    load_tower,
    part_dir,
)
from tf_smoothclir.publishing.warm_up import BATCH_SIZES, warm_up_batches
from tf_smoothclir.text.word_encoder import TextEncoder
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.tasks import load_model
from tf_smoothclir.utils.errors import InputError

SERVED = ("document", "search", "query")
TEXTS = {
    "query": ["word1 word2", "", "Word3, WORD4!", "nothing known"],
    "document": ["mot1 mot2 mot3", "mot0", "", "déjà"],
}
# Like a model server: nothing of this package, another working directory, the model moved.
SERVER = """
import json
import sys

import numpy as np
import tensorflow as tf

directory, texts = sys.argv[1], json.loads(sys.argv[2])
result = {}
for role, rows in texts.items():
    model = tf.saved_model.load(f"{directory}/{role}_tower/1")
    vectors = model.signatures["serving_default"](text=tf.constant(rows))["vector"]
    result[role] = vectors.numpy().tolist()
result["modules"] = [name for name in sys.modules if name.startswith("tf_smoothclir")]
print(json.dumps(result))
"""


def test_a_fresh_process_has_the_vectors_of_the_trained_model(export_dir, tiny_run, tmp_path):
    moved = shutil.copytree(export_dir, tmp_path / "moved")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    child = subprocess.run(
        [sys.executable, "-c", SERVER, str(moved), json.dumps(TEXTS)],
        cwd=tmp_path,
        env={**environment, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    served = json.loads(child.stdout)
    assert served["modules"] == []
    for role in ROLES:
        encoder = TextEncoder(tiny_run.vocabulary / f"{role}.txt", 200)
        expected = load_model(tiny_run).vectors(role, encoder(tf.constant(TEXTS[role])))
        np.testing.assert_allclose(served[role], expected, rtol=0, atol=1e-6)
        assert np.abs(expected).max() > 0.1


def test_second_export_is_the_next_version_and_leaves_the_first(
    tiny_run, export_dir, tmp_path, no_child_process
):
    path = shutil.copytree(export_dir, tmp_path / "export")
    before = load_tower(path, "query", 1)[1]
    assert export_run(tiny_run, path) == 2
    assert [exported_versions(path, role) for role in SERVED] == [[1, 2]] * 3
    assert load_tower(path, "query", 1)[1] == before
    first, second = (load_tower(path, "query", version)[0] for version in (1, 2))
    text = tf.constant(TEXTS["query"])
    np.testing.assert_array_equal(first(text=text)["vector"], second(text=text)["vector"])


def test_search_model_has_the_collection_of_the_run(export_dir, tiny_run):
    model, manifest = load_part(export_dir, "search")
    assert (manifest.documents, manifest.depth) == (DOCUMENTS, DEPTH)
    assert manifest.data.document_language == "fr"
    assert manifest.data.data_dir == os.path.abspath(tiny_run.settings().data.data_dir)
    documents = list(source_of(tiny_run.settings().data).documents())
    vectors = {}
    for role, texts in {"query": TEXTS["query"], "document": [d.text for d in documents]}.items():
        encoder = TextEncoder(tiny_run.vocabulary / f"{role}.txt", 200)
        raw = getattr(load_model(tiny_run), f"{role}_tower")(encoder(tf.constant(texts))).numpy()
        vectors[role] = raw / (np.linalg.norm(raw, axis=1, keepdims=True) + EPSILON)
    scores = vectors["query"] @ vectors["document"].T
    hashes = hash_ids([document.id for document in documents])
    found = model.signatures["serving_default"](text=tf.constant(TEXTS["query"]))
    answers = (found[name].numpy() for name in ("ids", "scores", "evidence"))
    for row, ids, found_scores, evidence in zip(scores, *answers):
        if evidence == b"nothing":
            assert not ids.any()
            continue
        order = sorted(range(len(row)), key=lambda i: (-row[i].round(6), hashes[i]))[:DEPTH]
        assert [id_.decode() for id_ in ids] == [documents[i].id for i in order]
        np.testing.assert_allclose(found_scores, row[order], atol=1e-6)
    assert b"words" in found["evidence"].numpy()


@pytest.mark.usefixtures("no_child_process")
def test_no_search_model_if_the_collection_is_too_large(tiny_run, tmp_path):
    export_run(tiny_run, tmp_path, max_search_documents=DOCUMENTS - 1)
    assert [exported_versions(tmp_path, role) for role in SERVED] == [[1], [], [1]]
    export_run(tiny_run, tmp_path, max_search_documents=DOCUMENTS, search_depth=100)
    manifest = load_part(tmp_path, "search")[1]
    assert (manifest.documents, manifest.depth) == (DOCUMENTS, DOCUMENTS)


@pytest.mark.usefixtures("no_child_process")
def test_run_with_missing_data_is_warmed_up_with_words_of_its_vocabulary(tiny_run, tmp_path):
    path = shutil.copytree(tiny_run.path, tmp_path / "run")
    config = json.loads((path / "config.json").read_text())
    config["settings"]["data"]["data_dir"] = str(tmp_path / "moved away")
    (path / "config.json").write_text(json.dumps(config))
    run, export = RunDirectory.load(path, verify=False), tmp_path / "export"
    with pytest.raises(InputError, match=r"moved away.*--nosearch_model"):
        export_run(run, export)
    assert not export.exists()
    assert export_run(run, export, search_model=False) == 1
    assert [exported_versions(export, role) for role in SERVED] == [[1], [], [1]]
    encode, _ = load_tower(export, "query")
    assert np.abs(encode(text=tf.constant(["word1 word2"]))["vector"]).max() > 0.1
    (text,) = requests_of(export, "query")[0].inputs["text"].string_val
    assert text.decode() in run.vocabulary_tokens("query")[2:]


def test_run_without_an_epoch_is_refused_and_writes_nothing(tiny_run, tmp_path):
    run = RunDirectory.create(tmp_path / "run", tiny_run.settings())
    with pytest.raises(InputError, match="not completed an epoch"):
        export_run(run, tmp_path / "export")
    assert not (tmp_path / "export").exists()


# Size of a request -> how many; four of one row, for the quantiles.
SIZES = {1: 4, **dict.fromkeys(BATCH_SIZES[1:], 1)}
REAL_QUERIES = {
    " ".join(f"word{word}" for word in words_of(number)[:2]).encode() for number in range(QUERIES)
}


def requests_of(export_dir, role):
    """The requests of a published part, as a server reads them."""
    path = part_dir(export_dir, role) / "1" / "assets.extra" / "tf_serving_warmup_requests"
    return [
        prediction_log_pb2.PredictionLog.FromString(record.numpy()).predict_log.request
        for record in tf.data.TFRecordDataset(str(path))
    ]


@pytest.mark.parametrize(
    ("name", "role"),
    [("dense", "query"), ("dense", "document"), ("dense", "search"), ("hybrid", "search")],
)
def test_requests_replay_through_the_loaded_signatures(ranking_exports, name, role):
    export_dir = ranking_exports[name]
    signatures = tf.saved_model.load(str(part_dir(export_dir, role) / "1")).signatures
    sizes = {}
    for request in requests_of(export_dir, role):
        assert request.model_spec.name == MODELS[role]
        inputs = {key: tf.make_ndarray(value) for key, value in request.inputs.items()}
        (size,) = {len(rows) for rows in inputs.values()}
        tensors = {key: tf.constant(rows.tolist(), tf.string) for key, rows in inputs.items()}
        outputs = signatures[request.model_spec.signature_name](**tensors)
        if role == "query":
            assert set(inputs["text"].tolist()) <= REAL_QUERIES
        for output in outputs.values():
            assert len(output) == size
            assert output.dtype == tf.string or np.isfinite(output).all()
        counted = sizes.setdefault(request.model_spec.signature_name, {})
        counted[size] = counted.get(size, 0) + 1
    expected = ["serving_default", "score"] if role == "search" else ["serving_default"]
    assert sizes == dict.fromkeys(expected, SIZES)


def test_texts_are_chosen_by_length_whatever_their_order():
    lengths = np.random.default_rng(5).permutation(101)
    batches = warm_up_batches([b"zyx"[length % 3 :][:1] * length for length in lengths])
    assert [len(batch[0]) for batch in batches[:4]] == [0, 50, 95, 100]
    (spread,) = batches[4:]
    assert [len(text) for text in spread] == [round((row + 0.5) / 32 * 100) for row in range(32)]
    for texts in ([b""], [b"one"], [b"one", b"two words"]):  # few are enough
        batches = warm_up_batches(texts)
        assert [len(batch) for batch in batches] == [1, 1, 1, 1, *BATCH_SIZES[1:]]
        assert {text for batch in batches for text in batch} == set(texts)
