"""The models of a server; versions come and go while it answers requests."""

from __future__ import annotations

import dataclasses
import gc
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from tf_smoothclir.server.loaded_model import LoadedModel
from tf_smoothclir.server.model_config import ModelConfig
from tf_smoothclir.server.request_error import RequestError, invalid
from tf_smoothclir.utils.errors import InputError


@dataclasses.dataclass(frozen=True)
class VersionState:
    """What `GetModelStatus` says about a version.

    Attributes:
        state: "LOADING", "AVAILABLE" or "END".
        code: "OK", or the gRPC code of the failure.
        message: Empty, or why it failed.
    """

    state: str
    code: str = "OK"
    message: str = ""


class VersionChoice(NamedTuple):
    """What a request names.

    Attributes:
        name: Name of the model.
        version: Its version; None for the one that the label names or, without a label, the latest.
        label: Label of a version; empty for none.
    """

    name: str
    version: int | None
    label: str


class ModelRegistry:
    """The models that are served; follows the configuration and the directories.

    Like TensorFlow Serving, it loads new versions before it unloads old ones, and keeps an old one
    until a wanted one has loaded. A version that failed is tried again when its files change.
    """

    def __init__(self, read_configs: Callable[[], Sequence[ModelConfig]]):
        self._read_configs = read_configs
        self._configs: dict[str, ModelConfig] = {}
        # The inner dictionaries are replaced, never changed.
        self._models: dict[str, dict[int, LoadedModel]] = {}
        self._states: dict[str, dict[int, VersionState]] = {}
        self._failed: dict[Path, tuple] = {}  # directory -> state of its files at that time
        self._lock = threading.Lock()

    def start(self) -> None:
        """Loads all models."""
        self._follow(self._read_configs())
        for name, config in self._configs.items():
            if not self._models.get(name):
                reasons = [state.message for state in self._states.get(name, {}).values()]
                raise InputError(
                    reasons[-1]
                    if reasons
                    else f"{config.base_path}: model {name!r} has no version to serve. Publish one"
                    " there with smoothclir-export."
                )

    def poll(self) -> None:
        """Follows the configuration and the directories; ignores a configuration with an error."""
        try:
            configs = self._read_configs()
        except InputError as error:
            logging.warning("Keeping the last valid configuration: %s", error)
            configs = list(self._configs.values())
        self._follow(configs)

    def names(self) -> list[str]:
        """The names of the models."""
        return list(self._configs)

    def get(self, name: str, version: int | None = None, label: str = "") -> LoadedModel:
        """A version that is ready: the requested one, or the latest."""
        if not name:
            raise invalid("Missing ModelSpec name")
        version = self._resolve(name, version, label)
        models = self._models.get(name, {})
        if version is None:
            version = max(models, default=None)
        if version not in models:
            asked = f"Latest({name})" if version is None else f"Specific({name}, {version})"
            raise RequestError("NOT_FOUND", f"Servable not found for request: {asked}")
        return models[version]

    def states(
        self, name: str, version: int | None = None, label: str = ""
    ) -> dict[int, VersionState]:
        """Version -> state for all versions or the requested one, latest first."""
        version = self._resolve(name, version, label)
        states = dict(sorted(self._states.get(name, {}).items(), reverse=True))
        if not states:
            raise RequestError("NOT_FOUND", f"Could not find any versions of model {name}")
        if version is None:
            return states
        if version not in states:
            raise RequestError("NOT_FOUND", f"Could not find version {version} of model {name}")
        return {version: states[version]}

    def _resolve(self, name: str, version: int | None, label: str) -> int | None:
        if not label:
            return version
        config = self._configs.get(name)
        if config is None or label not in config.labels:
            raise invalid(f"Unrecognized servable version label: {label}")
        return config.labels[label]

    def _follow(self, configs: Sequence[ModelConfig]) -> None:
        with self._lock:
            self._configs = {config.name: config for config in configs}
            for config in configs:
                self._follow_one(config)
            for name in self._models.keys() - self._configs.keys():
                self._unload(name, self._models[name])

    def _follow_one(self, config: ModelConfig) -> None:
        wanted = config.wanted()
        for version in wanted:
            if version not in self._models.get(config.name, {}):
                self._load(config, version)
        loaded = self._models.get(config.name, {})
        if not wanted or any(version in loaded for version in wanted):
            self._unload(config.name, loaded.keys() - set(wanted))

    def _load(self, config: ModelConfig, version: int) -> None:
        directory = config.base_path / str(version)
        stamp = _stamp(directory)
        if self._failed.get(directory) == stamp:
            return
        states = self._states.setdefault(config.name, {})
        states[version] = VersionState("LOADING")
        try:
            model = LoadedModel(config.name, version, directory)
        except Exception as error:  # whatever the files contain: the server keeps running
            self._failed[directory] = stamp
            code = "FAILED_PRECONDITION" if isinstance(error, InputError) else "INTERNAL"
            states[version] = VersionState("END", code, str(error))
            logging.warning("Model %s version %d failed to load: %s", config.name, version, error)
            return
        self._failed.pop(directory, None)
        self._models[config.name] = {**self._models.get(config.name, {}), version: model}
        states[version] = VersionState("AVAILABLE")
        logging.info("Model %s version %d is ready", config.name, version)

    def _unload(self, name: str, versions: Iterable[int]) -> None:
        for version in list(versions):
            kept = {key: model for key, model in self._models[name].items() if key != version}
            self._models[name] = kept
            self._states[name][version] = VersionState("END")
            logging.info("Model %s version %d is out of service", name, version)
            gc.collect()  # a loaded model is a reference cycle


def _stamp(directory: Path) -> tuple:
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return tuple((str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files)
