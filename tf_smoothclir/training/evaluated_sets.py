"""Sets of a model: thresholds for their grades, and warnings about what their figures say."""

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
from absl import logging

from tf_smoothclir.data.folds import distinct_queries
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.memory import MemorySource
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import Source
from tf_smoothclir.data.sources.splits import known_queries
from tf_smoothclir.data.sources.toy_world import ToyWorld
from tf_smoothclir.settings.base import value_text
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.utils.errors import InputError, input_error

_MOST_GRADES = 10
_FIRST_CUT, _LAST_CUT = 0.2, 0.7  # the paper's thresholds


def highest_grade(source: Source) -> int:
    """The highest grade of judgments of queries and documents that are there; 0 without any."""
    query_ids = {query.id for query in source.queries()}
    judged: dict[int, set[str]] = {}
    for judgment in source.judgments():
        if judgment.query_id in query_ids:
            judged.setdefault(judgment.grade, set()).add(judgment.document_id)
    for grade in sorted(judged, reverse=True):  # as a rule, one of the first documents has it
        if any(document.id in judged[grade] for document in source.documents()):
            return grade
    return 0


def thresholds_for(highest_grade: int) -> tuple[float, ...]:
    """Thresholds for grades from 0 to the highest: the paper's, or spread like them."""
    if highest_grade >= _MOST_GRADES:
        raise input_error(
            "judgments",
            f"the highest grade is {highest_grade}",
            f"Give grades from 0 to at most {_MOST_GRADES - 1}, such as 0, 1 and 2, or the"
            " thresholds between all of them",
        )
    if highest_grade <= 1:
        return (round((_FIRST_CUT + _LAST_CUT) / 2, 4),)
    return tuple(np.linspace(_FIRST_CUT, _LAST_CUT, highest_grade).round(4).tolist())


def needs_table_alone(source: Source, preset: str, given: Collection[str]) -> bool:
    """Whether --preset=lexical is right: nobody judged the set, nobody said what is trained."""
    if source.is_judged or preset or "retriever" in given:
        return False
    logging.info("Without judgments there is the translation table alone: --preset=lexical")
    return True


def with_grades_of_set(
    settings: RunSettings,
    output_dir: str | Path,
    *,
    overwrite: bool = False,
    in_memory: MemorySource | None = None,
) -> RunSettings:
    """Settings with as many thresholds as the grades of the set need."""
    # A run that is there, with the thresholds that this function gives, keeps them: its set
    # need not be there any more.
    run = RunDirectory(Path(output_dir))
    if run.config.is_file() and not overwrite:
        thresholds = run.settings().model.thresholds
        if thresholds != thresholds_for(len(thresholds)):
            return settings
    else:
        source = source_of(settings.data, in_memory)
        if isinstance(source, ToyWorld) or not source.is_judged:
            return settings
        thresholds = thresholds_for(highest_grade(source))
    if len(thresholds) == len(settings.model.thresholds):
        return settings
    values = value_text(thresholds)
    logging.info("Grades from 0 to %d in the judgments: --thresholds=%s", len(thresholds), values)
    return changed(settings, {"thresholds": thresholds})


_ENOUGH_QUERIES = 100
_FOLDS = 5
_NEAR_CHANCE = 0.05  # of what can be gained over it


def set_of_other_grades(
    source: Source, seed: int | None, trained: np.ndarray | None = None
) -> RetrievalSet:
    """Loads a set whose grades are those that its judgments have."""
    num_grades = max(1, highest_grade(source)) + 1
    return RetrievalSet.load(source, num_grades=num_grades, seed=seed, trained_before=trained)


def another_set(
    source: Source,
    data: DataSettings,
    trained_on: DataSettings,
    split: str | Sequence[str],
    trained: np.ndarray | None = None,
) -> RetrievalSet:
    """Loads a set that a model need not have been trained on, with grades of its own."""
    # What it was trained on keeps the splits of training, and who names a split gets that of any
    # other model. Of others that have no splits, all judged queries are test.
    is_own = _is_of_training(source, data, trained_on)
    is_drawn = is_own or bool(split)
    if not is_drawn and source.splits() is None:
        logging.info(
            f"{source.name} has no splits, and the model was not trained on it: all of its judged"
            " queries are measured; --split=test measures a fifth of them."
        )
    seed = data.split_seed if is_drawn else None
    return set_of_other_grades(source, seed, trained if is_own else None)


def _is_of_training(source: Source, data: DataSettings, trained_on: DataSettings) -> bool:
    """Whether a set is the one of training or, by its place, a part of it."""
    places = [(one.data_dir, one.tfds_name, one.ir_dataset) for one in (data, trained_on)]
    if places[0] == places[1] and not isinstance(source, MemorySource):
        return True
    try:
        return source_of(trained_on).fingerprint() == source.fingerprint()
    except InputError:
        return False  # the data are gone


def warn_of_figures(
    trained: np.ndarray | None, evaluated: RetrievalSet, *splits: str, is_own: bool = False
) -> None:
    """Warns of splits with few queries, or with queries that a model was trained on."""
    for split in () if is_own else splits:  # whoever loads its own set warns of it
        warn_of_few_queries(evaluated, split)
    if trained is None and not is_own:
        logging.warning("The model does not say what it was trained on: it may know these queries.")
    for split in () if trained is None else splits:
        digests = evaluated.digests[evaluated.queries_in(split)]
        same, alike = known_queries(trained, digests)
        if same or alike:
            logging.warning(
                f"The model was trained on the texts of {same} of the {len(digests)} {split}"
                f" queries, and on the words of {alike} more in another order, so the figures are"
                " too good."
            )


def log_known_queries(retrieval_set: RetrievalSet) -> None:
    """Logs how many queries that measure have the text, or the words, of one that trains."""
    source = retrieval_set.source
    remedy = "Without a file of splits, no split has the text of a training query."
    if source.splits() is None:  # drawn
        remedy = "The other queries are too few to validate and to test on: judge new ones."
    for split, (same, alike) in retrieval_set.known_queries.items():
        if same or alike:
            share = same / len(retrieval_set.queries_in(split))
            logging.log(
                logging.WARNING if same else logging.INFO,
                f"{source.name}: of the {split} queries, {same} ({share:.0%}) have the text of a"
                f" training query, and {alike} more its words in another order."
                + f" Figures over them are too good. {remedy}"
                * bool(same),
            )


def warn_of_few_queries(
    retrieval_set: RetrievalSet, split: str, *, is_measured: bool = True
) -> None:
    """Warns where a mean over a split says little or, as without relevant documents, nothing."""
    rows = retrieval_set.queries_in(split)
    queries, relevant = len(rows), retrieval_set.query_rows[retrieval_set.grades > 0]
    if not np.isin(rows, relevant).any():
        logging.warning(
            f"{retrieval_set.source.name}: no {split} query has a relevant document, so nothing can"
            " be learned, chosen or measured by it: figures of 0 say nothing. Judge documents of"
            " these queries with a grade above 0."
        )
    elif is_measured and queries < _ENOUGH_QUERIES:
        error = min(0.98 / queries**0.5, 1)  # 1.96 standard errors of a share of a half
        logging.warning(
            f"{retrieval_set.source.name}: only {queries} {split} queries. By chance, a figure of"
            f" them may be wrong by about {error:.2f}; with {_ENOUGH_QUERIES} queries by 0.10, with"
            " 400 by 0.05. Look at the intervals, judge more queries, or measure on all judged ones"
            " by cross-validation in training (--folds)."
        )


def folds_of_small_set(retrieval_set: RetrievalSet, settings: RunSettings) -> int:
    """Folds where so few queries were drawn for a test that means of them say little; else 0."""
    is_drawn = retrieval_set.source.is_judged and retrieval_set.source.splits() is None
    is_alone = settings.training.distribution == "none" and not settings.training.init_from
    if not is_drawn or not is_alone or len(retrieval_set.queries_in("test")) >= _ENOUGH_QUERIES:
        return 0
    if distinct_queries(retrieval_set) < _FOLDS:  # last, as it reads all texts
        return 0
    logging.info(
        f"So few queries are measured by cross-validation, in {_FOLDS} further trainings; --folds=0"
        " leaves them out."
    )
    return _FOLDS


def warn_near_chance(result: dict, settings: RunSettings) -> None:
    """Warns where a finished training ranks hardly better than chance, and says what to do."""
    documents, measured = result["set"]["documents"], result["test"].get("full/MRR@10")
    by_chance = sum(1 / rank for rank in range(1, min(10, documents) + 1)) / documents
    is_measured = result["counts"]["test"].get("full/MRR@10")  # by queries with relevant documents
    if not is_measured or measured - by_chance >= _NEAR_CHANCE * (1 - by_chance):
        return
    is_table_missing = settings.retrieval.families == (settings.retrieval.with_task,)
    others = "; try --preset=best or lexical" if is_table_missing else ""
    logging.warning(
        f"The model ranks hardly better than chance: full/MRR@10 is {measured:.3f} on test queries,"
        f" {by_chance:.3f} by chance. Check that the judgments name the right texts, that both"
        " languages are what --query_language and --document_language say, and judge more"
        f" queries{others}."
    )
