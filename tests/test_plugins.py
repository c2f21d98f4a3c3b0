"""The plug-in door: the module of docs/plugins.md, outside the package, brings a loss.

The papers' plug-ins bring towers, objectives and re-rankers, and have tests of their own. Two small
trainings serve all tests: one by the command of the page, one from Python.
"""

import dataclasses
import functools
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tensorflow import keras

import tf_smoothclir as sc
from tests.cases import cases
from tests.command_line.test_command import one_line
from tf_smoothclir import InputError, Settings, plugins, setting
from tf_smoothclir.interaction.networks.base import WordVectorNetwork
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.towers.word_table import WordTableTower

PAGE = Path(__file__).resolve().parent.parent.joinpath("docs", "plugins.md").read_text("utf-8")
NAME, SOURCE = re.search(r'```python title="(\w+)\.py"\n(.*?)```', PAGE, re.DOTALL).groups()
FLAGS = dict(re.findall(rf"^smoothclir-(\w+) (.*--plugin={NAME}.*)$", PAGE, re.MULTILINE))
SMALL = {"folds": 0, "max_queries": 100, "dim": 4, "negatives": 3, "learning_rate": 0.1}
own, NETWORK = functools.partial(type, "Own"), (WordVectorNetwork,)
REMEDY = f"plug-in {NAME}: the run was made with it"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plugin")
    (folder / f"{NAME}.py").write_text(SOURCE)
    (folder / "registers_nothing.py").write_text("")
    (folder / "fails_late.py").write_text(
        "from tf_smoothclir.plugins import register\n"
        "register('loss', 'late', 'a:Late', help='.')\nraise RuntimeError('too late')\n"
    )
    return folder


@pytest.fixture(scope="module")
def command(commands, folder):
    """`command(module, *flags)` runs a command in the folder."""
    return functools.partial(commands.run, cwd=folder)


@pytest.fixture(scope="module")
def loaded(folder):
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


@pytest.fixture(scope="module")
def run(command, folder):
    more = [f"--{name}={value}" for name, value in {**SMALL, "cache_dir": "cache"}.items()]
    command("trainers.train", *shlex.split(FLAGS["train"]), *more, check=True)
    return folder / "runs" / "focus"


def metrics_of(path):
    return json.loads((path / "metrics.json").read_text())


def test_flags_and_help_appear_with_the_plug_in_alone(command):
    assert "focus" not in command("trainers.train", "--help").stdout
    found = one_line(command("trainers.train", f"--plugin={NAME}", "--help").stdout)
    assert "--focus: Only for --loss=focus: power of the distance." in found
    assert "|focus>" in found
    assert "focus: distance to the segment, to a power." in found
    searched = command("trainers.tune", "--plugin=tf_smoothclir.papers.li2018", "--help").stdout
    assert "gamma1 (0.01 to 100.0)" in one_line(searched)


def test_a_run_names_its_module_and_one_without_plug_ins_none(registered, run):
    settings, without = json.loads((run / "config.json").read_text())["settings"], RunSettings()
    assert (settings["plugins"], settings["focus"]) == ([NAME], {"focus": 2.0})
    assert set(settings) - {"focus"} == set(without.to_dict())
    lines = (run / "flags.txt").read_text().splitlines()
    assert lines[0] == f"--plugin={NAME}"
    assert "--focus=2.0" in lines
    assert without.to_dict()["plugins"] == []
    assert not any("plug" in line or "focus" in line for line in without.flag_lines())


def test_an_unfinished_run_goes_on_with_the_plug_in_alone(command, run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "run")
    (copy / "metrics.json").unlink()
    refused = command("trainers.train", f"--output_dir={copy}")
    assert refused.returncode == 1
    assert REMEDY in refused.stderr
    assert f"add --plugin={NAME}" in refused.stderr
    flagfile = f"--flagfile={run / 'flags.txt'}"  # names the plug-in
    command("trainers.train", f"--output_dir={copy}", flagfile, "--folds=0", check=True)
    assert metrics_of(copy)["test"] == metrics_of(run)["test"]


def test_every_command_that_reads_the_run_needs_the_plug_in(command, run):
    metrics, named = metrics_of(run), f"--plugin={NAME}"
    parts = ("document_tower/1", "search/1", "query_tower/1", "model_card-1.md")
    values = {name.removeprefix("full/"): value for name, value in metrics["test"].items()}
    printed = {"evaluate": [f"| {name} | {value:.4f} (" for name, value in values.items()]}
    printed["export"] = [f"runs/focus/{part}" for part in parts]
    for flags, module in (("evaluate", "trainers.evaluate"), ("export", "export.export")):
        of_page = shlex.split(FLAGS[flags])
        refused = command(module, *(flag for flag in of_page if flag != named))
        assert refused.returncode == 1
        assert f"If you trust it, add {named}" in refused.stderr
        assert "Traceback" not in refused.stderr
        done = command(module, *of_page, check=True)
        assert all(text in done.stdout for text in printed[flags])
    assert json.loads((run / "evaluation" / "metrics.json").read_text())["test"] == metrics["test"]


@cases(
    "values, message",
    ([f"--plugin={NAME}", "--focus=0.5"], "--focus"),
    (["--plugin=no.such_module"], "error: --plugin=no.such_module: it cannot be imported"),
    (["--loss=focus"], "A plug-in (--plugin) may bring it"),
)
def test_a_mistake_is_a_message(command, tmp_path, values, message):
    done = command("trainers.train", f"--output_dir={tmp_path / 'run'}", *values)
    assert done.returncode != 0
    assert message in one_line(done.stderr)
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_python_trains_and_searches_alike(registered, run, folder, tmp_path):
    of_page = {"toy_entities": 300, "epochs": 10, "loss": "focus", "focus": 2.0, "preset": "fast"}
    paths = {"cache_dir": folder / "cache", "output_dir": tmp_path / "run"}
    model = sc.train(**of_page, **SMALL, **paths)
    assert metrics_of(tmp_path / "run")["test"] == metrics_of(run)["test"]
    found, again = (one.search(["a river"], k=3)[0] for one in (model, sc.load(run)))
    assert [hit.id for hit in found] == [hit.id for hit in again]
    assert len(found) == 3


def test_a_plug_in_of_a_program_is_known_in_its_new_processes_under_the_same_name(loaded):
    program = {"__name__": "__mp_main__", "register": plugins.register}
    exec("register('loss', 'of_a_program', 'a:Loss', help='.')", program)
    assert plugins.LOSSES.plugin("of_a_program").module == "__main__"


def test_what_the_package_has_is_known_whichever_module_comes_first():
    code = "from tf_smoothclir import plugins as p; print(p.FAMILIES.plugin('lexical').module)"
    code += "; p.register('loss', 'sosl', print, help='.')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "\n"
    assert "loss 'sosl' is there already" in done.stderr


def test_a_run_is_not_opened_by_what_a_file_says(run, built_in_alone):
    with pytest.raises(InputError, match=rf"{REMEDY}.*tf_smoothclir\.plugins\.load\(\['{NAME}'\]"):
        sc.load(run).search(["a river"], k=1)


@cases(
    "name, message",
    ("registers_nothing", "--plugin=registers_nothing: it registers nothing. Call"),
    ("fails_late", r"cannot be imported \(RuntimeError: too late\)\. Name a module"),
)
def test_a_module_that_fails_leaves_nothing_behind(loaded, name, message):
    with pytest.raises(InputError, match=message):
        plugins.load([name])
    assert "late" not in plugins.LOSSES


def group(name, **values):
    fields = [(field, type(value), setting(value, ".")) for field, value in values.items()]
    return dataclasses.make_dataclass(f"{name}Settings", fields, bases=(Settings,), frozen=True)


@cases(
    "kind, name, thing, message",
    ("lost", "mine", object, f"kind must be one of {', '.join(plugins.KINDS)}, but is 'lost'"),
    ("loss", "sosl", object, "loss 'sosl' is there already, from tf_smoothclir: choose another"),
    ("loss", "focus", object, f"loss 'focus' is there already, from {NAME}"),
    ("loss", "mine", group("Mine", epsilon=1.0), "ModelSettings has a setting 'epsilon' al"),
    ("loss", "mine", group("Mine", focus=1.0), "FocusSettings has a setting 'focus' already"),
    ("loss", "mine", group("Focus"), "there are settings 'focus' already"),
    ("loss", "a b,c", sc.SoftmaxLoss, r"loss 'a b,c': use letters, digits, _, -, \+ and dots"),
    ("loss", "mine", keras.losses.MeanSquaredError, "'mine': it is no RankingLoss. Register a `R"),
    ("loss", "mine", own((sc.ThresholdLoss,), {}), "loss 'mine': Own has no call"),
    ("tower", "mine", own((WordTableTower,), {}), "tower 'mine': Own has no call"),
    ("reranker", "mine", own(NETWORK, {"learning": 1}), "Own has no features and no score"),
    ("reranker", "mine", own(NETWORK, {"features": 1, "score": 1}), "Own has no learning"),
    ("family", "mine", sc.Family, r"family 'mine': Family has no scorer\. Register a `families\."),
    ("objective", "mine", 3, "objective 'mine': it is no function"),
)
def test_what_cannot_be_registered_is_an_error(registered, kind, name, thing, message):
    settings = thing if isinstance(thing, type) and issubclass(thing, Settings) else None
    with pytest.raises(ValueError, match=message):
        plugins.register(kind, name, thing, help=".", settings=settings)
    assert "mine" not in plugins.LOSSES


@cases("registry", plugins.LOSSES, plugins.TOWERS, plugins.FAMILIES)
def test_facts_are_what_the_classes_say(registry, built_in_alone):
    """Flags are checked by the facts, before TensorFlow is there."""
    stated = {fact for name in registry for fact in registry.plugin(name).facts}
    assert stated
    for name in registry:
        plugin, implementation = registry.plugin(name), registry[name]
        for fact in stated:
            expected = getattr(implementation, fact)
            assert plugin.fact(fact, type(expected)()) == expected or (
                fact not in plugin.facts and fact == "accepted_token_weights"
            ), (name, fact)
