"""Exporting runs and halves of them: a directory alone, or moved to a server, ranks as the run."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

from tests.published import DEPTH, NoVerifier, encode, grades_of_hits
from tests.training.tiny_set import DOCUMENTS, QUERIES, words_of
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.lexical.feedback import Feedback, tf_idf
from tf_smoothclir.lexical.retriever import RowRetriever
from tf_smoothclir.lexical.score_rows import lexical_rows
from tf_smoothclir.protocols.cut_points import CutPoints
from tf_smoothclir.publishing.export import export_run
from tf_smoothclir.publishing.export_directory import (
    DIRECTORIES,
    MODELS,
    exported_versions,
    load_part,
    load_tower,
    part_dir,
)
from tf_smoothclir.publishing.exported_lexical import ExportedLexical, load_lexical
from tf_smoothclir.publishing.exported_models import load_exported_models
from tf_smoothclir.publishing.model_card import model_card_path
from tf_smoothclir.publishing.version_writer import PairInfo, publish_version
from tf_smoothclir.publishing.warm_up import BATCH_SIZES, warm_up_batches
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.text.vocabulary import write_vocabulary
from tf_smoothclir.text.word_encoder import TextEncoder
from tf_smoothclir.training.retrievers import load_cut_points, load_models
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.tasks import load_model
from tf_smoothclir.training.train import tokenized_set_of
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


@pytest.mark.usefixtures("no_child_process")
def test_no_search_model_if_the_collection_is_too_large(tiny_run, tmp_path):
    export_run(tiny_run, tmp_path, max_search_documents=DOCUMENTS - 1)
    assert [exported_versions(tmp_path, role) for role in SERVED] == [[1], [], [1]]
    export_run(tiny_run, tmp_path, max_search_documents=DOCUMENTS, search_depth=100)
    manifest = load_part(tmp_path, "search")[1]
    assert (manifest.documents, manifest.depth) == (DOCUMENTS, DOCUMENTS)
    assert manifest.data.document_language == "fr"
    assert manifest.data.data_dir == os.path.abspath(tiny_run.settings().data.data_dir)


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
    assert np.abs(encode(load_tower(export, "query").encode, ["word1 word2"])).max() > 0.1
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


PARTS = {
    "dense": ("query", "document"),
    "lexical": ("lexical",),
    "hybrid": ("query", "document", "lexical"),
}


@pytest.fixture
def copy(ranking_exports, tmp_path):
    """`copy(name)` is an export that may be changed."""
    return lambda name: shutil.copytree(ranking_exports[name], tmp_path / name)


@pytest.fixture(scope="module")
def halves(ranking_runs, tmp_path_factory):
    """Name of a half -> the export of that half of the hybrid run alone; read-only."""
    path = tmp_path_factory.mktemp("halves")
    for name in ("dense", "lexical"):
        options = {"retriever": name, "search_depth": DEPTH, "verifier": NoVerifier()}
        export_run(ranking_runs["hybrid"], path / name, **options)
        assert "a part of the run" in model_card_path(path / name, 1).read_text("utf-8")
    return {name: path / name for name in ("dense", "lexical")}


def test_an_export_has_the_parts_that_rank(ranking_exports, halves):
    for name, path in (*ranking_exports.items(), *halves.items()):
        there = {role for role in DIRECTORIES if exported_versions(path, role) == [1]}
        assert there == {*PARTS[name], "search"}
        models = load_exported_models(path)
        assert (models.retriever, models.manifest.parts) == (name, PARTS[name])
        assert set(models.towers) == set(PARTS[name]) - {"lexical"}
        assert (models.manifest.dim > 0) == (models.manifest.epsilon > 0) == bool(models.towers)


def scores_by_the_export(models, queries, documents):
    """Ranks with nothing of the run: `[queries, documents]`."""
    parts = models.lexical
    read = parts.document_reader.words(documents)
    impacts = parts.model.impacts(read, parts.spelling)
    rows = lexical_rows(parts.query_reader.words(queries).matrix(), impacts)
    if parts.fusion is not None:
        asked = encode(models.towers["query"].encode, queries)
        vectors = encode(models.towers["document"].encode, documents)
        rows = parts.fusion.rows(rows, lambda chosen: asked[chosen] @ vectors.T)
    feedback = Feedback.of(tf_idf(read.matrix()), parts.feedback) if parts.feedback else None
    ranker = RowRetriever(rows, np.arange(len(documents)), feedback)
    return ranker.scores(np.arange(len(queries)))


@pytest.mark.parametrize(
    ("run_name", "name"),
    [*zip(PARTS, PARTS), ("hybrid", "dense"), ("hybrid", "lexical")],
)
def test_an_export_and_its_search_model_rank_as_the_run(
    ranking_exports, halves, ranking_runs, run_name, name
):
    run, path = ranking_runs[run_name], (ranking_exports if run_name == name else halves)[name]
    source = source_of(run.settings().data)
    queries = [text.text for text in source.queries()]
    tokenized_set = tokenized_set_of(source, run.settings(), run, SPLITS)
    run_models, ids = load_models(run), tokenized_set.retrieval_set.document_ids
    scores = run_models.retrievers(tokenized_set)[name].scores(np.arange(len(queries)))
    if run_name == name != "dense":
        documents = [text.text for text in source.documents()]
        own = scores_by_the_export(load_exported_models(path), queries, documents)
        np.testing.assert_allclose(own, scores, rtol=1e-5, atol=1e-5)
        assert np.ptp(scores) > 0.1
    model, manifest = load_part(path, "search")
    found = model.signatures["serving_default"](text=tf.constant(queries))
    found = {name: value.numpy() for name, value in found.items()}
    rows = np.vectorize(lambda id_: ids.index(id_.decode()))(found["ids"])
    ours = np.take_along_axis(scores, rows, axis=1)
    np.testing.assert_allclose(found["scores"], ours, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(ours, -np.sort(-scores)[:, :DEPTH], rtol=1e-5, atol=1e-5)
    cut_points = load_cut_points(run, run_models)[name]
    assert manifest.cut_points == cut_points
    own = np.float32(cut_points.scores), np.float32(cut_points.shares)
    expected = [grades_of_hits(row, own) for row in found["scores"]]
    np.testing.assert_array_equal(found["grades"], expected)


@pytest.mark.parametrize("missing", ["query", "document", "lexical"])
def test_a_version_without_one_of_its_parts_is_refused(copy, missing):
    path = copy("hybrid")
    shutil.rmtree(part_dir(path, missing))
    for load in (lambda path: load_part(path, "query"), load_lexical, load_exported_models):
        with pytest.raises(InputError, match=r"there is no .*Write all parts with smoothclir-exp"):
            load(path)


@pytest.mark.usefixtures("no_child_process")
def test_the_latest_complete_version_counts_whatever_its_retriever(copy, ranking_runs):
    path = copy("hybrid")
    assert export_run(ranking_runs["hybrid"], path, search_model=False) == 2
    assert load_exported_models(path).manifest.version == 2
    shutil.rmtree(part_dir(path, "query") / "2")
    assert load_exported_models(path).manifest.version == 1
    assert load_lexical(path)[1].version == 1
    with pytest.raises(InputError, match="there is no complete version 2"):
        load_exported_models(path, 2)
    assert export_run(ranking_runs["lexical"], path, search_model=False) == 3
    assert load_exported_models(path).retriever == "lexical"
    assert load_exported_models(path, 1).retriever == "hybrid"
    assert load_tower(path, "query").manifest.version == 1


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("lexical", {"table_type": "int8"}, r"--table_type=int8: .* has no towers"),
        ("lexical", {"vector_type": "int8"}, r"--vector_type=int8: .* no towers.*Leave it out"),
        ("dense", {"vector_type": "int8", "search_model": False}, r"=int8: .*--nosearch_model"),
        ("lexical", {"retriever": "dense"}, "--retriever=dense: the run was trained with"),
        ("hybrid", {"retriever": "reranked"}, "--retriever=reranked: the run was trained without"),
    ],
)
def test_what_a_run_does_not_have_is_refused(ranking_runs, tmp_path, name, options, message):
    with pytest.raises(InputError, match=message):
        export_run(ranking_runs[name], tmp_path, **options)
    assert not list(tmp_path.iterdir())


def pair_id(parts, path, cut_point=0.3, threshold=0.7):
    cut_points = CutPoints((0.2, cut_point), (0.5, 0.9), (0.2, 0.7))
    info = PairInfo(0, 0.0, (0.2, threshold), DataSettings(), cut_points)
    texts = {"query": [b"a"], "document": [b"b"]}
    version = publish_version({"lexical": ExportedLexical(parts)}, path, info, texts)
    return load_lexical(path, version)[1].pair_id


@pytest.mark.usefixtures("no_child_process")
def test_whatever_determines_the_scores_is_in_the_pair_id_and_seconds_are_not(
    ranking_exports, tmp_path
):
    parts = load_lexical(ranking_exports["hybrid"])[0]
    vocabulary = shutil.copytree(parts.vocabulary_dir, tmp_path / "vocabulary")
    tokens = (vocabulary / "query.txt").read_text().split("\n")[:-1]
    write_vocabulary(vocabulary / "query.txt", [*tokens[:-1], "another"])
    of_model = {"table": parts.model.table * 0.5, "weights": parts.model.weights + 1}
    of_model |= {"feedback": 3.5, "length_power": -0.123, "mean_length": 7.0}
    changes = [{"model": dataclasses.replace(parts.model, **{k: v})} for k, v in of_model.items()]
    changes += [{"vocabulary_dir": vocabulary}, {"text": TextSettings(max_query_tokens=7)}]
    changes += [{"fusion": dataclasses.replace(parts.fusion, share=0.123)}, {"fusion": None}]
    path = tmp_path / "export"
    before = pair_id(parts, path)
    found = [pair_id(dataclasses.replace(parts, **change), path) for change in changes]
    found += [pair_id(parts, path, cut_point=0.4), pair_id(parts, path, threshold=0.6)]
    assert len({before, *found}) == 1 + len(found)
    model, fusion = (dataclasses.replace(one, seconds=77.0) for one in (parts.model, parts.fusion))
    assert pair_id(dataclasses.replace(parts, model=model, fusion=fusion), path) == before
