"""What goes together with what: each rule of the table, in the library."""

import pytest

from tests.settings.broken_combinations import OF_FLAGS, OF_SETTINGS
from tf_smoothclir.settings.combinations import broken_rules, check_combinations
from tf_smoothclir.settings.presets import PRESETS, changed, preset_settings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.utils.errors import InputError

SETTINGS = set(RunSettings().values())


@pytest.mark.parametrize("example", OF_SETTINGS, ids=str)
def test_each_rule_fires_first_for_its_example_unless_a_setting_it_reads_is_varied(example):
    flags = {name: value for name, value in example.values.items() if name not in SETTINGS}
    of_settings = {name: value for name, value in example.values.items() if name in SETTINGS}
    settings, rule = changed(RunSettings(), of_settings), example.rule
    with pytest.raises(InputError) as error:
        check_combinations(settings, **flags)
    where, colon, what = str(error.value).partition(": ")
    shown = [flag.split("=")[0].removeprefix("--").removeprefix("no") for flag in where.split()]
    assert shown == list(rule.names)
    assert (colon, what) == (": ", f"{rule.reason}. {rule.remedy}.")
    for name in rule.names:
        if any(name not in rule.names for rule, _ in broken_rules(settings, **flags)):
            with pytest.raises(InputError):
                check_combinations(settings, varied=[name], **flags)
        else:
            check_combinations(settings, varied=[name], **flags)


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
    assert broken_rules(settings) == []
    dense = changed(settings, {"retriever": "dense"})
    assert broken_rules(dense, tune=("dim",)) == []
    assert broken_rules(changed(dense, {"ngram_buckets": 0}), num_shards=8) == []


@pytest.mark.parametrize(
    ("changes", "tune", "names"),
    [
        ({"retriever": "dense"}, ("psq_beta",), [("tune", "retriever")]),
        ({"retriever": "lexical"}, ("psq_beta", "psq_alpha"), []),
        ({"retriever": "lexical"}, ("psq_beta", "dim"), [("tune", "retriever")]),
        ({"retriever": "hybrid"}, ("psq_beta", "dim"), []),
        ({"objective": "s2net"}, ("beta",), []),
        ({"objective": "s2net"}, ("gamma1",), [("tune", "objective")]),
        ({"objective": "adversarial", "opening_epochs": 2}, ("gamma1",), []),
    ],
)
def test_what_ranks_and_its_objective_decide_what_can_be_searched(changes, tune, names):
    settings = changed(RunSettings(), changes)
    assert [rule.names for rule, _ in broken_rules(settings, tune=tune)] == names
