"""Settings: defaults of the paper, refused values, what goes together with what."""

import math

import pytest

from tests.cases import cases
from tests.settings.broken_combinations import OF_FLAGS, OF_SETTINGS
from tf_smoothclir.optimizers import LEARNING_RATE
from tf_smoothclir.plugins import LOSSES
from tf_smoothclir.settings import data, run, text
from tf_smoothclir.settings.model import ModelSettings
from tf_smoothclir.settings.presets import PRESETS, changed, preset_settings, rules
from tf_smoothclir.settings.training import METRICS, TrainingSettings
from tf_smoothclir.utils.errors import InputError

RISING = "be rising numbers from 1 on, such as 64,128,256"
PLUG_IN = "A plug-in (--plugin) may bring it."
SETTINGS = set(run.RunSettings().values())
BEST, FAST = ("average_pooling", "ordinal_softmax", 512), ("average_pooling", "sosl", 64)
REFUSED = [
    (TrainingSettings, "batch_size", 0, "be at least 1, but is 0."),
    (ModelSettings, "epsilon", -0.1, "be at least 0.0, but is -0.1."),
    (ModelSettings, "epsilon", math.nan, "be a finite number, but is nan."),
    (TrainingSettings, "learning_rate", math.inf, "be a finite number, but is inf."),
    (ModelSettings, "lower_grade_weight", 1.5, "be at most 1.0, but is 1.5."),
    # Numbers that TensorFlow does not take.
    (TrainingSettings, "seed", 2**31 - 1, "be at most 2147483646, but is 2147483647."),
    (data.DataSettings, "split_seed", 10**30, f"be at most 2147483646, but is {10**30}."),
    (ModelSettings, "dim", 16_385, "be at most 16384, but is 16385."),
    (ModelSettings, "matryoshka_dims", (64, 32), f"{RISING}, but is 64,32."),
    (ModelSettings, "loss", "hinge", f"be one of {', '.join(LOSSES)}, but is 'hinge'. {PLUG_IN}"),
]


def test_defaults_are_those_of_the_paper():
    settings = run.RunSettings()
    assert settings.text.vocabulary_size == 100_000
    assert settings.text.max_document_tokens == 200
    short = text.TextSettings(max_query_tokens=7)
    assert (short.max_tokens("query"), short.max_tokens("document")) == (7, 200)
    model, training = settings.model, settings.training
    assert (model.dim, model.epsilon, model.thresholds) == (64, 1.0, (0.2, 0.7))
    assert (model.tower, model.loss) == ("average_pooling", "sosl")
    assert (training.batch_size, training.epochs, LEARNING_RATE) == (128, 30, 0.01)
    assert (training.negatives, training.fresh_negatives) == (40, False)
    assert training.clip_norm == 5.0
    assert METRICS == ("P_mr@1", "P_mr@5", "P_r@5", "NDCG@5", "MAP", "MRR_mr", "MRR_r")


@cases("kind, name, value, message", *REFUSED)
def test_the_error_for_a_refused_value_names_flag_value_and_remedy(kind, name, value, message):
    with pytest.raises(ValueError, match=r"^--") as error:
        kind(**{name: value})
    assert str(error.value) == f"--{name} must {message}"


def test_rows_of_ngrams_follow_the_vocabulary_up_to_their_number():
    for of, rows in {0: 50, 2: 2 * 9, 6: 50}.items():
        assert text.TextSettings(ngram_buckets=50, ngram_rows_per_word=of).ngram_rows(9) == rows


def broken(settings, **beside):
    return [rule.names for rule in rules() if rule.breaks({**settings.values(), **beside})]


@cases("example", *OF_SETTINGS, ids=str)
def test_each_rule_fires_first_for_its_example_unless_a_setting_it_reads_is_varied(example):
    beside = {name: value for name, value in example.values.items() if name not in SETTINGS}
    of_settings = {name: value for name, value in example.values.items() if name in SETTINGS}
    rule = example.rule
    with pytest.raises(InputError) as error:
        changed(run.RunSettings(), of_settings, **beside)
    where, colon, what = str(error.value).partition(": ")
    shown = [flag.split("=")[0].removeprefix("--").removeprefix("no") for flag in where.split()]
    assert shown == list(rule.names)
    assert (colon, what) == (": ", f"{rule.reason}. {rule.remedy}.")
    free = changed(run.RunSettings(), of_settings, varied=rule.names, **beside)
    for name in rule.names:
        if all(name in names for names in broken(free, **beside)):
            changed(run.RunSettings(), of_settings, varied=[name], **beside)
        else:
            with pytest.raises(InputError):
                changed(run.RunSettings(), of_settings, varied=[name], **beside)


@cases("example", *OF_FLAGS, ids=str)
def test_a_rule_of_flags_is_about_what_is_given(example):
    rule, (first, other) = example.rule, example.rule.names
    assert rule.breaks({first: 1, other: None}) != rule.breaks({first: 1, other: 2})
    assert not rule.breaks({first: None, other: 2})
    assert not rule.breaks({first: 1})  # the command has no such flag


@cases("preset", *PRESETS)
def test_no_rule_fires_for_a_preset(preset):
    dense = changed(preset_settings(preset), {"retriever": "dense"}, tune=("dim",))
    changed(dense, {"ngram_buckets": 0}, num_shards=8)


@cases(
    "changes, tune, names",
    ({"retriever": "lexical"}, ("dim",), [("tune", "retriever")]),
    ({"retriever": "hybrid"}, ("dim",), []),
    ({"objective": "s2net"}, ("beta",), []),
    ({"objective": "s2net"}, ("gamma1",), [("tune", "objective")]),
    ({"objective": "adversarial", "opening_epochs": 2}, ("gamma1",), []),
)
def test_what_ranks_and_its_objective_decide_what_can_be_searched(changes, tune, names):
    assert broken(changed(run.RunSettings(), changes), tune=tune) == names


@cases(
    "given, tune, retriever, towers",
    ({}, "", "hybrid", BEST),
    ({"retriever": "dense"}, "", "dense", BEST),
    ({"loss": "sosl"}, "", "hybrid", ("average_pooling", "sosl", 512)),
    ({"tower": "lstm"}, "", "hybrid", ("lstm", "sosl", 64)),
    ({"batching": "pairs", "dim": 8}, "", "hybrid", ("average_pooling", "sosl", 8)),
    ({"objective": "adversarial"}, "", "hybrid", FAST),
    ({"distribution": "shards", "shards_dir": "s", "batching": "lists"}, "", "dense", FAST),
    ({}, "thresholds", "dense", FAST),
    ({}, "tower", "dense", FAST),
    ({}, "epsilon,loss", "dense", BEST),
    ({"retriever": "hybrid"}, "dim", "hybrid", BEST),
)
def test_without_a_preset_it_is_the_best_that_goes_with_the_rest(given, tune, retriever, towers):
    names = tuple(filter(None, tune.split(",")))
    beside = {"tune": names, "varied": names} if names else {}
    values = preset_settings("", given, **beside).values()
    assert {name: values[name] for name in given} == given
    assert values["retriever"] == retriever
    assert (values["tower"], values["loss"], values["dim"]) == towers


def test_what_goes_with_no_preset_is_an_error_about_what_is_given():
    with pytest.raises(InputError, match=r"^--token_weights=idf --tower=lstm: such a tower"):
        preset_settings("", {"tower": "lstm", "token_weights": "idf"})
    with pytest.raises(InputError, match=r"^--token_weights=learned --tower=lstm: such a tower"):
        preset_settings("best", {"tower": "lstm"})
