"""The files for TensorFlow Serving: they parse, agree, and support canary and rollback."""

import re
import shlex
from pathlib import Path

import pytest
from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    message_factory,
    text_format,
    wrappers_pb2,
)
from tensorflow_serving.config import model_server_config_pb2

from tf_smoothclir.publishing.export_directory import MODELS
from tf_smoothclir.publishing.warm_up import BATCH_SIZES

# Those of every export with towers; most exports have no re-ranker.
SERVED = [name for role, name in MODELS.items() if role != "reranker"]
SERVING = Path(__file__).parents[2] / "export" / "serving"
INT64, BOOL = ".google.protobuf.Int64Value", ".google.protobuf.BoolValue"
# TensorFlow Serving's messages that are in no package: (field, number, type, repeated).
MESSAGES = {
    "BatchingParameters": [
        ("max_batch_size", 1, INT64, False),
        ("batch_timeout_micros", 2, INT64, False),
        ("max_enqueued_batches", 3, INT64, False),
        ("num_batch_threads", 4, INT64, False),
        ("thread_pool_name", 5, ".google.protobuf.StringValue", False),
        ("allowed_batch_sizes", 6, "int64", True),
        ("pad_variable_length_inputs", 7, "bool", False),
        ("enable_large_batch_splitting", 8, BOOL, False),
        ("max_execution_batch_size", 9, INT64, False),
    ],
    "PrometheusConfig": [("enable", 1, "bool", False), ("path", 2, "string", False)],
    "MonitoringConfig": [("prometheus_config", 1, ".serving_config.PrometheusConfig", False)],
}


def message_class(name):
    """The class of one of `MESSAGES`."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{name}.proto", package="serving_config")
    file.syntax = "proto3"
    file.dependency.append("google/protobuf/wrappers.proto")
    kinds = descriptor_pb2.FieldDescriptorProto
    for message_name, fields in MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for field_name, number, kind, repeated in fields:
            field = message.field.add(name=field_name, number=number)
            field.label = kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL
            if kind.startswith("."):
                field.type, field.type_name = kinds.TYPE_MESSAGE, kind
            else:
                field.type = getattr(kinds, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    wrappers = descriptor_pb2.FileDescriptorProto()
    wrappers_pb2.DESCRIPTOR.CopyToProto(wrappers)
    pool.Add(wrappers)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"serving_config.{name}"))


def parsed_models(text):
    return text_format.Parse(text, model_server_config_pb2.ModelServerConfig())


def problems(text, export_dir):
    """Returns what is wrong with a models.config."""
    found, labels = [], []
    for model in parsed_models(text).model_config_list.config:
        wanted = set(model.model_version_policy.specific.versions)
        directory = export_dir / Path(model.base_path).name
        there = {int(path.name) for path in directory.glob("[0-9]*")}
        found += [f"{model.name}: no version {v} to load" for v in sorted(wanted - there)]
        for label, version in sorted(model.version_labels.items()):
            if version not in wanted:
                found.append(f"{model.name}: {label} names version {version}, which is not loaded")
        labels.append(dict(model.version_labels))
    if any(other != labels[0] for other in labels):
        found.append("the models differ in their labels")
    return found


def labels_of(text):
    configs = parsed_models(text).model_config_list.config
    return {model.name: dict(model.version_labels) for model in configs}


def edited(text, old, new, models=3):
    """An edit by hand in all three models."""
    assert text.count(old) == models
    return text.replace(old, new)


@pytest.fixture
def export_dir(tmp_path):
    """An export directory with three versions of all parts."""
    for part in SERVED:
        for version in ("1", "2", "3", ".4.half"):
            (tmp_path / part / version).mkdir(parents=True)
    return tmp_path


@pytest.fixture
def models_config():
    return (SERVING / "models.config").read_text()


def test_models_are_the_ones_that_an_export_writes(models_config, export_dir):
    configs = parsed_models(models_config).model_config_list.config
    assert {model.name for model in configs} == set(SERVED)
    for model in configs:
        assert model.base_path == f"/models/{model.name}"
        assert model.model_platform == "tensorflow"
        assert set(model.version_labels) == {"stable", "canary"}
    assert problems(models_config, export_dir) == []


def test_canary_and_rollback_as_in_the_readme(models_config, export_dir):
    readme = (SERVING / "README.md").read_text()
    both = "model_version_policy { specific { versions: 1 versions: 2 } }"
    canary = 'version_labels { key: "canary" value: 2 }'
    stable = 'version_labels { key: "stable" value: 2 }'
    back = 'version_labels { key: "stable" value: 1 }'
    for line in (both, canary, stable, back):
        assert f"`{line}`" in readme
    loaded = edited(models_config, "model_version_policy { specific { versions: 1 } }", both)
    tried = edited(loaded, 'version_labels { key: "canary" value: 1 }', canary)
    released = edited(tried, back, stable)
    returned = edited(released, stable, back)
    steps = [models_config, loaded, tried, released, returned]
    assert [problems(step, export_dir) for step in steps] == [[]] * len(steps)
    parts = set(SERVED)
    for step, expected in zip(steps, [(1, 1), (1, 1), (1, 2), (2, 2), (1, 2)]):
        labels = dict(zip(("stable", "canary"), expected))
        assert labels_of(step) == dict.fromkeys(parts, labels)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('key: "canary" value: 1', 'key: "canary" value: 2', "which is not loaded"),
        ("versions: 1", "versions: 1 versions: 9", "no version 9 to load"),
        ("versions: 1", "versions: 2", "stable names version 1, which is not loaded"),
    ],
)
def test_editing_mistakes_are_found(models_config, export_dir, old, new, problem):
    assert any(problem in found for found in problems(models_config.replace(old, new), export_dir))


def test_label_moved_in_only_one_model_is_found(models_config, export_dir):
    loaded = models_config.replace("versions: 1", "versions: 1 versions: 2")
    half = loaded.replace('key: "stable" value: 1', 'key: "stable" value: 2', 1)
    assert problems(half, export_dir) == ["the models differ in their labels"]


def test_batch_sizes_are_those_of_the_warm_up_requests():
    text = (SERVING / "batching.config").read_text()
    batching = text_format.Parse(text, message_class("BatchingParameters")())
    assert batching.enable_large_batch_splitting.value
    assert batching.max_execution_batch_size.value == max(BATCH_SIZES)
    assert batching.max_batch_size.value >= batching.max_execution_batch_size.value
    assert batching.num_batch_threads.value >= 1
    assert list(batching.allowed_batch_sizes) == []


def test_every_batching_parameter_has_a_reason():
    blocks = (SERVING / "batching.config").read_text().strip().split("\n\n")
    for block in blocks:
        assert block.startswith("# "), block


def test_monitoring_is_enabled_at_the_path_that_prometheus_scrapes():
    text = (SERVING / "monitoring.config").read_text()
    monitoring = text_format.Parse(text, message_class("MonitoringConfig")()).prometheus_config
    assert monitoring.enable
    for name in ("prometheus.yml", "kubernetes.yaml"):
        assert monitoring.path in (SERVING / name).read_text()


@pytest.mark.parametrize("text", ["max_batch_sizes { value: 3 }", "max_batch_size: 3"])
def test_misspelled_setting_is_found(text):
    with pytest.raises(text_format.ParseError):
        text_format.Parse(text, message_class("BatchingParameters")())


def yaml_documents(name):
    yaml = pytest.importorskip("yaml", reason=f"PyYAML is not installed: {name} is not parsed")
    return list(yaml.safe_load_all((SERVING / name).read_text()))


def check_arguments(arguments):
    """Checks that a server gets the files that are here, and what the labels need."""
    flags = dict(argument.lstrip("-").split("=") for argument in arguments)
    for flag in ("model_config_file", "batching_parameters_file", "monitoring_config_file"):
        path = Path(flags[flag])
        assert path.parent == Path("/config")
        assert (SERVING / path.name).is_file()
    assert flags["enable_batching"] == "true"
    assert flags["allow_version_labels_for_unavailable_models"] == "true"
    assert int(flags["model_config_file_poll_wait_seconds"]) > 0
    assert (flags["port"], flags["rest_api_port"]) == ("8500", "8501")


def test_compose_file():
    (compose,) = yaml_documents("docker-compose.yml")
    serving = compose["services"]["serving"]
    assert serving["image"] == "tensorflow/serving:2.15.1"
    check_arguments(serving["command"])
    assert [volume.rsplit(":", 2)[-2:] for volume in serving["volumes"]] == [
        ["/models", "ro"],
        ["/config", "ro"],
    ]
    assert [port.rsplit(":", 1)[-1] for port in serving["ports"]] == ["8500", "8501"]
    command, *_ = serving["healthcheck"]["test"]
    assert command == "CMD"
    script = serving["healthcheck"]["test"][-1]
    assert "/v1/models/query_tower/labels/stable" in script
    assert shlex.split(script)


def test_kubernetes_manifest():
    documents = {document["kind"]: document for document in yaml_documents("kubernetes.yaml")}
    assert set(documents) == {"Deployment", "Service", "HorizontalPodAutoscaler"}
    pod = documents["Deployment"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    check_arguments(container["args"])
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"grpc": 8500, "rest": 8501}
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        get = container[probe]["httpGet"]
        assert get["path"].startswith("/v1/models/query_tower")
        assert get["port"] == "rest"
    assert {"cpu", "memory"} <= set(container["resources"]["limits"])
    volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    assert {port["targetPort"] for port in documents["Service"]["spec"]["ports"]} == set(ports)
    labels = pod["metadata"]["labels"]
    assert documents["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    assert documents["Service"]["spec"]["selector"] == labels
    target = documents["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]
    assert target["name"] == documents["Deployment"]["metadata"]["name"]


def test_prometheus_scrapes_the_rest_port():
    (prometheus,) = yaml_documents("prometheus.yml")
    (job,) = prometheus["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["serving:8501"]}]


def test_readme_names_every_file_and_no_others():
    readme = (SERVING / "README.md").read_text()
    table = readme.split("## Run")[0]
    named = set(re.findall(r"`([\w.-]+\.(?:config|ya?ml))`", table))
    assert named == {path.name for path in SERVING.iterdir()} - {"README.md"}
