"""The door of all settings: presets, what a user gives beside them, and the check of both."""

import dataclasses
import json
from collections.abc import Callable, Collection, Mapping

from absl import logging

from tf_smoothclir import plugins
from tf_smoothclir.settings import data, model, retrieval, search, text, training
from tf_smoothclir.settings.base import Rule
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.utils.errors import InputError, input_error

# The best towers alone, chosen on the validation queries of mdn-en-de.
_DENSE = {
    "shared_vocabulary": True,
    "ngram_buckets": 100_000,
    "ngram_rows_per_word": 4,  # no limit on any set that it was chosen on
    "min_ngram": 4,
    "dim": 512,
    "matryoshka_dims": (64, 128, 256),
    "token_weights": "learned",
    "position_weights": "learned",
    "initial_vectors": "bilingual",
    "loss": "ordinal_softmax",
    "train_negatives": 0,
    "hard_negatives": 5,
    "pseudo_queries": 6_000,
    "batching": "in_batch",
    "optimizer": "row_rmsprop",
    "batch_size": 512,
    "learning_rate": 0.025,
    "learning_rate_decay": 0.7,
    "epochs": 4,
}
_DOCUMENTS = {"passage_words": (300, 100, 50), "text_fields": ("title", "body")}
# Values of --preset. What is not named is as the settings are by themselves: the towers, the loss
# and the sizes of Liu et al. 2020, section 5, with Adam without momentum.
PRESETS = {
    "best": {**_DENSE, **_DOCUMENTS, "retriever": "hybrid"},
    "dense": _DENSE,
    "lexical": {"retriever": "lexical", "shared_vocabulary": True, **_DOCUMENTS},
    "fast": {},
    # As section 5 says and their code does.
    "paper": {"max_queries": 25_000, "optimizer": "adam", "published_towers": True},
}
# Settings of models and training that runs without towers use too.
_NOT_OF_TOWERS = {"thresholds", "negatives", "seed", "init_from", "distribution"}
# Tower -> what the paper trains it with besides.
PAPER_TOWERS = {
    "cnn": {"learning_rate": 0.001, "learning_rate_decay": 0.95},
    "lstm": {"learning_rate": 0.001, "learning_rate_decay": 0.95, "batch_size": 64, "epochs": 15},
}


def rules() -> tuple[Rule, ...]:
    """What goes together with what; each rule stands beside what it protects."""
    rooms = (search, retrieval, data, text, model, training)
    return (*(rule for room in rooms for rule in room.RULES), *plugins.rules())


def changed(
    settings: RunSettings,
    changes: Mapping[str, object],
    *,
    varied: Collection[str] = (),
    **beside: object,
) -> RunSettings:
    """Settings with some values changed, by name, in whatever group, after a check."""
    # This is where settings come into being, and the one place where they are checked. No rule is
    # checked that reads a setting of `varied`, which others decide; `beside` is read by rules, and
    # is no setting.
    left, groups = dict(changes), settings.groups()
    try:
        for name, group in groups.items():
            names = group.values().keys() & left.keys()
            groups[name] = dataclasses.replace(group, **{name: left.pop(name) for name in names})
    except ValueError as error:
        raise InputError(str(error)) from error
    if left:
        raise ValueError(f"There are no settings {sorted(left)}.")
    made = RunSettings.from_groups(groups).with_encoder()
    _check({**made.values(), **beside}, varied)
    return made


def _check(values: Mapping[str, object], varied: Collection[str] = ()) -> None:
    for rule in rules():
        if rule.breaks(values) and not {*rule.names} & {*varied}:
            raise rule.error(values)


def preset_settings(
    preset: str,
    given: Mapping[str, object] | None = None,
    *,
    begin_with: Callable[[str], RunSettings] | None = None,
    **beside,
) -> RunSettings:
    """The settings that a user gives; what they leave out is as in a preset."""
    # "" is the best preset that goes with what is given: its towers, else those of "fast", which
    # have other losses, batches and forms. `begin_with`: from the path of a run, with `init_from`,
    # to the settings that are left out.
    given = given or {}
    if path := given.get("init_from"):
        if preset:
            raise input_error(
                f"--init_from={path} --preset={preset}",
                "a run that begins with another one has its settings",
                "Leave one of the two out",
            )
        _check(given)  # before the run is read, which may not be there
        made = changed(begin_with(str(path)), given, **beside)
    elif preset:
        of_tower = PAPER_TOWERS.get(given.get("tower"), {}) if preset == "paper" else {}
        made = changed(RunSettings(), {**PRESETS[preset], **of_tower, **given}, **beside)
    else:
        made = _best_that_fits(given, **beside)
    _check_used(made, given, beside.get("tune", ()))
    return made


def _check_used(made: RunSettings, given: Mapping[str, object], searched: Collection[str]) -> None:
    """Refuses objects, and values beside a search, that nothing uses; warns of other settings."""
    if (encoder := str(given.get("encoder", ""))).lower().endswith(".npz"):
        logging.warning(
            f"--encoder={encoder}: it encodes no other texts. A run that keeps it can be measured,"
            " but not search. To search, train with an encoder that reads texts, or with none."
        )
    defaults = RunSettings().values()  # a flag file has them all
    others = [name for name, value in given.items() if value != defaults[name]]
    if vain := sorted({*others} & {*searched} - {"thresholds"}):  # of which it says how many
        flags = ", ".join(f"--{name}" for name in vain)
        raise input_error(flags, "--tune searches it", "Leave one of the two out")
    families = map(plugins.FAMILIES.plugin, made.retrieval.families)
    if made.retrieval.with_task or any(family.module for family in families):  # which may use it
        return
    if objects := given.get("objects"):
        remedy = "Leave it out, or give another --preset or --retriever"
        raise input_error(", ".join(json.loads(str(objects))), "no towers are trained", remedy)
    of_towers = {*made.model.values(), *made.training.values(), "ngram_buckets"}
    if unused := sorted({*others} & of_towers - _NOT_OF_TOWERS):
        flags = ", ".join(f"--{name}" for name in unused)
        logging.warning("%s: no towers are trained, and nothing else uses it", flags)


def _best_that_fits(given: Mapping[str, object], **beside) -> RunSettings:
    """The best preset with what is given, or as much of it as goes with that."""
    tune = beside.get("tune", ())
    retriever = {"retriever": "dense" if tune else "hybrid"}
    towers = {} if "tower" in tune else _DENSE  # which are of one kind
    refused: list[InputError] = []
    for defaults in ({**towers, **_DOCUMENTS, **retriever}, {**_DOCUMENTS, **retriever}, {}):
        try:
            fitting = changed(RunSettings(), {**defaults, **given}, **beside)
        except InputError as error:
            refused.append(error)
        else:
            if refused:
                why = str(refused[0]).partition(". ")[0]
                logging.info("The towers are those of --preset=fast, not best (%s)", why)
            return fitting
    raise refused[-1]
