"""Sets that a trained model is evaluated on, which need not be the one of its training."""

from __future__ import annotations

from absl import logging

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS, Source
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.training.grades import highest_grade
from tf_smoothclir.utils.errors import InputError


def set_of_other_grades(source: Source, seed: int) -> RetrievalSet:
    """Loads a set whose grades are those that its judgments have."""
    return RetrievalSet.load(source, num_grades=max(1, highest_grade(source)) + 1, seed=seed)


def set_of_training(data: DataSettings, num_grades: int) -> RetrievalSet:
    """Loads the set that a model was trained on."""
    return RetrievalSet.load(source_of(data), num_grades=num_grades, seed=data.split_seed)


def warn_of_known_queries(
    data: DataSettings, num_grades: int, evaluated: RetrievalSet, split: str
) -> None:
    """Warns if a split has queries, by their texts, that a model was trained on, in `data`."""
    try:
        trained = set_of_training(data, num_grades)
    except InputError:
        return  # the data are gone
    in_training = trained.splits == SPLITS.index("train")
    known = {text.text for text, is_known in zip(trained.source.queries(), in_training) if is_known}
    rows = set(evaluated.queries_in(split).tolist())
    texts = [text.text for row, text in enumerate(evaluated.source.queries()) if row in rows]
    if repeated := sum(text in known for text in texts):
        logging.warning(
            "The model was trained on %d of the %d %s queries, so the figures are too good. The"
            " test queries of the set of training are new to it.",
            repeated,
            len(texts),
            split,
        )
