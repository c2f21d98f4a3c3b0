"""What all commands share: help, errors without a stack trace, silence, entry points."""

import ast
import errno
import json
import logging
import re
from pathlib import Path
from unittest import mock

import pytest
import tensorflow as tf

from tests.cases import cases
from tests.command_line.forked import ROOT, program
from tests.settings.broken_combinations import OF_FLAGS, OF_PLUGINS, OF_SETTINGS
from tf_smoothclir.command_line import command
from tf_smoothclir.extras import distributed
from tf_smoothclir.optimizers import LEARNING_RATE
from tf_smoothclir.settings import base, presets, run
from tf_smoothclir.training import trainer
from tf_smoothclir.utils.errors import InputError

# Command -> the groups of settings that are its flags.
OF_DATA = ("evaluate", "stats"), ("build_index", "search", "serve")
MAINS = {"trainers.compare": [], "export.export": []}
MAINS |= {f"trainers.{name}": ["data"] for name in OF_DATA[0]}
MAINS |= {f"export.{name}": ["data"] for name in OF_DATA[1]}
EVERY = ["data", "text", "model", "training", "retrieval", "encoder"]
MAINS |= {"trainers.train": EVERY, "trainers.tune": EVERY}
EXAMPLES = {str(example): example for example in (*OF_SETTINGS, *OF_FLAGS)}
NOWHERE = "nowhere: there is no such "  # directory, or file or directory
OF_THE_PATH = InputError("out.npz: it cannot be written. Check the path.")
OF_THE_PATH.__cause__ = OSError(errno.ENOSPC, "No space left on device", "out.npz")
NODE = "{{function_node __wrapped__SaveV2_device_/job:localhost/device:CPU:0}} "
NODE += "runs/mine/state; No space left on device [Op:SaveV2] name: "


def shown_default(value):
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def one_line(text):
    return " ".join(text.split())


def check_help(commands, module, groups, **other_defaults):
    """Checks that `--help` shows all settings of some groups, with their defaults."""
    done = commands.run(module, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.findall(r"^(\w+):$", done.stdout, re.MULTILINE) == ["command", *groups]
    text = one_line(done.stdout)
    for group in groups:
        for field in base.fields_with_flags(run.all_groups()[group]):
            shown = re.search(rf"--(?:\[no\])?{field.name}: .*?\(default: '(.*?)'\)", text)
            assert shown[1] == shown_default(other_defaults.get(field.name, field.default))


@cases("module", *MAINS)
def test_help_shows_every_setting_with_its_default(commands, module):
    has_preset = module in ("trainers.train", "trainers.tune")
    check_help(commands, module, MAINS[module], **(presets.PRESETS["best"] if has_preset else {}))


@cases(
    "module, arguments, message",
    ("trainers.train", ["toy"], "Unknown argument 'toy'; flags begin with --."),
    ("trainers.train", ["--epoch=3"], "flag 'epoch'. Did you mean: epochs ?"),
    ("trainers.train", ["--loss=hinge"], "--loss=hinge: must be one of sosl, mse,"),
    ("trainers.train", ["--thresholds=a,1"], "--thresholds=a,1: must be a list of numbers"),
    ("export.search", ["--trec_run=file/a.run"], "error: --trec_run=file: the directory can"),
    ("export.search", ["--trec_run=."], "error: --trec_run=.: it is a directory"),
    ("export.search", ["--export_dir=tmp", "--index_dir=no"], "smoothclir-index --index_dir=no."),
    ("export.serve", ["--export_dir=tmp", "--index_dir=no"], "--index_dir=no: there is no such"),
    ("export.build_index", ["--export_dir=tmp", "--index_dir=file/i"], "error: --index_dir=fi"),
    ("trainers.compare", ["a.run", "b.run", "--nofull"], "error: --nofull: every run is a fi"),
    ("trainers.compare", [".", "tmp", "--nofull", "--qrels=f"], "error: --qrels=f: every run is a"),
    ("trainers.compare", ["a\x1b[2J", "b"], "error: a␛[2J: there is no such run"),
    ("export.export", ["--run_dir=~/a/b"], f"--run_dir={Path.home()}/a/b: there is no such"),
    ("trainers.compare", ["~/a/b", "c"], f"error: {Path.home()}/a/b: there is no such run"),
    ("trainers.tune", ["--output_dir=a\udcff"], "'a\\udcff': the path is not UTF-8. Rename"),
)
def test_a_mistake_is_a_message_alone(commands, tmp_path, module, arguments, message):
    (tmp_path / "file").write_text("")
    (tmp_path / "tmp").mkdir()
    if module == "trainers.train":
        arguments = [*arguments, "--output_dir=run"]
    done = commands.run(module, *arguments, cwd=tmp_path)
    assert done.returncode != 0
    assert message in one_line(done.stdout + done.stderr)
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "tmp"]


@cases(
    "module, name",
    ("trainers.train", "objective-loss"),
    ("trainers.train", "distribution-batching"),
    ("trainers.tune", "tune-retriever"),
    ("tf_smoothclir.extras.distributed.write_shards", "num_shards-ngram_buckets"),
    ("export.search", "queries-query"),
    ("export.build_index", "add-engine"),
)
def test_incompatible_flags_are_told_before_anything_is_loaded(commands, tmp_path, module, name):
    rule, texts = EXAMPLES[name].rule, EXAMPLES[name].texts
    arguments = [f"--{name}={text}" for name, text in texts.items()]
    used = {OF_PLUGINS.get(rule, ""), distributed.__name__ * ("distribution" in texts)}
    arguments += [f"--plugin={plugin}" for plugin in used if plugin]
    done = commands.run(module, *arguments, cwd=tmp_path)
    assert done.returncode == 1
    where, _, what = done.stderr.removeprefix("error: ").partition(": ")
    assert where.split()[0].startswith((f"--{rule.names[0]}", f"--no{rule.names[0]}"))
    assert what == f"{rule.reason}. {rule.remedy}.\n"
    assert list(tmp_path.iterdir()) == []


def test_stats_counts_a_query_log_and_as_many_grades_as_there_are(commands, tmp_path):
    (tmp_path / "queries.tsv").write_text("".join(f"q{i}\ta river\n" for i in range(5)))
    (tmp_path / "documents.tsv").write_text("d1\tun fleuve\n")
    arguments = ["--data_dir=.", "--document_language=fr", "--json"]
    for _ in range(2):  # without judgments, then with them
        counted = commands.run("trainers.stats", *arguments, cwd=tmp_path, check=True)
        assert json.loads(counted.stdout)["queries"] == 5
        (tmp_path / "judgments.tsv").write_text("".join(f"q{i}\td1\t3\n" for i in range(5)))


def test_tensorflow_prints_nothing_where_a_plugin_loads_it(tmp_path, monkeypatch):
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    own = "type('Own', (Family,), {'scorer': 1})"
    register = f"plugins.register('family', 'own', {own}, help='a test.')"
    lines = ["import tensorflow as tf", "from tf_smoothclir import Family, plugins", "tf.zeros(1)"]
    (tmp_path / "own.py").write_text("\n".join([*lines, register]))
    code = "from trainers.stats import run; run()"
    printed, errors = program(code, "--plugin=own", "--toy_entities=300", cwd=tmp_path)
    assert ("300" in printed, errors) == (True, "")


@cases(
    "module, arguments, said",
    ("trainers.stats", ["--toy_entities=300"], "300"),
    ("trainers.compare", ["first", "second"], "first"),
    *((f"trainers.{name}", ["--data_dir=nowhere"], NOWHERE) for name in ("train", "tune")),
    *((name, ["--run_dir=nowhere"], NOWHERE) for name in ("trainers.evaluate", "export.export")),
    *((f"export.{name}", ["--export_dir=nowhere"], NOWHERE) for name in OF_DATA[1]),
)
def test_tensorflow_is_not_loaded_without_need(module, arguments, said, tmp_path):
    code = (
        f"import sys; from {module} import run\n"
        "try:\n    run()\n"
        "except SystemExit as end:\n    print(end.code)\n"
        "assert not {'tensorflow', 'tensorflow_datasets', 'keras'} & {*sys.modules}\n"
    )
    assert said in program(code, *arguments, cwd=tmp_path)[0]
    assert list(tmp_path.iterdir()) == []


@cases(
    "error, place",
    (OSError(errno.ENOSPC, "No space left on device", "runs/mine/flags.txt"), "flags.txt'"),
    (tf.errors.ResourceExhaustedError(None, None, NODE), "error: runs/mine/state;"),
    (OF_THE_PATH, "'out.npz'. Free"),
)
def test_full_disk_is_a_message(error, place, monkeypatch):
    monkeypatch.setattr(command.gc, "freeze", lambda: None)  # of what the other tests leave
    with pytest.raises(SystemExit) as ended:
        command._guarded(mock.Mock(side_effect=error), ["smoothclir-train"], "")
    message = str(ended.value)
    assert place in message
    assert "No space left on device" in message
    assert ". Free some space, then give the same command again" in message
    assert not re.search(r"{{|\[Op:", message)
    other = OSError(errno.EIO, "Input/output error")
    with pytest.raises(OSError, match="Input/output error"):  # with its stack trace
        command._guarded(mock.Mock(side_effect=other), ["smoothclir-train"], "")


def test_the_log_has_our_messages_and_warnings_of_other_libraries():
    def is_logged(module, level):
        record = logging.LogRecord("absl", level, module.__file__, 1, "message", None, None)
        return command._is_ours_or_a_warning(record)

    of = (trainer, logging.INFO), (tf, logging.INFO), (tf, logging.WARNING)
    assert [is_logged(*one) for one in of] == [True, False, True]


@pytest.mark.slow
def test_success_is_silent_on_standard_error_with_verbosity_minus_one(tmp_path):
    places = (f"--cache_dir={tmp_path}/cache", f"--output_dir={tmp_path}/run")
    # Of 600 queries, 120 are for testing: of fewer than 100, a warning says so.
    quiet = (*places, "--preset=lexical", "--toy_entities=600", "--verbosity=-1")
    printed, errors = program("from trainers.train import run; run()", *quiet)
    assert errors == ""
    assert printed.splitlines()[-1] == f"Report: {tmp_path}/run/report.md"


def test_console_scripts_point_to_existing_functions():
    listed = re.search(r"^COMMANDS = ({.*?^})", (ROOT / "setup.py").read_text(), re.M | re.S)[1]
    commands = ast.literal_eval(listed)
    assert {"train", "evaluate", "export", "search", "stats"} <= commands.keys()
    for module in commands.values():
        path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
        assert "\ndef run(" in path.read_text(), module


def test_preset_of_the_paper_trains_each_tower_as_the_paper_does():
    # Section 5: Adam 0.01, 128 pairs, 30 epochs; for CNN and LSTM 0.001 with decay 0.95, for the
    # LSTM batches of 64 and 15 epochs.
    common = {"--optimizer=adam", "--published_towers=True", "--clip_norm=5.0"}
    slower = {"--learning_rate=0.001", "--learning_rate_decay=0.95"}
    settings = ("--learning_rate=0.0", "--learning_rate_decay=1.0")
    for tower, lines in {
        "average_pooling": {*common, *settings, "--batch_size=128", "--epochs=30"},
        "cnn": {*common, *slower, "--batch_size=128", "--epochs=30"},
        "lstm": {*common, *slower, "--batch_size=64", "--epochs=15"},
    }.items():
        found = presets.preset_settings("paper", {"tower": tower}).flag_lines()
        assert lines | {f"--tower={tower}"} <= set(found)
    assert LEARNING_RATE == 0.01
