"""Cross-lingual document retrieval with smooth learning (Liu et al. 2020), for TensorFlow.

`train` and `load` return a `Model`, which encodes, searches, scores, evaluates and exports. With
the package imported, tensorflow-datasets has the dataset `wiki_clir`. TensorFlow itself is loaded
when a public name is first used, and logs nothing then unless TF_CPP_MIN_LOG_LEVEL says so.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    # For editors and type checkers: the names of `_PUBLIC`.
    from tf_smoothclir import plugins as plugins
    from tf_smoothclir.api import metrics as metrics
    from tf_smoothclir.api.comparison import compare as compare
    from tf_smoothclir.api.model import Model as Model
    from tf_smoothclir.api.model import load as load
    from tf_smoothclir.api.mteb import MtebEncoder as MtebEncoder
    from tf_smoothclir.api.training import teach as teach
    from tf_smoothclir.api.training import train as train
    from tf_smoothclir.api.tuning import HyperModel as HyperModel
    from tf_smoothclir.api.tuning import tune as tune
    from tf_smoothclir.client.serving_client import ServingClient as ServingClient
    from tf_smoothclir.families.family import Family as Family
    from tf_smoothclir.losses.listwise import SoftmaxLoss as SoftmaxLoss
    from tf_smoothclir.losses.ordinal import CumulativeLogits as CumulativeLogits
    from tf_smoothclir.losses.ordinal import ProportionalOdds as ProportionalOdds
    from tf_smoothclir.losses.ordinal import SegmentMeanSquaredError as SegmentMeanSquaredError
    from tf_smoothclir.losses.ordinal import SmoothOrdinalSearchLoss as SmoothOrdinalSearchLoss
    from tf_smoothclir.losses.ordinal import ThreePartL2 as ThreePartL2
    from tf_smoothclir.losses.ordinal import ThresholdLoss as ThresholdLoss
    from tf_smoothclir.optimizers.adam import LazyAdam as LazyAdam
    from tf_smoothclir.optimizers.sparse_rmsprop import RowRMSprop as RowRMSprop
    from tf_smoothclir.optimizers.sparse_rmsprop import SparseRMSprop as SparseRMSprop
    from tf_smoothclir.settings.base import Settings as Settings
    from tf_smoothclir.settings.base import setting as setting
    from tf_smoothclir.towers.average_pooling import AveragePoolingTower as AveragePoolingTower
    from tf_smoothclir.towers.cnn import CNNTower as CNNTower
    from tf_smoothclir.towers.lstm import LSTMTower as LSTMTower
    from tf_smoothclir.towers.text_tower import TextTower as TextTower
    from tf_smoothclir.two_tower.model import TwoTower as TwoTower
    from tf_smoothclir.two_tower.similarity import SmoothCosineSimilarity as SmoothCosineSimilarity
    from tf_smoothclir.two_tower.similarity import smooth_normalize as smooth_normalize
    from tf_smoothclir.utils.errors import InputError as InputError

    __version__: str

from tf_smoothclir.utils.import_hooks import around_import

_NAMES = {
    "api.comparison": "compare",
    "api.model": "Model load",
    "api.mteb": "MtebEncoder",
    "api.training": "teach train",
    "api.tuning": "HyperModel tune",
    "client.serving_client": "ServingClient",
    "families.family": "Family",
    "losses.listwise": "SoftmaxLoss",
    "losses.ordinal": "CumulativeLogits ProportionalOdds SegmentMeanSquaredError"
    " SmoothOrdinalSearchLoss ThreePartL2 ThresholdLoss",
    "optimizers.adam": "LazyAdam",
    "optimizers.sparse_rmsprop": "RowRMSprop SparseRMSprop",
    "settings.base": "Settings setting",
    "towers.average_pooling": "AveragePoolingTower",
    "towers.cnn": "CNNTower",
    "towers.lstm": "LSTMTower",
    "towers.text_tower": "TextTower",
    "two_tower.model": "TwoTower",
    "two_tower.similarity": "SmoothCosineSimilarity smooth_normalize",
    "utils.errors": "InputError",
}
_PUBLIC = {name: module for module, names in _NAMES.items() for name in names.split()}
_VERSION = "__version__"
_MODULES = {"metrics": "api.metrics", "plugins": "plugins"}
__all__ = sorted([*_PUBLIC, *_MODULES])


def __getattr__(name: str) -> Any:
    if name == _VERSION:
        return importlib.import_module("importlib.metadata").version(__name__)
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    importlib.import_module(f"{__name__}._compat.quiet").hush_tensorflow()
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{_MODULES[name]}")
    return getattr(importlib.import_module(f"{__name__}.{_PUBLIC[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__, _VERSION]


@contextlib.contextmanager
def _dataset_after() -> Iterator[None]:
    yield
    _register_dataset()


def _register_dataset() -> None:
    importlib.import_module(f"{__name__}.data.sources.wiki_clir_builder")


if "tensorflow_datasets" in sys.modules:
    _register_dataset()
else:  # to load it takes longer than much that needs neither
    around_import("tensorflow_datasets", _dataset_after)
