"""What all commands share: flags made from the settings, `--help`, errors without a stack trace."""

from __future__ import annotations

import dataclasses
import errno
import gc
import logging as standard_logging
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # the library's own noise; before its import

from absl import app, flags, logging

from tf_smoothclir._compat.quiet import hush_tensorflow
from tf_smoothclir.settings.base import Settings
from tf_smoothclir.settings.presets import PRESETS, preset_settings
from tf_smoothclir.settings.run import GROUPS, DataSettings, ModelSettings, RunSettings
from tf_smoothclir.utils.errors import InputError, input_error

FLAGS = flags.FLAGS
COMMAND = "command"  # name of the group of a command's own flags
_FULL_DISK = os.strerror(errno.ENOSPC)
_PLACE_IN_GRAPH = re.compile(r"{{.*?}} | \[Op:\w+\].*")


def define_settings(groups: Sequence[str] = tuple(GROUPS)) -> None:
    """Defines a flag for each setting of some groups, with its default, help and range."""
    for group in groups:
        for field in dataclasses.fields(GROUPS[group]):
            _define(group, field)


def settings_from_flags(group: str, base: Settings | None = None) -> Settings:
    """Returns the settings of a group as the flags give them.

    Args:
        group: One of `GROUPS`, whose flags are defined.
        base: Where given, a flag that is not on the command line has its value here instead of its
            default.

    Raises:
        InputError: A value is out of range.
    """
    values = {}
    for field in dataclasses.fields(GROUPS[group]):
        flag = FLAGS[field.name]
        value = getattr(base, field.name) if base and not flag.present else flag.value
        if field.metadata["is_path"] and value and "://" not in value:
            value = os.path.abspath(value)  # a run is used from other directories too
        values[field.name] = value
    try:
        for field in dataclasses.fields(GROUPS[group]):
            if isinstance(field.default, tuple):
                kind = type(field.default[0])
                values[field.name] = tuple(
                    _number(field.name, text, kind) for text in values[field.name]
                )
        return GROUPS[group](**values)
    except ValueError as error:
        raise InputError(str(error)) from error


def define_preset() -> None:
    """Defines --preset, for commands that use `run_settings_from_flags`."""
    flags.DEFINE_enum(
        "preset",
        "paper",
        list(PRESETS),
        "Defaults of all other flags. paper: the paper's settings, but for random word vectors and"
        " Adam without momentum. best: what ranks best here, with"
        " epochs that take several times as long: shared vocabulary, character n-grams, bilingual"
        " initial vectors, learned token weights, in-batch and mined negatives, 512 dimensions.",
        module_name=COMMAND,
    )


def define_index_flags() -> tuple[flags.FlagHolder, flags.FlagHolder]:
    """Defines --export_dir and --index_dir, for commands that search or write an index."""
    export_dir = flags.DEFINE_string(
        "export_dir",
        "runs/train",
        "Where smoothclir-export wrote the towers.",
        module_name=COMMAND,
    )
    index_dir = flags.DEFINE_string(
        "index_dir", "", "The index; empty: index/ in --export_dir.", module_name=COMMAND
    )
    return export_dir, index_dir


def define_thresholds() -> flags.FlagHolder:
    """Defines --thresholds, for commands that only prepare what training will read."""
    return flags.DEFINE_list(
        "thresholds",
        list(map(str, ModelSettings.thresholds)),
        "As in training; only their number counts: K-1 for grades 0..K-1.",
        module_name=COMMAND,
    )


def data_like(trained_on: DataSettings) -> DataSettings:
    """Returns the settings of the data that the flags name, those left out as in `trained_on`."""
    return settings_from_flags("data", base=trained_on)


def run_settings_from_flags() -> RunSettings:
    """Returns all settings as the flags give them, --preset where it is defined."""
    base = preset_settings(FLAGS.preset if "preset" in FLAGS else "paper")
    return RunSettings(
        **{group: settings_from_flags(group, getattr(base, group)) for group in GROUPS}
    )


def refuse_shards(settings: RunSettings) -> None:
    """Refuses to read shards, for commands that train many models on one tokenized set.

    Raises:
        InputError: --shards_dir or --distribution is given.
    """
    training = settings.training
    if training.shards_dir or training.distribution != "none":
        raise input_error(
            "--shards_dir --distribution",
            "smoothclir-train alone trains from shards and with several workers",
            "Leave them out here, and give them there with what is found",
        )


def refuse_beside(name: str, others: Iterable[str]) -> None:
    """Refuses flags that would do nothing beside another one, which is given.

    Args:
        name: Of the flag that is given.
        others: Names of the others.

    Raises:
        InputError: One of them has another value than its default.
    """
    for other in others:
        if FLAGS[other].value != FLAGS[other].default:
            raise input_error(f"--{name} --{other}", "they do not go together", "Leave one out")


def start_again(*more: str) -> NoReturn:
    """Puts a new process, with the same command, in the place of this one.

    Args:
        *more: Flags behind those of the command.
    """
    logging.flush()
    module = sys.modules["__main__"].__spec__
    program = ["-m", module.name] if module else [sys.argv[0]]
    os.execv(sys.executable, [sys.executable, *program, *sys.argv[1:], *more])


def run_main(
    main: Callable, description: str, groups: Sequence[str] = (), *, arguments: str = ""
) -> None:
    """Runs a command: parses flags, prints help by group, turns users' mistakes into messages.

    Args:
        main: Takes the name of the command and the arguments that are no flags.
        description: What the command does; shown by --help.
        groups: Groups of settings that the command has flags for.
        arguments: What the arguments that are no flags stand for, shown by --help; empty: there
            must be none.
    """
    if any(argument in ("--help", "-h", "-help") for argument in sys.argv[1:]):
        try:
            print(_help(description, groups, arguments), flush=True)
        except BrokenPipeError:
            _end_for_closed_pipe()
        return
    logging.use_absl_handler()
    handler = logging.get_absl_handler().python_handler
    handler.setFormatter(standard_logging.Formatter())
    handler.addFilter(_is_ours_or_a_warning)
    app.run(lambda argv: _guarded(main, argv, arguments))


def _help(description: str, groups: Sequence[str], arguments: str) -> str:
    parts = [description.strip() + "\n"]
    if arguments:
        parts.append(f"Arguments: {arguments}\n")
    parts += map(FLAGS.module_help, (COMMAND, *groups))
    parts.append("All flags of all libraries: --helpfull. Less output: --verbosity=-1.")
    return "\n".join(parts)


def _end_for_closed_pipe() -> NoReturn:
    """Ends as the system ends programs whose reader, such as `head`, has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(128 + signal.SIGPIPE)


def _is_ours_or_a_warning(record: standard_logging.LogRecord) -> bool:
    """Leaves out what the libraries only mention."""
    ours = record.pathname.startswith(os.path.dirname(__file__))
    return ours or record.levelno >= standard_logging.WARNING


def _guarded(main: Callable, argv: Sequence[str], arguments: str) -> None:
    if len(argv) > 1 and not arguments:
        raise app.UsageError(f"Unknown argument {argv[1]!r}; flags begin with --.")
    try:
        hush_tensorflow()
        main(argv)
    except InputError as error:
        logging.flush()
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except BrokenPipeError:
        _end_for_closed_pipe()
    except Exception as error:  # TensorFlow's own errors are no OSError
        if _FULL_DISK not in str(error):
            raise
        logging.flush()
        sys.exit(
            f"error: {_PLACE_IN_GRAPH.sub('', str(error))}. Free some space, then give the same"
            " command again: what was saved before is kept."
        )
    finally:
        gc.freeze()  # or Python looks for garbage among all of TensorFlow's objects before it ends


def _number(name: str, text: str | float, kind: type) -> float:
    try:
        return kind(text)
    except ValueError:
        what = "whole numbers" if kind is int else "numbers"
        raise ValueError(f"--{name} must be {what}, but one is {text!r}.") from None


def _define(group: str, field: dataclasses.Field) -> None:
    rule, name, default = field.metadata, field.name, field.default
    common = {"help": rule["help"], "module_name": group}
    if isinstance(default, bool):
        flags.DEFINE_boolean(name, default, **common)
    elif isinstance(default, int):
        flags.DEFINE_integer(name, default, lower_bound=rule["minimum"], **common)
    elif isinstance(default, float):
        flags.DEFINE_float(name, default, lower_bound=rule["minimum"], **common)
    elif isinstance(default, tuple):
        flags.DEFINE_list(name, list(map(str, default)), **common)
    elif rule["choices"]:
        flags.DEFINE_enum(name, default, list(rule["choices"]), **common)
    else:
        flags.DEFINE_string(name, default, **common)
