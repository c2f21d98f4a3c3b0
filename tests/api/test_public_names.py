"""Public names as editors see them; keywords: which there are, what a wrong one is answered."""

import ast
import inspect
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tf_smoothclir
from tf_smoothclir.api.settings import _ARGUMENTS, run_settings
from tf_smoothclir.api.training import train
from tf_smoothclir.settings.base import fields_with_flags
from tf_smoothclir.settings.presets import changed, preset_settings
from tf_smoothclir.settings.run import GROUPS, RunSettings
from tf_smoothclir.utils.errors import InputError

QUIET = "TF_CPP_MIN_LOG_LEVEL"
FIELDS = {field.name: field for kind in GROUPS.values() for field in fields_with_flags(kind)}


def settings_of(preset="", **given):
    return run_settings(preset, given)


def test_tensorflow_prints_nothing_of_its_own():
    code = "import tf_smoothclir as sc; sc.load; import tensorflow as tf; print(tf.zeros(1).shape)"
    environment = {key: value for key, value in os.environ.items() if key != QUIET}
    for said in ({}, {QUIET: "0"}):  # who asks for it gets it
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, env={**environment, **said})
        assert done.stdout == "(1,)\n"
        assert bool(done.stderr) == bool(said), done.stderr


def test_editors_see_every_public_name_where_it_is():
    tree = ast.parse(Path(tf_smoothclir.__file__).read_text(encoding="utf-8"))
    (typed,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
    )
    seen = {
        alias.asname: node.module.partition(".")[2]
        for node in typed.body
        if isinstance(node, ast.ImportFrom) and node.module.startswith("tf_smoothclir")
        for alias in node.names
    }
    assert seen == {**tf_smoothclir._PUBLIC, "metrics": "api", "plugins": ""}


def test_what_the_guide_says_loads_no_tensorflow():
    program = (
        "import sys, tf_smoothclir as sc, tf_smoothclir.encoder\n"
        "import tf_smoothclir.papers.liu2020.convert_polyglot\n"
        "sc.InputError, sc.__version__, sc.ServingClient('http://a:1')\n"
        "assert not {'tensorflow', 'keras'} & set(sys.modules)"
    )
    root = Path(tf_smoothclir.__file__).parents[1]
    subprocess.run([sys.executable, "-c", program], cwd=root, check=True)


def test_arguments_are_those_of_train_and_presets_those_of_the_command():
    parameters = inspect.signature(train).parameters
    assert {*parameters, "max_trials", "folds"} == {*_ARGUMENTS, "settings"}
    assert set(_ARGUMENTS) & set(FIELDS) == {"parallel"}  # sentences, or the path of the flag
    assert settings_of("fast") == RunSettings()
    assert settings_of() == preset_settings("best")
    assert settings_of("best", seed=5) == changed(preset_settings("best"), {"seed": 5})
    assert settings_of("paper", tower="lstm") == preset_settings("paper", {"tower": "lstm"})


def test_values_get_the_type_of_their_setting(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    given = {"epochs": np.int64(3), "learning_rate": 1, "fresh_negatives": np.True_}
    given |= {"thresholds": [np.float32(0.25), 0.5], "cache_dir": Path("cache")}
    found = settings_of(**given).values()
    expected = [3, 1.0, True, (0.25, 0.5), str(tmp_path / "cache")]
    assert [(found[name], type(found[name])) for name in given] == [(v, type(v)) for v in expected]


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
        ({"thresholds": "0.2,0.7"}, "Give a list of numbers"),
        ({"tower": 3}, "Give a string, such as tower='average_pooling'"),
        ({"loss": "softmax", "batching": "pairs"}, "Add --batching=lists"),
        ({"init_from": "nowhere"}, "there is no such directory"),
    ],
)
def test_a_wrong_keyword_says_what_to_write(given, message):
    with pytest.raises(InputError, match=message):
        settings_of(**given)
