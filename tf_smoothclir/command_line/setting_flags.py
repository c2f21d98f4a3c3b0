"""Flags made from the settings, the settings that flags give, and flags that commands share."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from absl import flags

from tf_smoothclir import plugins
from tf_smoothclir.settings.base import Settings, absolute, fields_with_flags, help_of
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.model import ModelSettings
from tf_smoothclir.settings.presets import PRESETS, changed, preset_settings
from tf_smoothclir.settings.retrieval import SEARCHED_BY
from tf_smoothclir.settings.run import GROUPS, RunSettings, all_groups
from tf_smoothclir.utils.errors import input_error

FLAGS = flags.FLAGS
COMMAND = "command"  # group of a command's own flags in --help
_fields: dict[str, dataclasses.Field] = {}  # by the flags that are defined


def define_settings(groups: Sequence[str] = tuple(GROUPS)) -> None:
    """Defines a flag for each setting of some groups, with its default, help and range."""
    for group in groups:
        define_fields(all_groups()[group], group)


def define_fields(kind: type[Settings], group: str = COMMAND) -> None:
    """Defines a flag for each setting of a class."""
    for field in fields_with_flags(kind):
        _fields[field.name] = field
        _define(group, field)


def define_run_settings() -> None:
    """Defines --preset and a flag for each setting, for commands that train."""
    define_settings()
    flags.DEFINE_enum(
        "preset",
        "best",
        list(PRESETS),
        "What the flags are that you do not give. best: the towers of dense and a translation table"
        " in one ranking (--retriever=hybrid); without --preset, where your flags do not go with"
        " these towers, such as --tower=lstm, those of fast. dense: the towers that rank best here,"
        " alone: shared vocabulary, character n-grams, bilingual initial vectors, learned weights"
        " of words and positions, --loss=ordinal_softmax, in-batch and hard negatives, 512"
        " dimensions. lexical: the table alone, in seconds. fast: the paper's towers, loss and"
        " sizes (--retriever=dense --tower=average_pooling --dim=64 --loss=sosl --batching=pairs"
        " --batch_size=128 --epochs=30), with Adam without momentum, all queries, and every --tower"
        " trained alike. paper: as the paper and its authors' code train: Adam, their cnn and lstm,"
        " 25,000 queries, and the paper's learning rate, batches and epochs for each --tower.",
        module_name=COMMAND,
    )
    for name, value in PRESETS[FLAGS["preset"].value].items():
        FLAGS.set_default(name, value)


def define_plugin() -> None:
    """Defines --plugin, for all commands."""
    if "plugin" not in FLAGS:
        flags.DEFINE_list(
            "plugin",
            [],
            "Python modules to import first, which register losses, towers, objectives or"
            " re-rankers (tf_smoothclir.plugins.register).",
            module_name=COMMAND,
        )


def load_plugins(arguments: Sequence[str], groups: Sequence[str]) -> list[str]:
    """Imports what --plugin names, and defines the flags of their settings.

    It has to happen before flags are parsed. A command that has all settings of a run has those of
    plug-ins too.

    Returns:
        The groups of settings that `--help` shows.
    """
    read = FLAGS.read_flags_from_files(list(arguments), force_gnu=True)
    named = [_plugin_flag(read, place) for place in range(len(read))]
    modules = [name for value in named for name in value.split(",") if name]
    if modules and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # as `python -m` has it; console scripts do not
    plugins.load(modules)
    if not {*groups} >= {"model", "training"}:
        return list(groups)
    more = [group for group in plugins.groups() if group not in groups]
    define_settings([group for group in more if not FLAGS.flags_by_module_dict().get(group)])
    for name, field in _fields.items():  # plug-ins bring choices, and settings to search
        if isinstance(field.metadata["choices"], plugins.Registry):
            FLAGS[name].help = _help_of_choices(field)
        elif callable(field.metadata["help"]):
            FLAGS[name].help = help_of(field)
    return [*groups, *more]


def _plugin_flag(arguments: Sequence[str], place: int) -> str:
    """The value of --plugin at a place of the command line; "" where it is not there."""
    name, equals, value = arguments[place].lstrip("-").partition("=")
    if name != "plugin" or not arguments[place].startswith("-"):
        return ""
    return value if equals else "".join(arguments[place + 1 : place + 2])


def define_run_directory(default: str) -> None:
    """Defines --output_dir and --overwrite, for commands that write one run."""
    flags.DEFINE_string("output_dir", default, "The run directory.", module_name=COMMAND)
    flags.DEFINE_boolean(
        "overwrite",
        False,
        "Delete the run in --output_dir and start again.",
        module_name=COMMAND,
    )


def define_verify() -> flags.FlagHolder:
    """Defines --verify, for commands that read a run."""
    return flags.DEFINE_bool(
        "verify",
        True,
        "Checks that the files of the run are those that training wrote; --noverify reads a run"
        " that you have changed by hand.",
        module_name=COMMAND,
    )


def define_index_flags() -> tuple[flags.FlagHolder, flags.FlagHolder]:
    """Defines --export_dir and --index_dir, for commands that search or write an index."""
    export_dir = flags.DEFINE_string(
        "export_dir",
        "runs/train",
        "Directory that smoothclir-export wrote to.",
        module_name=COMMAND,
    )
    index_dir = flags.DEFINE_string(
        "index_dir",
        "",
        "Directory of the index; empty: index/ in --export_dir.",
        module_name=COMMAND,
    )
    return export_dir, index_dir


def check_export_dir() -> None:
    """Checks that --export_dir is there, before anything is loaded, which takes seconds."""
    if not Path(FLAGS.export_dir).is_dir():
        raise input_error(
            f"--export_dir={FLAGS.export_dir}",
            "there is no such directory",
            "Write all parts with smoothclir-export",
        )


def check_data_dir(data_dir: str) -> None:
    """Checks that --data_dir is there, if it is given, before TensorFlow takes seconds to load."""
    from tf_smoothclir.data.sources.line_files import checked_directory

    if data_dir:
        checked_directory(data_dir)


def define_retriever() -> flags.FlagHolder:
    """Defines --retriever, for commands that rank with what has been trained."""
    return flags.DEFINE_enum(
        "retriever",
        "auto",
        SEARCHED_BY,
        "What ranks the documents. auto: what the run was trained to. Of a hybrid, dense uses"
        " the vectors alone, and lexical the words alone. All but auto and reranked leave"
        " the re-ranker out.",
        module_name=COMMAND,
    )


def define_thresholds() -> flags.FlagHolder:
    """Defines --thresholds, for commands that only prepare what training will read."""
    return flags.DEFINE_list(
        "thresholds",
        list(map(str, ModelSettings.thresholds)),
        "As in training. Only their number counts here: K-1 for grades 0..K-1.",
        module_name=COMMAND,
    )


def settings_from_flags(base: RunSettings | None = None, **beside) -> RunSettings:
    """The settings that flags give; what they leave out is as in `base`."""
    return changed(base or RunSettings(), given_settings(), **beside)


def run_settings_from_flags(**beside) -> RunSettings:
    """The settings that flags give; what they leave out is as --preset or --init_from say."""
    preset = FLAGS.preset if FLAGS["preset"].present else ""
    return preset_settings(preset, given_settings(), begin_with=_begin_with, **beside)


def given_settings() -> dict[str, object]:
    """Name -> value of each setting that a flag gives."""
    defined = FLAGS.flags_by_module_dict()
    return {
        field.name: absolute(field, FLAGS[field.name].value)
        for group, kind in all_groups().items()
        if group in defined
        for field in fields_with_flags(kind)
        if FLAGS[field.name].present
    }


def _begin_with(path: str) -> RunSettings:
    from tf_smoothclir.training.initial_run import settings_to_begin_with  # loading takes a moment

    return settings_to_begin_with(path)


def data_like(trained_on: DataSettings) -> DataSettings:
    """The data settings that the flags give; what they leave out is as in `trained_on`."""
    return settings_from_flags(RunSettings(data=trained_on)).data


def _define(group: str, field: dataclasses.Field) -> None:
    rule, name, default = field.metadata, field.name, field.default
    common = {"help": help_of(field), "module_name": group}
    limits = {"lower_bound": rule["minimum"], "upper_bound": rule["maximum"]}
    if isinstance(rule["choices"], plugins.Registry):
        common["help"] = _help_of_choices(field)
        flags.DEFINE(_ChoiceParser(rule["choices"]), name, default, **common)
    elif isinstance(default, bool):
        flags.DEFINE_boolean(name, default, **common)
    elif isinstance(default, int):
        flags.DEFINE_integer(name, default, **limits, **common)
    elif isinstance(default, float):
        flags.DEFINE_float(name, default, **limits, **common)
    elif isinstance(default, tuple):
        parser, serializer = _TupleParser(type((*default, 0)[0])), flags.CsvListSerializer(",")
        flags.DEFINE(parser, name, default, serializer=serializer, **common)
    elif rule["choices"]:
        flags.DEFINE_enum(name, default, list(rule["choices"]), **common)
    else:
        flags.DEFINE_string(name, default, **common)


def _help_of_choices(field: dataclasses.Field) -> str:
    """The help of a flag whose choices are registered, in the form of absl's enum flags."""
    return f"<{'|'.join(field.metadata['choices'])}>: {help_of(field)}"


class _ChoiceParser(flags.ArgumentParser):
    """Accepts what is registered when the flag is read: plug-ins come after its definition."""

    def __init__(self, choices: plugins.Registry):
        super().__init__()
        self._choices = choices

    def parse(self, argument: str) -> str:
        """The argument, if there is such a choice."""
        if argument not in self._choices:
            names = "|".join(self._choices)
            raise ValueError(f"value should be one of <{names}>, or of a plug-in (--plugin)")
        return argument


class _TupleParser(flags.ArgumentParser):
    """Reads "0.2,0.7" as numbers or names of one kind."""

    syntactic_help = "a comma separated list"

    def __init__(self, kind: type):
        super().__init__()
        self._kind = kind

    def parse(self, argument: str | tuple) -> tuple:
        """The parts of a text; a tuple as it is."""
        if not isinstance(argument, str):
            return argument
        parts = [part.strip() for part in argument.split(",")] if argument.strip() else []
        for part in parts:
            try:
                self._kind(part)
            except ValueError:
                what = "whole numbers" if self._kind is int else "numbers"
                raise ValueError(f"values must be {what}, but one is {part!r}") from None
        return tuple(map(self._kind, parts))
