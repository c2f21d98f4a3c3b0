"""Search models of lexical and hybrid runs behind the local server."""

import numpy as np
import pytest
import tensorflow as tf

from tests.server.local_server import local_server
from tf_smoothclir.client.serving_client import ServingClient
from tf_smoothclir.publishing.export_directory import load_part

QUERIES = [b"word1 word2", b"", b"\xff\xfe word3", b"mot4 word0\x00word5"]
DOCUMENTS = [b"mot1 mot2 mot3", b"mot0", b"", b"word0 mot5"]


@pytest.fixture(scope="module", params=["lexical", "hybrid"])
def export(request, ranking_exports):
    return ranking_exports[request.param]


def signature(export, name):
    model = load_part(export, "search").model
    function = model.signatures[name]
    function.keep_alive = model
    return function


def test_a_server_answers_as_the_saved_model(export):
    expected = signature(export, "serving_default")(text=tf.constant(QUERIES))
    scored = signature(export, "score")(query=tf.constant(QUERIES), document=tf.constant(DOCUMENTS))
    with local_server(export) as address, ServingClient(address) as client:
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
