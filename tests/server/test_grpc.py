"""PredictionService and ModelService over SavedModels; TensorFlow Serving too, if installed."""

from concurrent import futures

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from tests.published import DEPTH, DIM, encode
from tests.server.local_server import (
    SERVERS,
    any_server,
    code_of,
    local_server,
    predict_request,
)
from tf_smoothclir.publishing.export_directory import load_part, load_tower
from tf_smoothclir.server import grpc_service

TEXTS = [b"red apple", b"", b"\xff\xfe", b"sea\x00red", "日本語".encode(), b"x" * 100_000]


MAX_BYTES = 100_000


@pytest.fixture(scope="module", params=SERVERS)
def channel(request, export, tmp_path_factory):
    directory = tmp_path_factory.mktemp("server")
    with (
        any_server(request.param, export, directory) as addresses,
        grpc.insecure_channel(addresses.grpc) as channel,
    ):
        yield channel


@pytest.fixture(scope="module")
def stub(channel):
    return prediction_service_pb2_grpc.PredictionServiceStub(channel)


@pytest.fixture(scope="module")
def small_requests(export):
    """A local server that reads small requests only."""
    with local_server(export, max_bytes=MAX_BYTES) as addresses:
        yield addresses


def stub_of(addresses):
    options = [("grpc.max_send_message_length", -1)]
    channel = grpc.insecure_channel(addresses.grpc, options=options)
    return prediction_service_pb2_grpc.PredictionServiceStub(channel)


def arrays(response):
    return {name: tf.make_ndarray(value) for name, value in response.outputs.items()}


@pytest.mark.parametrize("role", ["query", "document"])
def test_towers_give_the_vectors_of_the_saved_model(stub, export, role):
    response = stub.Predict(predict_request(f"{role}_tower", {"text": TEXTS}))
    expected = encode(load_tower(export, role)[0], TEXTS)
    np.testing.assert_allclose(arrays(response)["vector"], expected, rtol=0, atol=1e-6)
    assert expected[0].any()
    spec = response.model_spec
    assert (spec.name, spec.version.value, spec.signature_name) == (
        f"{role}_tower",
        1,
        "serving_default",
    )


def test_tokens_signature(stub):
    inputs = {"ids": np.array([2, 3, 2], np.int32), "lengths": np.array([2, 0, 1], np.int32)}
    vectors = arrays(stub.Predict(predict_request("query_tower", inputs, "tokens")))["vector"]
    texts = arrays(stub.Predict(predict_request("query_tower", {"text": ["red apple", "", "red"]})))
    np.testing.assert_allclose(vectors, texts["vector"], rtol=0, atol=1e-6)


def test_search_model_finds_and_scores(stub, export):
    found = arrays(stub.Predict(predict_request("search", {"text": ["red", "sea"]})))
    expected = load_part(export, "search")[0].signatures["serving_default"](
        text=tf.constant(["red", "sea"])
    )
    assert found["ids"].shape == (2, DEPTH)
    assert found["ids"].tolist() == expected["ids"].numpy().tolist()
    assert found["grades"].tolist() == expected["grades"].numpy().tolist()
    np.testing.assert_allclose(found["scores"], expected["scores"], atol=1e-6)
    pair = {"query": ["red"], "document": [found["ids"][0, 0].decode().split()[-1]]}
    scored = arrays(stub.Predict(predict_request("search", pair, "score")))
    np.testing.assert_allclose(scored["score"], found["scores"][0, :1], atol=1e-6)


def test_no_rows_give_no_vectors(stub):
    request = predict_request("query_tower", {"text": tf.make_tensor_proto([], tf.string, [0])})
    assert arrays(stub.Predict(request))["vector"].shape == (0, DIM)


def test_output_filter_selects_outputs(stub):
    request = predict_request("search", {"text": ["red"]})
    request.output_filter.append("ids")
    assert set(arrays(stub.Predict(request))) == {"ids"}


def with_filter(*names):
    request = predict_request("query_tower", {"text": ["a"]})
    request.output_filter.extend(names)
    return request


def proto(**fields):
    value = tensor_pb2.TensorProto(dtype=fields.pop("dtype", 7))
    for size in fields.pop("shape", [1]):
        value.tensor_shape.dim.add().size = size
    value.tensor_shape.unknown_rank = fields.pop("unknown_rank", False)
    for name, values in fields.items():
        getattr(value, name).extend(values)
    return value


@pytest.mark.parametrize(
    ("predict", "codes", "message"),
    [
        (predict_pb2.PredictRequest(), {"INVALID_ARGUMENT"}, ""),
        (predict_request("nothing", {"text": ["a"]}), {"NOT_FOUND"}, "nothing"),
        (predict_request("search", {"text": ["a"]}, version=9), {"NOT_FOUND"}, "9"),
        (predict_request("search", {"text": ["a"]}, label="x"), {"INVALID_ARGUMENT"}, "label: x"),
        (
            predict_request("query_tower", {"text": ["a"]}, "nix"),
            {"FAILED_PRECONDITION"},
            'Serving signature key "nix" not found',
        ),
        (predict_request("query_tower", {}), {"INVALID_ARGUMENT"}, "Missing but required: {text}"),
        (
            predict_request("query_tower", {"text": ["a"], "more": ["b"]}),
            {"INVALID_ARGUMENT"},
            "Sent extra: {more}",
        ),
        (predict_request("query_tower", {"texts": ["a"]}), {"INVALID_ARGUMENT"}, "text"),
        (predict_request("query_tower", {"text": [1.0]}), {"INVALID_ARGUMENT"}, "float"),
        (predict_request("query_tower", {"text": [["a"]]}), {"INVALID_ARGUMENT"}, ""),
        (predict_request("query_tower", {"text": "a"}), {"INVALID_ARGUMENT"}, ""),
        (
            predict_request(
                "query_tower", {"ids": np.int32([1]), "lengths": np.int32([5])}, "tokens"
            ),
            {"INVALID_ARGUMENT"},
            "lengths must not be negative",
        ),
        (
            predict_request("search", {"query": ["a"], "document": ["a", "b"]}, "score"),
            {"INVALID_ARGUMENT"},
            "same number of rows",
        ),
        (with_filter("nix"), {"INVALID_ARGUMENT"}, "not found in signature: nix"),
        (with_filter("vector", "vector"), {"INVALID_ARGUMENT"}, "duplicate output"),
        (
            predict_request("query_tower", {"text": proto(shape=[-1])}),
            {"INVALID_ARGUMENT"},
            "",
        ),
        (
            predict_request("query_tower", {"text": proto(shape=[3], dtype=99)}),
            {"INVALID_ARGUMENT"},
            "",
        ),
        (
            predict_request("query_tower", {"text": proto(shape=[1], string_val=[b"a", b"b"])}),
            {"INVALID_ARGUMENT"},
            "",
        ),
    ],
)
def test_malformed_request_has_its_code_and_the_next_one_is_answered(stub, predict, codes, message):
    code, details = code_of(stub.Predict, predict)
    assert code in codes
    assert message in details
    assert arrays(stub.Predict(predict_request("query_tower", {"text": ["red"]})))


@pytest.mark.parametrize(
    "tensor",
    [
        proto(shape=[1 << 40], string_val=[b"a"]),
        proto(shape=[1 << 20, 1 << 20], string_val=[b"a"]),
        proto(shape=[1], unknown_rank=True, string_val=[b"a"]),
        proto(shape=[1 << 62, 1 << 62], string_val=[b"a"]),
        proto(shape=[10_000], string_val=[b"a" * 1000]),  # a text of 1 kB stands for 10 MB
    ],
)
def test_shape_that_would_take_all_memory_or_time_is_refused(small_requests, tensor):
    stub = stub_of(small_requests)
    code, _ = code_of(stub.Predict, predict_request("query_tower", {"text": tensor}))
    assert code == "INVALID_ARGUMENT"


def test_a_request_of_many_inputs_is_refused_before_they_take_memory(small_requests, monkeypatch):
    monkeypatch.setattr(grpc_service, "_from_proto", lambda *_: pytest.fail("it was read"))
    inputs = {f"input {number}": proto(shape=[1 << 20], string_val=[b""]) for number in range(99)}
    code, details = code_of(stub_of(small_requests).Predict, predict_request("query_tower", inputs))
    assert code == "INVALID_ARGUMENT"
    assert "Sent extra: {input 0,input 1," in details


def test_more_texts_than_a_request_may_have_are_refused_unread(small_requests, monkeypatch):
    monkeypatch.setattr(grpc_service.tf, "make_ndarray", lambda _: pytest.fail("it was read"))
    tensor = proto(shape=[10_001], string_val=[b""] * 10_001)
    request = predict_request("query_tower", {"text": tensor})
    code, details = code_of(stub_of(small_requests).Predict, request)
    assert (code, "over 10000 instances" in details) == ("INVALID_ARGUMENT", True)


def test_too_large_request_is_refused(small_requests):
    stub = stub_of(small_requests)
    request = predict_request("query_tower", {"text": ["a" * 2 * MAX_BYTES]})
    assert code_of(stub.Predict, request)[0] == "RESOURCE_EXHAUSTED"
    assert stub.Predict(predict_request("query_tower", {"text": ["red"]})).outputs


def test_bytes_that_are_not_a_message_are_refused(channel):
    call = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
    code, _ = code_of(call, b"\xff\xff\xff")
    assert code in {"INTERNAL", "UNKNOWN"}


def test_metadata_has_the_signatures(stub):
    request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    request.model_spec.name = "search"
    response = stub.GetModelMetadata(request)
    signatures = get_model_metadata_pb2.SignatureDefMap()
    assert response.metadata["signature_def"].Unpack(signatures)
    assert {"serving_default", "score"} <= set(signatures.signature_def)
    outputs = signatures.signature_def["serving_default"].outputs
    assert set(outputs) == {"ids", "scores", "grades", "evidence"}
    assert response.model_spec.version.value == 1
    request.metadata_field[0] = "nix"
    assert code_of(stub.GetModelMetadata, request)[0] == "INVALID_ARGUMENT"


def test_status(channel):
    models = model_service_pb2_grpc.ModelServiceStub(channel)
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = "query_tower"
    (version,) = models.GetModelStatus(request).model_version_status
    available = get_model_status_pb2.ModelVersionStatus.State.AVAILABLE
    assert (version.version, version.state, version.status.error_code) == (1, available, 0)
    request.model_spec.version.value = 5
    assert code_of(models.GetModelStatus, request)[0] == "NOT_FOUND"
    request.model_spec.name = "nix"
    assert code_of(models.GetModelStatus, request)[0] == "NOT_FOUND"


def test_classify_says_to_use_predict(stub):
    request = classification_pb2.ClassificationRequest()
    request.model_spec.name = "query_tower"
    assert code_of(stub.Classify, request)[0] == "INVALID_ARGUMENT"


def test_sixty_four_concurrent_clients_each_get_their_own_answer(export, small_requests):
    texts = [f"{word} {number}" for number in range(64) for word in ("red", "apple", "sea")]
    options = [("grpc.use_local_subchannel_pool", 1)]  # a connection for each

    def ask(text):
        with grpc.insecure_channel(small_requests.grpc, options=options) as channel:
            predict = prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict
            return arrays(predict(predict_request("query_tower", {"text": [text]})))

    with futures.ThreadPoolExecutor(64) as pool:
        vectors = np.concatenate([answer["vector"] for answer in pool.map(ask, texts)])
    np.testing.assert_allclose(vectors, encode(load_tower(export, "query")[0], texts), atol=1e-6)
