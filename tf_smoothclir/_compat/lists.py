"""Ranking metrics and losses of the stack: tensorflow-ranking's, or keras-rs's in its place.

Both modules have the same two functions with the same numbers, which `tests/golden.json` holds.
Either library is imported where it is used, because that takes a second.
"""

from tf_smoothclir._compat import ON_KERAS_3

if ON_KERAS_3:
    from tf_smoothclir._compat.keras_rs_lists import list_losses, list_metric
else:
    from tf_smoothclir._compat.tensorflow_ranking_lists import list_losses, list_metric

__all__ = ["list_losses", "list_metric"]
