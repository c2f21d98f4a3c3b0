"""Cross-lingual document retrieval with smooth learning (Liu et al. 2020), for TensorFlow.

With the package imported, tensorflow-datasets has the dataset `wiki_clir`. TensorFlow itself is
loaded when a public name is first used.
"""

import contextlib
import importlib
import sys

from tf_smoothclir.utils.import_hooks import around_import

_PUBLIC = {
    "ApproxNDCGLoss": "losses.approx_ndcg",
    "AveragePoolingTower": "towers.average_pooling",
    "CNNTower": "towers.cnn",
    "CumulativeLogits": "losses.cumulative_logits",
    "InputError": "utils.errors",
    "LSTMTower": "towers.lstm",
    "LazyAdam": "optimizers.lazy_adam",
    "ListMLELoss": "losses.list_mle",
    "PairwiseHingeLoss": "losses.pairwise",
    "PairwiseLogisticLoss": "losses.pairwise",
    "ProportionalOdds": "losses.proportional_odds",
    "SegmentMeanSquaredError": "losses.mse",
    "SmoothCosineSimilarity": "two_tower.similarity",
    "SmoothOrdinalSearchLoss": "losses.sosl",
    "SoftmaxLoss": "losses.softmax",
    "SparseAdagrad": "optimizers.sparse_adagrad",
    "SparseRMSprop": "optimizers.sparse_rmsprop",
    "ThreePartL2": "losses.three_part_l2",
    "TwoTower": "two_tower.model",
    "smooth_normalize": "two_tower.similarity",
}
__all__ = sorted(_PUBLIC)


def __getattr__(name: str):
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PUBLIC[name]}"), name)


def __dir__():
    return [*globals(), *_PUBLIC]


@contextlib.contextmanager
def _dataset_after():
    yield
    _register_dataset()


def _register_dataset() -> None:
    importlib.import_module(f"{__name__}.data.sources.wiki_clir_builder")


if "tensorflow_datasets" in sys.modules:
    _register_dataset()
else:  # to load it takes longer than much that needs neither
    around_import("tensorflow_datasets", _dataset_after)
