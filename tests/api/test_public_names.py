"""Public names as editors see them, wrong keywords; Keras metrics of lists, by hand."""

import ast
import inspect
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import tf_smoothclir
from tests.cases import cases
from tf_smoothclir.api import metrics, training
from tf_smoothclir.api.settings import _ARGUMENTS, run_settings
from tf_smoothclir.settings.base import fields_with_flags
from tf_smoothclir.settings.presets import changed, preset_settings
from tf_smoothclir.settings.run import GROUPS, RunSettings
from tf_smoothclir.utils.errors import InputError

QUIET = "TF_CPP_MIN_LOG_LEVEL"
FIELDS = {field.name: field for kind in GROUPS.values() for field in fields_with_flags(kind)}
LOG3 = math.log2(3)
# Grades and scores of three lists, the last without a relevant document; -1 is padding.
GRADES = np.array([[2, 0, 1, 0], [1, 0, -1, -1], [0, 0, 0, -1]])
SCORES = np.array([[0.5, 0.9, 0.7, 0.1], [0.3, 0.2, 9.0, 9.0], [1.0, 2.0, 3.0, 0.0]])


def settings_of(preset="", **given):
    return run_settings(preset, given)


def test_tensorflow_prints_nothing_of_its_own():
    code = "import tf_smoothclir as s; s.metrics; import tensorflow as tf; print(tf.zeros(1).shape)"
    environment = {key: value for key, value in os.environ.items() if key != QUIET}
    for said in ({}, {QUIET: "0"}):  # who asks for it gets it
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, env={**environment, **said})
        assert done.stdout == "(1,)\n"
        assert bool(done.stderr) == bool(said), done.stderr


def test_editors_see_every_public_name_where_it_is():
    tree = ast.parse(Path(tf_smoothclir.__file__).read_text(encoding="utf-8"))
    conditions = (node for node in tree.body if isinstance(node, ast.If))
    (typed,) = (node for node in conditions if ast.unparse(node.test) == "TYPE_CHECKING")
    assert {
        alias.asname: node.module.partition(".")[2]
        for node in typed.body
        if isinstance(node, ast.ImportFrom) and node.module.startswith("tf_smoothclir")
        for alias in node.names
    } == {**tf_smoothclir._PUBLIC, "metrics": "api", "plugins": ""}


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
    parameters = inspect.signature(training.train).parameters
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


@cases(
    "given, message",
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
    ({"thresholds": iter([0.2, 0.7])}, "it is a list_iterator. Give a list of numbers"),
    ({"tower": 3}, "Give a string, such as tower='average_pooling'"),
    ({"loss": "softmax", "batching": "pairs"}, "Add --batching=lists"),
    ({"init_from": "nowhere"}, "there is no such directory"),
)
def test_a_wrong_keyword_says_what_to_write(given, message):
    with pytest.raises(InputError, match=message):
        settings_of(**given)


@cases(
    "metric, expected",
    # The first list is ranked 0, 1, 2, 0; the second 1, 0.
    (metrics.NDCG(), ((1 / LOG3 + 2 / 2) / (2 + 1 / LOG3) + 1) / 2),
    (metrics.NDCG(k=2), ((1 / LOG3) / (2 + 1 / LOG3) + 1) / 2),
    (metrics.MRR(), (1 / 2 + 1) / 2),
    (metrics.MRR(k=1), (0 + 1) / 2),
    (metrics.Precision(k=2), (1 / 2 + 1 / 2) / 2),
)
def test_keras_metrics_by_hand(metric, expected):
    metric.update_state(GRADES[:1], SCORES[:1])
    metric.update_state(GRADES[1:], SCORES[1:])
    assert float(metric.result()) == pytest.approx(expected)
    copy = type(metric).from_config(metric.get_config())
    second = {"precision": 1 / 2}.get(metric.name.split("_")[0], 1.0)
    masked = tf.constant(SCORES, tf.float16)
    masked._keras_mask = GRADES >= 0  # what it leaves out has a grade here
    as_weights = (GRADES >= 0) * np.array([[0], [2], [1]])  # as Keras 2 makes them of a mask
    for scores, weights in ((SCORES, [0, 2, 1]), (SCORES, as_weights), (masked, [[0], [2], [1]])):
        copy.reset_state()
        copy.update_state(GRADES if scores is SCORES else abs(GRADES), scores, weights)
        assert float(copy.result()) == pytest.approx(second)
    copy.update_state(abs(GRADES[:2]), SCORES[:2], as_weights[:2])  # by the weights alone
    assert float(copy.result()) == pytest.approx(second)
    metric.reset_state()
    assert float(metric.result()) == 0


@cases(
    "metric, expected",
    (metrics.MRR(), 1 / 2),  # a list without a grade of 1 or more is left out
    (metrics.Precision(1), 0),
    (metrics.NDCG(), (0.5 + 1.5 / LOG3) / (1.5 + 0.5 / LOG3)),
)
def test_a_grade_below_1_is_not_relevant_and_a_small_gain(metric, expected):
    metric.update_state([[0.5, 1.5, 0], [0.5, 0, 0]], [[0.9, 0.5, 0.1], [0.9, 0.5, 0.1]])
    assert float(metric.result()) == pytest.approx(expected)


def test_ties_padding_nan_and_single_scores():
    metric = metrics.MRR()
    metric.update_state([[2, 0, 1, 0]], [[0.5, 0.5, 0.5, 0.5]])
    assert float(metric.result()) == pytest.approx(1 / 3)  # the relevant ones are not favoured
    metric.reset_state()
    metric.update_state([[1, -1]], [[float("-inf"), 5.0]])
    metric.update_state([[1, 0], [1, -1]], [[0.5, 0.1], [0.5, math.nan]])  # NaN at padding
    assert float(metric.result()) == 1
    metric.update_state([[1, 0]], [[0.5, math.nan]])
    assert math.isnan(float(metric.result()))
    metric.reset_state()
    near = np.array([[0.5, 0.5 + 1e-12]])  # one number in float32, where ties count against it
    metric.update_state([[0, 1]], near)
    for shape in ((0, 3), (2, 0)):
        metric.update_state(np.zeros(shape), np.zeros(shape))
    assert float(metric.result()) == 1
    for grades, scores, weights, message in (
        ([1, 0], [0.5, 0.1], None, "needs whole lists"),
        ([[1, math.nan]], [[0.5, 0.1]], None, "a label is NaN or infinite"),
        ([[1, 0]], [[0.5, 0.1]], [1.0, 2.0], "sample_weight has shape"),
        ([[1, 0]], [[0.5, 0.1]], [[1.0, 2.0]], "documents of one list have different weights"),
    ):
        with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=message):
            metric.update_state(grades, np.array(scores), weights)
