"""Keywords of `train`: the names of the flags, their types, and what a wrong one is answered."""

import inspect
import os
import typing
from pathlib import Path

import numpy as np
import pytest

from tf_smoothclir.api import keywords
from tf_smoothclir.api.settings import run_settings
from tf_smoothclir.api.training import _ARGUMENTS, train
from tf_smoothclir.settings.base import fields_with_flags
from tf_smoothclir.settings.presets import changed, preset_settings
from tf_smoothclir.settings.run import GROUPS, RunSettings
from tf_smoothclir.utils.errors import InputError

FIELDS = {field.name: field for kind in GROUPS.values() for field in fields_with_flags(kind)}


def settings_of(preset="", **given):
    return run_settings(preset, given, _ARGUMENTS)


def kind_of(field):
    default = field.default
    if isinstance(default, tuple):
        return f"Sequence[{type(default[0]).__name__ if default else 'int'}]"
    if isinstance(default, str) and field.metadata["is_path"]:
        return "PathText"
    return type(default).__name__


def test_the_typed_keywords_are_the_settings():
    declared = keywords.SettingKeywords.__annotations__
    names = {name: getattr(kind, "__forward_arg__", kind) for name, kind in declared.items()}
    expected = {name: kind_of(field) for name, field in FIELDS.items()}
    assert names == {**expected, "loss": "Any"}  # a name or an object
    assert typing.get_type_hints(keywords.SettingKeywords, vars(keywords))


def test_arguments_are_those_of_train_and_presets_those_of_the_command():
    parameters = inspect.signature(train).parameters
    assert list(parameters) == [*_ARGUMENTS, "settings"]
    assert not set(_ARGUMENTS) & set(FIELDS)
    assert settings_of() == RunSettings()
    assert settings_of("best", seed=5) == changed(preset_settings("best"), {"seed": 5})
    assert settings_of("paper", tower="lstm") == preset_settings("paper", "lstm")


def test_values_get_the_type_of_their_setting(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    found = settings_of(
        epochs=np.int64(3),
        learning_rate=1,
        fresh_negatives=np.True_,
        thresholds=[np.float32(0.25), 0.5],
        cache_dir=Path("cache"),
    )
    assert (found.training.epochs, type(found.training.epochs)) == (3, int)
    assert (found.training.learning_rate, type(found.training.learning_rate)) == (1.0, float)
    assert found.training.fresh_negatives is True
    assert found.model.thresholds == (0.25, 0.5)
    assert found.data.cache_dir == os.path.join(os.getcwd(), "cache")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epoch": 3}, "epoch: there is no such setting. Did you mean epochs"),
        ({"outputdir": "x"}, "Did you mean output_dir"),
        ({"zzz": 1}, "zzz: there is no such setting. Settings have the names of the flags"),
        ({"preset": "bset"}, "preset='bset': there is no such preset. Did you mean best"),
        ({"epochs": "3"}, "epochs='3': it is a str. Give a whole number, such as epochs=30"),
        ({"epochs": 2.5}, "Give a whole number"),
        ({"epochs": True}, "it is a bool"),
        ({"epsilon": "one"}, "Give a number, such as epsilon=1.0"),
        ({"fresh_negatives": 1}, "Give True or False"),
        ({"thresholds": 0.5}, "Give a list of numbers"),
        ({"thresholds": "0.2,0.7"}, "Give a list of numbers"),
        ({"tower": 3}, "Give a string, such as tower='average_pooling'"),
        ({"tower": "gru"}, "must be one of average_pooling, cnn, lstm"),
        ({"epochs": 0}, "must be at least 1"),
        ({"loss": "softmax"}, "Add --batching=lists"),
        ({"init_from": "nowhere"}, "there is no such directory"),
    ],
)
def test_a_wrong_keyword_says_what_to_write(given, message):
    with pytest.raises(InputError, match=message):
        settings_of(**given)
