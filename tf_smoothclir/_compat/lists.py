"""Ranking metrics by tensorflow-ranking or, on the other stack, by keras-rs.

Both modules have the same function with the same results, which `tests/golden.json` holds. They
import their library when it is used, because the import takes a second.
"""

from tf_smoothclir._compat import ON_KERAS_3

if ON_KERAS_3:
    from tf_smoothclir._compat.keras_rs_lists import list_metric
else:
    from tf_smoothclir._compat.tensorflow_ranking_lists import list_metric

__all__ = ["list_metric"]
