"""Exporting a run: the same vectors in a process that has TensorFlow and nothing of ours."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tf_smoothclir.data.prepared import ROLES
from tf_smoothclir.errors import InputError
from tf_smoothclir.serving import publish as publish_module
from tf_smoothclir.serving.export import export_run
from tf_smoothclir.text.vocabulary import TextEncoder
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.train import load_model

TEXTS = {
    "query": ["word1 word2", "", "Word3, WORD4!", "nothing known"],
    "document": ["mot1 mot2 mot3", "mot0", "", "déjà"],
}
# As a model server: no module of ours, another working directory, the model moved elsewhere.
SERVER = """
import json
import sys

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

directory, texts = sys.argv[1], json.loads(sys.argv[2])
result = {}
for role, rows in texts.items():
    model = tf.saved_model.load(f"{directory}/{role}_tower/1")
    vectors = model.signatures["serving_default"](text=tf.constant(rows))["vector"]
    operations = set()
    for signature in model.signatures.values():
        definition = signature.graph.as_graph_def()
        for nodes in [definition.node, *(f.node_def for f in definition.library.function)]:
            operations.update(node.op for node in nodes)
    result[role] = {
        "vectors": vectors.numpy().tolist(),
        "operations": sorted(operations),
        "unregistered": [name for name in operations if op_def_registry.get(name) is None],
    }
result["modules"] = [name for name in sys.modules if name.startswith("tf_smoothclir")]
print(json.dumps(result))
"""


@pytest.fixture(scope="module")
def served(export_dir, tmp_path_factory):
    """What a fresh process answers from a moved copy of the export."""
    directory = tmp_path_factory.mktemp("server")
    moved = shutil.copytree(export_dir, directory / "moved")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    child = subprocess.run(
        [sys.executable, "-c", SERVER, str(moved), json.dumps(TEXTS)],
        cwd=directory,
        env={**environment, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout)


@pytest.mark.parametrize("role", ROLES)
def test_vectors_are_those_of_the_trained_model(served, tiny_run, role):
    settings = tiny_run.settings()
    encoder = TextEncoder(tiny_run.vocabulary / f"{role}.txt", settings.text.max_tokens(role))
    expected = load_model(tiny_run).vectors(role, encoder(tf.constant(TEXTS[role])))
    np.testing.assert_allclose(served[role]["vectors"], expected, rtol=0, atol=1e-6)
    assert np.abs(expected).max() > 0.1


def test_server_has_loaded_nothing_of_ours(served):
    assert served["modules"] == []


@pytest.mark.parametrize("role", ROLES)
def test_graph_has_operations_of_core_tensorflow_only(served, role):
    operations = set(served[role]["operations"])
    assert {"StaticRegexReplace", "LookupTableFindV2", "SparseSegmentMeanWithNumSegments"} <= (
        operations
    )
    assert served[role]["unregistered"] == []
    assert not operations & {"PyFunc", "PyFuncStateless", "EagerPyFunc"}  # Python's own


def test_second_export_is_the_next_version_and_leaves_the_first(
    tiny_run, export_dir, tmp_path, monkeypatch
):
    monkeypatch.setattr(publish_module, "_compare", lambda *arguments: None)
    path = shutil.copytree(export_dir, tmp_path / "export")
    before = publish_module.load_tower(path, "query", 1)[1]
    assert export_run(tiny_run, path) == 2
    assert publish_module.load_tower(path, "query", 1)[1] == before
    first, second = (publish_module.load_tower(path, "query", version)[0] for version in (1, 2))
    text = tf.constant(TEXTS["query"])
    np.testing.assert_array_equal(first(text=text)["vector"], second(text=text)["vector"])


def test_manifest_finds_the_collection_again(export_dir, tiny_run):
    manifest = publish_module.load_tower(export_dir, "document")[1]
    assert os.path.isabs(manifest["data"]["data_dir"])
    assert manifest["data"]["document_language"] == "fr"
    assert tiny_run.settings().data.data_dir == manifest["data"]["data_dir"]


def test_run_without_an_epoch_is_refused_and_writes_nothing(tiny_run, tmp_path):
    run = RunDirectory.create(tmp_path / "run", tiny_run.settings())
    with pytest.raises(InputError, match="not completed an epoch"):
        export_run(run, tmp_path / "export")
    assert not (tmp_path / "export").exists()
