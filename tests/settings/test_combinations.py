"""What goes together with what: each rule of the table, in the library."""

import pytest

from tests.settings.broken_combinations import OF_FLAGS, OF_SETTINGS
from tf_smoothclir.settings.presets import PRESETS, changed, preset_settings, rules
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.utils.errors import InputError

SETTINGS = set(RunSettings().values())


def broken(settings, **beside):
    values = {**settings.values(), **beside}
    return [rule.names for rule in rules() if rule.breaks(values)]


@pytest.mark.parametrize("example", OF_SETTINGS, ids=str)
def test_each_rule_fires_first_for_its_example_unless_a_setting_it_reads_is_varied(example):
    beside = {name: value for name, value in example.values.items() if name not in SETTINGS}
    of_settings = {name: value for name, value in example.values.items() if name in SETTINGS}
    rule = example.rule
    with pytest.raises(InputError) as error:
        changed(RunSettings(), of_settings, **beside)
    where, colon, what = str(error.value).partition(": ")
    shown = [flag.split("=")[0].removeprefix("--").removeprefix("no") for flag in where.split()]
    assert shown == list(rule.names)
    assert (colon, what) == (": ", f"{rule.reason}. {rule.remedy}.")
    free = changed(RunSettings(), of_settings, varied=rule.names, **beside)
    for name in rule.names:
        if all(name in names for names in broken(free, **beside)):
            changed(RunSettings(), of_settings, varied=[name], **beside)
        else:
            with pytest.raises(InputError):
                changed(RunSettings(), of_settings, varied=[name], **beside)


@pytest.mark.parametrize(
    "rule", [example.rule for example in OF_FLAGS], ids=lambda rule: "-".join(rule.names)
)
def test_a_rule_of_flags_is_about_what_is_given(rule):
    first, other = rule.names
    assert rule.breaks({first: 1, other: None}) != rule.breaks({first: 1, other: 2})
    assert not rule.breaks({first: None, other: 2})
    assert not rule.breaks({first: 1})  # the command has no such flag


@pytest.mark.parametrize("preset", PRESETS)
def test_no_rule_fires_for_a_preset(preset):
    settings = preset_settings(preset)
    dense = changed(settings, {"retriever": "dense"}, tune=("dim",))
    changed(dense, {"ngram_buckets": 0}, num_shards=8)


@pytest.mark.parametrize(
    ("changes", "tune", "names"),
    [
        ({"retriever": "lexical"}, ("dim",), [("tune", "retriever")]),
        ({"retriever": "hybrid"}, ("dim",), []),
        ({"objective": "s2net"}, ("beta",), []),
        ({"objective": "s2net"}, ("gamma1",), [("tune", "objective")]),
        ({"objective": "adversarial", "opening_epochs": 2}, ("gamma1",), []),
    ],
)
def test_what_ranks_and_its_objective_decide_what_can_be_searched(changes, tune, names):
    assert broken(changed(RunSettings(), changes), tune=tune) == names


BEST, FAST = ("average_pooling", "ordinal_softmax", 512), ("average_pooling", "sosl", 64)


@pytest.mark.parametrize(
    ("given", "tune", "retriever", "towers"),
    [
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
    ],
)
def test_without_a_preset_it_is_the_best_one_that_goes_with_what_is_given(
    given, tune, retriever, towers
):
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
