"""What goes together with what: each rule of the table, in the library."""

from __future__ import annotations

import pytest

from tests.settings.broken_combinations import OF_FLAGS, OF_SETTINGS, RULES
from tf_smoothclir.settings.combinations import broken_rules, check_combinations
from tf_smoothclir.settings.presets import PRESETS, changed, preset_settings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.utils.errors import InputError

SETTINGS = set(RunSettings().values())
COMMANDS = {
    "num_shards": 8,
    "tune": ("dim",),
}


def settings_and_flags(values):
    flags = {name: value for name, value in values.items() if name not in SETTINGS}
    of_settings = {name: value for name, value in values.items() if name in SETTINGS}
    return changed(RunSettings(), of_settings), flags


@pytest.mark.parametrize("example", OF_SETTINGS, ids=str)
def test_each_rule_fires_first_for_its_example_and_names_its_flags(example):
    settings, flags = settings_and_flags(example.values)
    rule = example.rule
    with pytest.raises(InputError) as error:
        check_combinations(settings, **flags)
    where, colon, what = str(error.value).partition(": ")
    shown = [flag.split("=")[0].removeprefix("--").removeprefix("no") for flag in where.split()]
    assert shown == list(rule.names)
    assert (colon, what) == (": ", f"{rule.reason}. {rule.remedy}.")


@pytest.mark.parametrize("example", OF_SETTINGS, ids=str)
def test_no_rule_fires_if_a_setting_it_reads_is_varied(example):
    settings, flags = settings_and_flags(example.values)
    for name in example.rule.names:
        left = [rule for rule, _ in broken_rules(settings, **flags) if name not in rule.names]
        if left:
            with pytest.raises(InputError):
                check_combinations(settings, varied=[name], **flags)
        else:
            check_combinations(settings, varied=[name], **flags)


@pytest.mark.parametrize(
    ("objective", "name", "fires"),
    [
        ("ranking", "beta", True),
        ("xcnn", "beta", True),
        ("s2net", "beta", False),
        ("s2net", "gamma1", True),
        ("adversarial", "gamma1", False),
    ],
)
def test_what_an_objective_does_not_have_is_not_searched(objective, name, fires):
    settings = changed(RunSettings(), {"objective": objective, "opening_epochs": 2})
    broken = [rule.names for rule, _ in broken_rules(settings, tune=(name,))]
    assert (("tune", "objective") in broken) == fires


@pytest.mark.parametrize("preset", PRESETS)
def test_no_rule_fires_for_a_preset(preset):
    settings = preset_settings(preset)
    assert broken_rules(settings) == []
    dense = changed(settings, {"retriever": "dense"})
    assert broken_rules(dense, tune=("dim",)) == []
    assert broken_rules(changed(dense, {"ngram_buckets": 0}), **COMMANDS) == []


@pytest.mark.parametrize(
    ("retriever", "tune", "names"),
    [
        ("dense", ("dim", "epsilon"), []),
        ("dense", ("psq_beta",), [("tune", "retriever")]),
        ("lexical", ("psq_beta", "psq_alpha"), []),
        ("lexical", ("psq_beta", "dim"), [("tune", "retriever")]),
        ("hybrid", ("psq_beta", "dim"), []),
    ],
)
def test_what_ranks_decides_what_can_be_searched(retriever, tune, names):
    settings = changed(RunSettings(), {"retriever": retriever})
    assert [rule.names for rule, _ in broken_rules(settings, tune=tune)] == names


def test_a_rule_about_missing_settings_is_skipped():
    check_combinations(TextSettings(ngram_buckets=50))
    with pytest.raises(InputError, match=r"^--num_shards=2 --ngram_buckets=50: shards hold the"):
        check_combinations(TextSettings(ngram_buckets=50), num_shards=2)


@pytest.mark.parametrize("example", OF_SETTINGS + OF_FLAGS, ids=str)
def test_reason_and_remedy_form_one_message(example):
    rule = example.rule
    assert len(rule.names) > 1
    assert not rule.reason.endswith(".")
    assert not rule.remedy.endswith(".")
    assert rule.remedy[0].isupper()
    assert not rule.reason[0].isupper()


@pytest.mark.parametrize("table", [OF_SETTINGS, OF_FLAGS])
def test_no_two_rules_read_the_same_settings(table):
    assert len({example.rule.names for example in table}) == len(table)


def test_every_name_is_a_setting_or_the_flag_of_a_command():
    names = {name for rule in RULES for name in rule.names}
    assert names - SETTINGS == set(COMMANDS)
