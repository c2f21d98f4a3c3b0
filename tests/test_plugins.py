"""The plug-in door: a module outside the package brings a loss, a tower, an objective, a network.

Two tiny trainings serve all tests: one by the command, one from Python.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

import tf_smoothclir as sc
from tests.command_line.forked import ForkedCommands
from tf_smoothclir import plugins
from tf_smoothclir.settings.base import Settings, setting
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.utils.errors import InputError

NAME = "plugin_of_a_test"
SOURCE = """
import dataclasses

import tensorflow as tf
from tensorflow import keras

from tf_smoothclir import plugins
from tf_smoothclir.interaction.learning import LearningSettings
from tf_smoothclir.interaction.networks.word_tables import WordVectorNetwork
from tf_smoothclir.losses.mse import SegmentMeanSquaredError
from tf_smoothclir.settings.base import Settings, setting
from tf_smoothclir.settings.rule import Rule
from tf_smoothclir.towers.word_table import WordTableTower
from tf_smoothclir.training.tasks import ranking_task


@dataclasses.dataclass(frozen=True)
class TiltSettings(Settings):
    tilt: float = setting(0.5, "What a loss of the test multiplies by.", minimum=0.0)


@keras.utils.register_keras_serializable(package="test")
class TiltedLoss(SegmentMeanSquaredError):
    settings = ("thresholds", "tilt")

    def __init__(self, thresholds=(0.2, 0.7), tilt=0.5, **kwargs):
        super().__init__(thresholds, **kwargs)
        self.tilt = tilt

    def call(self, y_true, y_pred):
        return self.tilt * super().call(y_true, y_pred)

    def get_config(self):
        return {**super().get_config(), "tilt": self.tilt}


@keras.utils.register_keras_serializable(package="test")
class SumTower(WordTableTower):
    trains_words_alone = True

    def call(self, inputs, training=None):
        return self.sums_of_rows("embeddings", inputs, training)


def task(inputs):
    task = ranking_task(inputs)
    task.remedy = "Ask the test"
    return task


class SumOfMaxima(WordVectorNetwork):
    learning = LearningSettings(epochs=1)

    def __init__(self, tables, **kwargs):
        super().__init__(tables, **kwargs)
        self.weight = self._weight("weight", 1, 1)

    def features(self, query_ids, document_ids):
        best = tf.reduce_max(self.similarities(query_ids, document_ids), axis=2)
        return tf.reduce_sum(best, axis=1)

    def score(self, features, training=False):
        return features * (1.0 + self.weight[0, 0])


ONLY_TILTED = Rule(
    ("tilt", "loss"), lambda tilt, loss: tilt != 0.5 and loss != "tilted", "it has no tilt",
    "Add --loss=tilted",
)
plugins.register(
    "loss", "tilted", TiltedLoss, help="MSE times --tilt.", settings=TiltSettings,
    rules=[ONLY_TILTED],
)
plugins.register("tower", "sum", SumTower, help="the sum of the word vectors.")
plugins.register("objective", "as_ranking", task, help="the same as ranking.")
plugins.register("reranker", "maxima", SumOfMaxima, help="the sum of the best cosines.")
"""
CHOICES = {"loss": "tilted", "tower": "sum", "objective": "as_ranking", "reranker": "maxima"}
CHOICES |= {"tilt": 0.25, "rerank_depth": 5}
TINY = {"dim": 4, "negatives": 3, "batch_size": 8, "epochs": 1, "learning_rate": 0.1}
PAGE = Path(__file__).resolve().parent.parent / "docs" / "plugins.md"
MODULES = {"train": "trainers.train", "evaluate": "trainers.evaluate", "export": "export.export"}
REMEDY = f"plug-in {NAME}: the run was made with it"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of the plug-in module, which new processes import from."""
    folder = tmp_path_factory.mktemp("plugin")
    (folder / f"{NAME}.py").write_text(SOURCE)
    (folder / "registers_nothing.py").write_text("")
    (folder / "fails_late.py").write_text(
        "from tf_smoothclir.plugins import register\n"
        "register('loss', 'late', object, help='.')\nraise RuntimeError('too late')\n"
    )
    return folder


@pytest.fixture(scope="module")
def commands(folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder))
        with ForkedCommands("tensorflow", "tf_smoothclir.command_line.command") as forked:
            yield forked


@pytest.fixture(scope="module")
def loaded(folder):
    """The plug-in is loaded in this process, as long as the tests of this module run."""
    before = dict(plugins._plugins)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield
    plugins._plugins.clear()
    plugins._plugins.update(before)
    sys.modules.pop(NAME, None)


@pytest.fixture
def registered(loaded):
    plugins.load([NAME])


def train(commands, path, *flags):
    return commands.run("trainers.train", f"--output_dir={path}", *flags)


@pytest.fixture(scope="module")
def run(commands, tiny_dir, tmp_path_factory):
    """A run with four plug-ins, trained by the command."""
    path = tmp_path_factory.mktemp("run")
    values = {**TINY, **CHOICES, "data_dir": tiny_dir, "cache_dir": path / "cache", "plugin": NAME}
    path = path / "run"
    done = train(commands, path, *(f"--{name}={value}" for name, value in values.items()))
    assert done.returncode == 0, done.stderr
    return path


def metrics_of(path):
    return json.loads((path / "metrics.json").read_text())


def one_line(text):
    return " ".join(text.split())


def test_flags_and_help_appear_with_the_plug_in_alone(commands):
    without = one_line(commands.run("trainers.train", "--help").stdout)
    assert "tilt" not in without
    found = one_line(commands.run("trainers.train", f"--plugin={NAME}", "--help").stdout)
    assert "tilt: --tilt: What a loss of the test multiplies by." in found
    for text in ("|tilted>", "tilted: MSE times --tilt.", "|sum>", "|as_ranking>", "|maxima>"):
        assert text in found, text


def test_a_run_names_its_module_and_one_without_plug_ins_none(registered, run):
    settings, without = json.loads((run / "config.json").read_text())["settings"], RunSettings()
    assert settings["plugins"] == [NAME]
    assert settings["tilt"] == {"tilt": 0.25}
    assert set(settings) - {"tilt"} == set(without.to_dict())
    lines = (run / "flags.txt").read_text().splitlines()
    assert lines[0] == f"--plugin={NAME}"
    assert "--tilt=0.25" in lines
    assert metrics_of(run)["reranker"]["network"] == "maxima"
    assert without.to_dict()["plugins"] == []
    assert not any("plug" in line or "tilt" in line for line in without.flag_lines())


def test_an_unfinished_run_goes_on_with_the_plug_in_alone(commands, run, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    (copy / "metrics.json").unlink()
    refused = train(commands, copy)
    assert refused.returncode == 1
    assert REMEDY in refused.stderr
    assert f"add --plugin={NAME}" in refused.stderr
    done = train(commands, copy, f"--flagfile={run / 'flags.txt'}")  # names the plug-in
    assert done.returncode == 0, done.stderr
    assert metrics_of(copy)["test"] == metrics_of(run)["test"]


def test_every_command_that_reads_the_run_needs_the_plug_in(commands, run, tmp_path):
    for command in (
        ("trainers.evaluate", f"--run_dir={run}"),
        ("export.export", f"--run_dir={run}", f"--export_dir={tmp_path}/export"),
    ):
        refused = commands.run(*command)
        assert refused.returncode == 1
        assert REMEDY in refused.stderr
        assert "Traceback" not in refused.stderr
        done = commands.run(*command, f"--plugin={NAME}")
        assert done.returncode == 0, done.stderr
    export = f"--export_dir={tmp_path}/export"
    for command in (("export.build_index", export), ("export.search", export, "--query=word1")):
        done = commands.run(*command, f"--plugin={NAME}")
        assert done.returncode == 0, done.stderr
    assert "Titre" in done.stdout


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([f"--plugin={NAME}", "--tilt=2"], "--tilt=2.0 --loss=sosl: it has no tilt. Add --loss="),
        (["--plugin=no.such_module"], "error: --plugin=no.such_module: it cannot be imported"),
        (["--loss=tilted"], "or of a plug-in (--plugin)"),
    ],
)
def test_a_mistake_is_a_message(commands, tmp_path, values, message):
    done = train(commands, tmp_path / "run", *values)
    assert done.returncode != 0
    assert message in one_line(done.stderr)
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_python_trains_and_searches_alike(registered, run, tiny_dir, tmp_path):
    model = sc.train(tiny_dir, output_dir=tmp_path / "run", **TINY, **CHOICES)
    assert metrics_of(tmp_path / "run")["test"] == metrics_of(run)["test"]
    found = model.search(["word1 word2"], k=3)
    again = sc.load(run).search(["word1 word2"], k=3)
    assert [hit.id for hit in found[0]] == [hit.id for hit in again[0]]


def test_a_run_is_not_opened_by_what_a_file_says(run, built_in_alone):
    with pytest.raises(InputError, match=rf"{REMEDY}.*tf_smoothclir\.plugins\.load\(\['{NAME}'\]"):
        sc.load(run).search(["word1"], k=1)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("registers_nothing", "--plugin=registers_nothing: it registers nothing. Call"),
        ("fails_late", r"cannot be imported \(RuntimeError: too late\)\. Name a module"),
    ],
)
def test_a_module_that_fails_leaves_nothing_behind(loaded, name, message):
    with pytest.raises(InputError, match=message):
        plugins.load([name])
    assert "late" not in plugins.LOSSES


KINDS = "loss, tower, objective, reranker, distribution"


@pytest.mark.parametrize(
    ("kind", "name", "group", "settings", "message"),
    [
        ("lost", "mine", "", {}, f"kind must be one of {KINDS}, but is 'lost'"),
        ("loss", "sosl", "", {}, "loss 'sosl' is there already, from tf_smoothclir: choose"),
        ("tower", "sum", "", {}, f"tower 'sum' is there already, from {NAME}"),
        ("loss", "mine", "Mine", {"epsilon": 1.0}, "ModelSettings has a setting 'epsilon' already"),
        ("loss", "mine", "Mine", {"tilt": 1.0}, "TiltSettings has a setting 'tilt' already"),
        ("loss", "mine", "Tilt", {}, "there are settings 'tilt' already"),
    ],
)
def test_names_that_clash_are_an_error(registered, kind, name, group, settings, message):
    own = None
    if group:
        fields = [(field, type(value), setting(value, ".")) for field, value in settings.items()]
        own = dataclasses.make_dataclass(f"{group}Settings", fields, bases=(Settings,), frozen=True)
    with pytest.raises(ValueError, match=message):
        plugins.register(kind, name, object, help=".", settings=own)
    assert "mine" not in plugins.LOSSES


@pytest.mark.parametrize("registry", [plugins.LOSSES, plugins.TOWERS])
def test_facts_are_what_the_classes_say(registry, built_in_alone):
    """Flags are checked by the facts, before TensorFlow is there."""
    stated = {fact for name in registry for fact in registry.plugin(name).facts}
    for name in registry:
        plugin, implementation = registry.plugin(name), registry[name]
        for fact in stated:
            expected = getattr(implementation, fact)
            assert plugin.fact(fact, type(expected)()) == expected or (
                fact not in plugin.facts and fact == "accepted_token_weights"
            ), (name, fact)


def test_every_choice_can_be_imported_and_has_a_sentence(built_in_alone):
    for registry in (plugins.LOSSES, plugins.TOWERS, plugins.OBJECTIVES, plugins.RERANKERS):
        for name in registry:
            assert registry[name] is not None or name == "none"
            assert registry.plugin(name).help.endswith(".")


@pytest.mark.slow
def test_the_file_of_the_page_works_with_its_commands(commands, tmp_path):
    page = PAGE.read_text(encoding="utf-8")
    name, text = re.search(r'```python title="(\w+)\.py"\n(.*?)```', page, re.DOTALL).groups()
    (tmp_path / f"{name}.py").write_text(text)
    for command, arguments in re.findall(r"^smoothclir-(\w+) (.*)$", page, re.MULTILINE):
        more = [f"--cache_dir={tmp_path / 'cache'}"] if command != "export" else []
        done = commands.run(MODULES[command], *shlex.split(arguments), *more, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    run = json.loads((tmp_path / "runs/focus/config.json").read_text())
    assert run["settings"]["plugins"] == [name]
    assert run["settings"]["focus"] == {"focus": 2.0}
    assert (tmp_path / "runs/focus/query_tower/1").is_dir()
