"""Exporting runs, with all options too: anywhere, they rank as the run; the model card."""

import dataclasses
import json
import os
import re
import shutil

import numpy as np
import pytest
import tensorflow as tf
import yaml
from tensorflow_serving.apis import prediction_log_pb2

import tf_smoothclir as sc
from tests import published
from tests.cases import cases, word
from tests.published import EPSILON, NoVerifier, encode
from tests.training.fixtures import run_of, tokenized_by
from tests.training.tiny_set import DOCUMENTS, QUERIES, words_of
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.encoder import Encoder
from tf_smoothclir.evaluation.calibration import calibrated
from tf_smoothclir.evaluation.evaluate import evaluate_split
from tf_smoothclir.hybrid.fusion import Fusion
from tf_smoothclir.plugins import with_parts
from tf_smoothclir.protocols.text_search import CutPoints, read_cut_points
from tf_smoothclir.publishing import export_directory, model_card
from tf_smoothclir.publishing.export import export_run
from tf_smoothclir.publishing.export_directory import DIRECTORIES, load_part, part_dir
from tf_smoothclir.publishing.exported_models import ExportedFiles, load_exported_models
from tf_smoothclir.publishing.version_writer import LARGEST_BATCH, publish_version, warm_up_batches
from tf_smoothclir.settings import presets
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.storage.files import read_json, write_json
from tf_smoothclir.text.vocabulary import write_vocabulary
from tf_smoothclir.training import run_models, short_queries, tasks
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.two_tower.scorer import SetEncoder
from tf_smoothclir.utils.errors import InputError

SERVED = ("document", "search", "query")
PARTS = {"dense": ("query", "document"), "lexical": ("lexical",)}
PARTS["hybrid"] = (*PARTS["dense"], *PARTS["lexical"])


@pytest.mark.usefixtures("no_child_process")
def test_no_search_model_if_the_collection_is_too_large(tiny_run, tmp_path):
    export_run(tiny_run, tmp_path, max_search_documents=DOCUMENTS - 1)
    assert [export_directory.exported_versions(tmp_path, role) for role in SERVED] == [[1], [], [1]]
    export_run(tiny_run, tmp_path, max_search_documents=DOCUMENTS, search_depth=100)
    manifest = load_part(tmp_path, "search")[1]
    assert (manifest.documents, manifest.depth) == (DOCUMENTS, DOCUMENTS)
    assert (manifest.epsilon, manifest.thresholds) == (EPSILON, (0.2, 0.7))
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
    assert [export_directory.exported_versions(export, role) for role in SERVED] == [[1], [], [1]]
    assert np.abs(encode(load_part(export, "query").model, ["wordb wordc"])).max() > 0.1
    (text,) = requests_of(export, "query")[0].inputs["text"].string_val
    assert text.decode() in run.vocabulary_tokens("query")[2:]


def requests_of(export_dir, role):
    path = part_dir(export_dir, role) / "1" / "assets.extra" / "tf_serving_warmup_requests"
    return [
        prediction_log_pb2.PredictionLog.FromString(record.numpy()).predict_log.request
        for record in tf.data.TFRecordDataset(str(path))
    ]


@cases("name, role", ("dense", "query"), ("dense", "search"), ("hybrid", "search"))
def test_requests_replay_through_the_loaded_signatures(ranking_exports, name, role):
    export_dir = ranking_exports[name]
    signatures = tf.saved_model.load(str(part_dir(export_dir, role) / "1")).signatures
    queries = {
        " ".join(word("word", n) for n in words_of(row)[:2]).encode() for row in range(QUERIES)
    }
    asked = []
    for request in requests_of(export_dir, role):
        assert request.model_spec.name == export_directory.MODELS[role]
        inputs = {key: tf.make_ndarray(value).tolist() for key, value in request.inputs.items()}
        (size,) = set(map(len, inputs.values()))
        asked.append((request.model_spec.signature_name, size))
        tensors = {key: tf.constant(rows, tf.string) for key, rows in inputs.items()}
        if role == "query":
            assert set(inputs["text"]) <= queries
        for output in signatures[request.model_spec.signature_name](**tensors).values():
            assert len(output) == size
            assert output.dtype == tf.string or np.isfinite(output).all()
    sizes = [1, 1, 1, 1, LARGEST_BATCH]  # four of one row, for the quantiles
    assert sorted(asked) == sorted(("serving_default", size) for size in sizes)


def test_texts_are_chosen_by_length_whatever_their_order():
    lengths = np.random.default_rng(5).permutation(101)
    batches = warm_up_batches([b"zyx"[length % 3 :][:1] * length for length in lengths])
    assert [len(batch[0]) for batch in batches[:4]] == [0, 50, 95, 100]
    (spread,) = batches[4:]
    assert [len(text) for text in spread] == [round((row + 0.5) / 32 * 100) for row in range(32)]
    for texts in ([b""], [b"one"], [b"one", b"two words"]):  # few are enough
        batches = warm_up_batches(texts)
        assert [len(batch) for batch in batches] == [1, 1, 1, 1, LARGEST_BATCH]
        assert {text for batch in batches for text in batch} == set(texts)


def test_an_export_has_the_parts_that_rank(ranking_exports):
    for name, path in ranking_exports.items():
        versions = {role: export_directory.exported_versions(path, role) for role in DIRECTORIES}
        assert {role for role in DIRECTORIES if versions[role] == [1]} == {*PARTS[name], "search"}
        models = load_exported_models(path)
        assert (models.retriever, models.manifest.parts) == (name, PARTS[name])
        assert set(models) == set(with_parts(name))
        assert (models.manifest.dim > 0) == (models.manifest.epsilon > 0) == ("dense" in models)


@cases("name", *PARTS)
def test_an_export_and_its_search_model_rank_as_the_run(ranking_exports, ranking_runs, name):
    run, path = ranking_runs[name], ranking_exports[name]
    tokenized_set = tokenized_by(run)
    queries = [text.text for text in tokenized_set.retrieval_set.source.queries()]
    models, ids = run_models.load_models(run), tokenized_set.retrieval_set.document_ids
    scores = models.retrievers(tokenized_set)[name].scores(np.arange(len(queries)))
    assert np.ptp(scores) > 0.1
    model, manifest = load_part(path, "search")
    found = model.signatures["serving_default"](text=tf.constant(queries))
    found = {name: value.numpy() for name, value in found.items()}
    for row, hits, of_hits in zip(scores, found["ids"], found["scores"], strict=True):
        hits = [id_.decode() for id_ in hits if id_]
        ours = np.array([row[ids.index(id_)] for id_ in hits], np.float32)
        np.testing.assert_allclose(of_hits[: len(hits)], ours, rtol=1e-5, atol=1e-5)
        best = -np.sort(-row)[: published.DEPTH]
        np.testing.assert_allclose(ours, best[best != 0], rtol=1e-5, atol=1e-5)
        assert not of_hits[len(hits) :].any()
    cut_points = run_models.load_cut_points(run, models)[name]
    assert manifest.cut_points == cut_points
    own = np.float32(cut_points.scores), np.float32(cut_points.shares)
    known = models.retrievers(tokenized_set)[name].known_words(np.arange(len(queries)))
    assert (known.max() == 1) == (name == "dense")
    factors = cut_points.of_words(known)
    expected = [published.grades_of_hits(row, own, n) for row, n in zip(found["scores"], factors)]
    np.testing.assert_array_equal(found["grades"], expected)


@cases("missing", "query", "document", "lexical")
def test_a_version_without_one_of_its_parts_is_refused(ranking_exports, tmp_path, missing):
    path = shutil.copytree(ranking_exports["hybrid"], tmp_path / "hybrid")
    shutil.rmtree(part_dir(path, missing))
    for load in (lambda path: load_part(path, "query"), load_exported_models):
        with pytest.raises(InputError, match=r"there is no .*Write all parts with smoothclir-exp"):
            load(path)


@pytest.mark.usefixtures("no_child_process")
def test_the_latest_complete_version_counts_of_any_family(ranking_exports, ranking_runs, tmp_path):
    path = shutil.copytree(ranking_exports["hybrid"], tmp_path / "hybrid")
    assert export_run(ranking_runs["hybrid"], path, search_model=False) == 2
    assert load_exported_models(path).manifest.version == 2
    shutil.rmtree(part_dir(path, "query") / "2")
    assert load_exported_models(path).manifest.version == 1
    with pytest.raises(InputError, match="there is no complete version 2"):
        load_exported_models(path, 2)
    assert export_run(ranking_runs["lexical"], path, search_model=False) == 3
    assert load_exported_models(path).retriever == "lexical"
    assert load_exported_models(path, 1).retriever == "hybrid"
    assert load_part(path, "query").manifest.version == 1


def pair_id(parts, path, cut_point=0.3, threshold=0.7):
    cut_points = CutPoints((0.2, cut_point), (0.5, 0.9))
    facts = {**published.FACTS, "thresholds": (0.2, threshold), "cut_points": cut_points}
    texts = {"query": [b"a"], "document": [b"b"]}
    version = publish_version({"lexical": ExportedFiles(parts.save)}, path, facts, texts)
    return export_directory.latest_manifest(path, version).pair_id


@pytest.mark.usefixtures("no_child_process")
def test_what_determines_the_scores_is_in_the_pair_id_seconds_are_not(ranking_exports, tmp_path):
    parts = load_exported_models(ranking_exports["hybrid"])["lexical"]
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


@pytest.fixture(scope="module")
def run(tiny, tmp_path_factory):
    path = tmp_path_factory.mktemp("options") / "run"
    options = {"shared_vocabulary": True, "matryoshka_dims": (2,), **published.OPTIONS}
    options |= {"batching": "in_batch", "hard_negatives": 2, "fresh_negatives": True}
    return run_of(tiny(epsilon=EPSILON, **options), path)


@pytest.fixture(scope="module")
def exported(run, tmp_path_factory):
    path = tmp_path_factory.mktemp("export")
    export_run(run, path)
    for role in ("query", "document", "search"):
        assert not published.undesired_operations(load_part(path, role)[0])
    return path


def texts_of(run, role):
    source = source_of(run.settings().data)
    return [text.text for text in (source.queries() if role == "query" else source.documents())]


@pytest.mark.slow
@cases("role", *ROLES)
def test_raw_strings_give_the_vectors_of_evaluation(run, exported, role):
    encoded = SetEncoder(tasks.load_model(run), tokenized_by(run))()
    expected = encoded.queries if role == "query" else encoded.documents
    model, _ = load_part(exported, role)
    found = encode(model.signatures["serving_default"], texts_of(run, role))
    np.testing.assert_allclose(found, expected, atol=1e-6)
    # Words that no text had have vectors from their spelling.
    unseen, other = encode(model.signatures["serving_default"], ["xword1", "zzz"])
    assert np.abs(unseen).max() > 0
    assert np.abs(unseen - other).max() > 0.01


@pytest.mark.slow
def test_short_vectors_are_the_first_numbers(run, exported, tmp_path):
    dim = 2
    export_run(run, tmp_path, dim=dim, verifier=NoVerifier())
    for role in ROLES:
        texts = texts_of(run, role)
        tower, manifest = load_part(tmp_path, role)
        vectors = encode(tower, texts)
        np.testing.assert_allclose(Encoder(tmp_path, role).encode(texts), vectors, atol=1e-6)
        whole = encode(load_part(exported, role).model, texts)
        first = whole[:, :dim] / (1 - np.linalg.norm(whole, axis=1, keepdims=True))  # tanh / ε
        first *= EPSILON
        expected = first / (np.linalg.norm(first, axis=1, keepdims=True) + EPSILON)
        np.testing.assert_allclose(vectors, expected, atol=1e-5)
        assert manifest.dim == dim
    assert manifest.cut_points == read_cut_points(run.cut_points)[f"dense-{dim}"]
    assert manifest.pair_id != load_part(exported, "query").manifest.pair_id


@pytest.mark.slow
def test_a_hybrid_that_is_cut_has_a_fusion_and_cut_points_of_its_own(tiny, tmp_path):
    settings = tiny(retriever="hybrid", dim=8, matryoshka_dims=(4,), epochs=1)
    run = run_of(settings, tmp_path / "run")
    export_run(run, tmp_path / "export", dim=4, search_model=False, verifier=NoVerifier())
    found = load_exported_models(tmp_path / "export")
    assert found.manifest.dim == 4
    models = run_models.load_models(run, 4)
    tokenized_set = tokenized_by(run, models.settings)
    over = run_models.ModelsOverSet(models.settings, tokenized_set, models)
    fusion, negatives = over.models["hybrid"], settings.training.negatives
    assert found["hybrid"].fusion == dataclasses.replace(fusion, seconds=0.0)
    # That of the shorter vectors, not of those that the run ranks by.
    assert fusion.dense_deviation != Fusion.load(run.fusion).dense_deviation
    hybrid = over.retrievers["hybrid"]
    evaluation = evaluate_split(over.retrieval_set, hybrid, "validation", negatives=negatives)
    own = calibrated(evaluation, short_queries.hits_of_short_queries(over)["hybrid"])
    assert found.manifest.cut_points == own
    assert run_models.load_retriever(run, tokenized_set, 4)[1] is None


def card_of(run, tmp_path, roles):
    """The header, read by a YAML parser, and the Markdown of the card of an export."""
    path = model_card.write_model_card(run, run.settings(), tmp_path, 3, roles)
    assert path == tmp_path / "model_card-3.md"
    _, header, text = path.read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(header), text


@cases("name", *PARTS)
def test_it_has_what_hubs_want_figures_parts_and_lines_that_run(ranking_runs, tmp_path, name):
    run, content = ranking_runs[name], read_json(ranking_runs[name].metrics)
    header, text = card_of(run, tmp_path, PARTS[name])
    assert header["language"] == ["en", "fr"]
    assert (header["license"], header["library_name"]) == ("unknown", "tf_smoothclir")
    (model,) = header["model-index"]
    found = {one["type"]: one["value"] for one in model["results"][0]["metrics"]}
    assert found == pytest.approx(content["test"], abs=5e-5)
    low, high = content["intervals"]["test"]["NDCG@5"]
    assert f"| {content['test']['NDCG@5']:.4f} ({low:.4f} to {high:.4f}) |" in text
    assert f"| documents | {content['set']['documents']} |" in text
    assert name == "lexical" or all(f"`{DIRECTORIES[role]}`" in text for role in PARTS[name])
    assert ("docker run" in text) == (name != "lexical")
    assert str(run.path.parent) not in text  # no path of this machine
    assert f"--retriever={name}" in text or name == "dense"
    (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    compile(code, "card", "exec")
    for called in re.findall(r"model\.(\w+)\(", code):
        assert callable(getattr(sc.Model, called))


@cases(
    "preset, said",
    ("lexical", "query count. A document is read to its end."),
    ("best", "A document is read to its end; its vector is of the first 200 of a document."),
    ("fast", "query count, and the first 200 of a document."),
)
def test_it_says_what_is_read(preset, said):
    assert model_card._reads(presets.preset_settings(preset, {})).endswith(said)


def test_it_says_what_is_missing_or_smaller(ranking_runs, tmp_path):
    run = RunDirectory(shutil.copytree(ranking_runs["lexical"].path, tmp_path / "run"))
    named = "all", "documents ru", "documents unknown"
    rows = {name: {"queries": 9, "MAP": 0.25} for name in named}
    write_json(run.metrics, {**read_json(run.metrics), "languages": {"test": rows}})
    header, text = card_of(run, tmp_path, ("lexical",))
    assert header["language"] == ["en", "fr", "ru"]
    assert "| documents ru | 9 | 0.2500 |" in text
    run.metrics.unlink()
    header, text = card_of(run, tmp_path, ("lexical",))
    assert "has not been evaluated" in text
    assert "model-index" not in header
