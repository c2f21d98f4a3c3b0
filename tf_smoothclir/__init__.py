"""Cross-lingual document retrieval with smooth learning (Liu et al. 2020), for TensorFlow.

Importing the package registers the TensorFlow dataset `wiki_clir`; TensorFlow itself is loaded when
a public name is first used.
"""

import importlib

from tf_smoothclir.data import wiki_clir_builder as _builder  # noqa: F401  (registers the dataset)

_PUBLIC = {
    "AveragePoolingTower": "towers.average_pooling",
    "CNNTower": "towers.cnn",
    "InputError": "errors",
    "LSTMTower": "towers.lstm",
    "LazyAdam": "optimizers",
    "ListLoss": "list_losses",
    "ProportionalOdds": "losses",
    "SegmentMeanSquaredError": "losses",
    "SmoothCosineSimilarity": "similarity",
    "SmoothOrdinalSearchLoss": "losses",
    "SparseAdagrad": "optimizers",
    "SparseRMSprop": "optimizers",
    "ThreePartL2": "losses",
    "TwoTower": "two_tower",
    "smooth_normalize": "similarity",
}
__all__ = sorted(_PUBLIC)


def __getattr__(name: str):
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PUBLIC[name]}"), name)


def __dir__():
    return [*globals(), *_PUBLIC]
