"""Search models of lexical and hybrid runs behind the local server, by gRPC and REST."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.server.local_server import SERVERS, any_server
from tf_smoothclir.client.serving_client import ServingClient
from tf_smoothclir.publishing.export_directory import load_part
from tf_smoothclir.server.model_config import configs_of_export
from tf_smoothclir.utils.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
QUERIES = [b"word1 word2", b"", b"\xff\xfe word3", b"mot4 word0\x00word5"]
DOCUMENTS = [b"mot1 mot2 mot3", b"mot0", b"", b"word0 mot5"]


@pytest.fixture(scope="module", params=["lexical", "hybrid"])
def export(request, ranking_exports):
    return ranking_exports[request.param]


@pytest.fixture(scope="module", params=SERVERS)
def addresses(request, export, tmp_path_factory):
    with any_server(request.param, export, tmp_path_factory.mktemp("server")) as addresses:
        yield addresses


def signature(export, name):
    model = load_part(export, "search").model
    function = model.signatures[name]
    function.keep_alive = model
    return function


@pytest.mark.parametrize("transport", ["grpc", "rest"])
def test_a_server_answers_as_the_saved_model(addresses, export, transport):
    expected = signature(export, "serving_default")(text=tf.constant(QUERIES))
    scored = signature(export, "score")(query=tf.constant(QUERIES), document=tf.constant(DOCUMENTS))
    with ServingClient(getattr(addresses, transport)) as client:
        found = client.search(QUERIES)
        pairs = client.score(list(zip(QUERIES, DOCUMENTS)))
    for row, hits in enumerate(found):
        ids, grades, scores = (expected[name][row].numpy() for name in ("ids", "grades", "scores"))
        assert [hit.id.encode() for hit in hits] == ids[ids != b""].tolist()
        assert [hit.grade for hit in hits] == grades[: len(hits)].tolist()
        np.testing.assert_allclose([hit.score for hit in hits], scores[: len(hits)], rtol=1e-6)
        assert {hit.evidence.encode() for hit in hits} <= {expected["evidence"][row].numpy()}
    np.testing.assert_allclose([score for score, _ in pairs], scored["score"], rtol=1e-6, atol=1e-6)
    assert [grade for _, grade in pairs] == scored["grade"].numpy().tolist()
    assert np.ptp(expected["scores"]) > 0.1


def test_the_command_searches(addresses, export):
    done = subprocess.run(
        [
            *(sys.executable, "-m", "export.client", f"--server={addresses.rest}"),
            *("--json", "search", "word1 word2"),
        ],
        cwd=ROOT,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=True,
    )
    expected = signature(export, "serving_default")(text=tf.constant(QUERIES[:1]))
    best = expected["ids"][0, 0].numpy().decode()
    assert f'"{best}"' in done.stdout
    json.loads(done.stdout.splitlines()[0])


def test_a_lexical_export_is_served_without_towers(ranking_exports):
    served = {
        name: [c.name for c in configs_of_export(ranking_exports[name])]
        for name in ("lexical", "hybrid")
    }
    assert served == {"lexical": ["search"], "hybrid": ["document_tower", "search", "query_tower"]}


def test_an_export_without_models_is_an_error(ranking_exports, tmp_path):
    (tmp_path / "lexical_model").symlink_to(ranking_exports["lexical"] / "lexical_model")
    with pytest.raises(InputError, match=r"there is no model .*search.*Write them with smooth"):
        configs_of_export(tmp_path)
