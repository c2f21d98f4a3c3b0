"""Which models are served: those of an export directory or of a model config file."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from google.protobuf import text_format
from tensorflow_serving.config import model_server_config_pb2

from tf_smoothclir.publishing import export_directory
from tf_smoothclir.publishing.export_directory import lacks_parts
from tf_smoothclir.utils.errors import input_error

MODELS = tuple(export_directory.MODELS.values())


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """One model to serve.

    Attributes:
        name: Name of the model in requests.
        base_path: Directory whose integer subdirectories are the versions.
        choose: From the versions that are there, in ascending order, to the versions to serve.
        labels: Label -> version.
    """

    name: str
    base_path: Path
    choose: Callable[[Sequence[int]], Sequence[int]]
    labels: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def wanted(self) -> list[int]:
        """The versions to serve, in ascending order; none that lacks parts of its export.

        So two towers that are served together belong together, whenever an export was killed.
        """
        if not self.base_path.is_dir():
            return []
        names = (path.name for path in self.base_path.iterdir() if path.is_dir())
        there = sorted(int(name) for name in names if name.isdecimal())
        return list(self.choose([v for v in there if not lacks_parts(self.base_path / str(v))]))


def configs_of_export(export_dir: str | os.PathLike) -> list[ModelConfig]:
    """The models of an export directory, each with its latest version."""
    configs = [ModelConfig(name, Path(export_dir, name), _latest(1)) for name in MODELS]
    found = [config for config in configs if config.wanted()]
    if not found:
        raise input_error(
            f"--export_dir={export_dir}",
            f"there is no model ({', '.join(MODELS)})"
            if Path(export_dir).is_dir()
            else "there is no such directory",
            "Write them with smoothclir-export",
        )
    return found


def configs_of_file(
    path: str | os.PathLike, export_dir: str | os.PathLike | None = None
) -> list[ModelConfig]:
    """Reads a model config file (text format of `tensorflow.serving.ModelServerConfig`)."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        parsed = text_format.Parse(text, model_server_config_pb2.ModelServerConfig())
    except OSError as error:
        raise input_error(path, f"it cannot be read: {error.strerror}", "Check the path") from None
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise input_error(
            path,
            f"it is not a model config file: {error}",
            "Write a ModelServerConfig in text format",
        ) from None
    configs = [_config(path, one, export_dir) for one in parsed.model_config_list.config]
    names = [config.name for config in configs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or not configs:
        reason = f"it names model {twice[0]!r} twice" if twice else "it names no model"
        raise input_error(path, reason, "Give each model one `config` in `model_config_list`")
    return configs


def _config(path, config, export_dir) -> ModelConfig:
    base_path = Path(config.base_path)
    if export_dir:
        base_path = Path(export_dir, base_path.name)
    if not config.name or not (base_path.is_absolute() or export_dir):
        raise input_error(
            path,
            f"model {config.name!r} has the base_path {config.base_path!r}",
            "Give it a name and an absolute path, or set --export_dir",
        )
    if config.model_platform != "tensorflow":
        raise input_error(
            path,
            f"model {config.name!r} has the platform {config.model_platform!r}",
            'Set model_platform: "tensorflow"',
        )
    return ModelConfig(
        config.name, base_path, _choice(config.model_version_policy), dict(config.version_labels)
    )


def _choice(policy) -> Callable[[Sequence[int]], Sequence[int]]:
    kind = policy.WhichOneof("policy_choice")
    if kind == "all":
        return lambda versions: versions
    if kind == "specific":
        specific = frozenset(policy.specific.versions)
        return lambda versions: [version for version in versions if version in specific]
    return _latest(policy.latest.num_versions or 1)


def _latest(count: int) -> Callable[[Sequence[int]], Sequence[int]]:
    return lambda versions: versions[-count:]
