"""The files for TensorFlow Serving: they parse, agree, and support canary and rollback."""

import re
from pathlib import Path

import yaml
from google.protobuf import text_format
from tensorflow_serving.config import model_server_config_pb2

from tf_smoothclir.publishing.server_config import server_config, write_server_config
from tf_smoothclir.publishing.version_writer import LARGEST_BATCH

TOWERS = ["document_tower", "search", "query_tower"]  # what most exports have
SERVING = Path(__file__).parents[2] / "export" / "serving"
METRICS = "/monitoring/prometheus/metrics"
# Fields of BatchingParameters, a message of TensorFlow Serving that is in no package, with a value
# of a type that wraps a number or a truth value.
BATCHING = {"max_batch_size", "batch_timeout_micros", "max_enqueued_batches", "num_batch_threads"}
BATCHING |= {"enable_large_batch_splitting", "max_execution_batch_size"}


def labels_of(text, loaded):
    """Model -> label -> version; checks that a models.config loads these versions everywhere."""
    found = {}
    parsed = text_format.Parse(text, model_server_config_pb2.ModelServerConfig())
    for model in parsed.model_config_list.config:
        assert model.base_path == f"/models/{model.name}"
        assert model.model_platform == "tensorflow"
        assert list(model.model_version_policy.specific.versions) == loaded
        found[model.name] = dict(model.version_labels)
        assert set(found[model.name].values()) <= set(loaded)
    return found


def test_models_and_edits_of_the_readme_move_labels_of_all_models_alike():
    readme = (SERVING / "README.md").read_text()
    text = server_config(["query", "document", "search"], 1)
    policy = "model_version_policy {{ specific {{ versions: {} }} }}".format
    label = 'version_labels {{ key: "{}" value: {} }}'.format
    steps = [
        (policy("1"), policy("1 versions: 2"), 1, 1),
        (label("canary", 1), label("canary", 2), 1, 2),
        (label("stable", 1), label("stable", 2), 2, 2),
        (label("stable", 2), label("stable", 1), 1, 2),  # rollback
    ]
    assert labels_of(text, [1]) == {name: {"stable": 1, "canary": 1} for name in TOWERS}
    for old, new, stable, canary in steps:
        assert f"`{new}`" in readme
        assert text.count(old) == len(TOWERS)
        text = text.replace(old, new)
        labels = {"stable": stable, "canary": canary}
        assert labels_of(text, [1, 2]) == dict.fromkeys(TOWERS, labels)


def test_the_config_of_an_export_names_what_it_has_and_is_written_once(ranking_exports, tmp_path):
    for retriever, models in (("lexical", {"search"}), ("dense", {*TOWERS})):
        text = (ranking_exports[retriever] / "models.config").read_text()
        assert labels_of(text, [1]).keys() == models
    write_server_config(tmp_path, ["lexical", "search", "reranker", "head"], 7)
    text = (tmp_path / "models.config").read_text()
    assert labels_of(text, [7]).keys() == {"search", "reranker", "encoder_head"}
    write_server_config(tmp_path, ["search"], 8)
    assert (tmp_path / "models.config").read_text() == text


def test_batch_sizes_are_those_of_the_warm_up_requests():
    text = (SERVING / "batching.config").read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    found = dict(re.fullmatch(r"(\w+) \{ value: (\w+) \}", line).groups() for line in lines)
    assert found.keys() == BATCHING
    assert found["enable_large_batch_splitting"] == "true"
    assert int(found["max_execution_batch_size"]) == LARGEST_BATCH
    assert int(found["max_batch_size"]) >= LARGEST_BATCH


def yaml_documents(name):
    return list(yaml.safe_load_all((SERVING / name).read_text()))


def test_metrics_are_at_the_path_and_port_that_prometheus_scrapes():
    content = re.sub("^#.*\n", "", (SERVING / "monitoring.config").read_text(), flags=re.MULTILINE)
    message = r'prometheus_config \{\s+enable: true\s+path: "([^"]+)"\s+\}\s*'
    for name in ("prometheus.yml", "kubernetes.yaml"):
        assert re.fullmatch(message, content)[1] in (SERVING / name).read_text()
    (prometheus,) = yaml_documents("prometheus.yml")
    (job,) = prometheus["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["serving:8501"]}]


def check_arguments(arguments, model_config_file):
    """Checks that a server gets the files that are here, and what the labels need."""
    flags = dict(argument.lstrip("-").split("=") for argument in arguments)
    assert flags["model_config_file"] == model_config_file
    for flag in ("batching_parameters_file", "monitoring_config_file"):
        path = Path(flags[flag])
        assert path.parent == Path("/config")
        assert (SERVING / path.name).is_file()
    assert flags["enable_batching"] == "true"
    assert flags["allow_version_labels_for_unavailable_models"] == "true"
    assert int(flags["model_config_file_poll_wait_seconds"]) > 0
    assert (flags["port"], flags["rest_api_port"]) == ("8500", "8501")


def test_containers_get_these_files_and_their_probes_ask_the_right_port():
    (compose,) = yaml_documents("docker-compose.yml")
    serving = compose["services"]["serving"]
    check_arguments(serving["command"], "/models/models.config")
    mounted = [volume.rsplit(":", 2)[-2:] for volume in serving["volumes"]]
    assert mounted == [["/models", "ro"], ["/config", "ro"]]
    assert f"GET {METRICS} " in serving["healthcheck"]["test"][-1]
    documents = {document["kind"]: document for document in yaml_documents("kubernetes.yaml")}
    pod = documents["Deployment"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    check_arguments(container["args"], "/config/models.config")
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"grpc": 8500, "rest": 8501}
    assert {port["targetPort"] for port in documents["Service"]["spec"]["ports"]} == set(ports)
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        get = container[probe]["httpGet"]
        assert get["path"] == METRICS  # a model that only some exports have would not do
        assert get["port"] == "rest"
    assert documents["Service"]["spec"]["selector"] == pod["metadata"]["labels"]
