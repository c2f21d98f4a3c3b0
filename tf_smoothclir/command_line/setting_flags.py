"""Flags made from the settings, the settings that flags give, and flags that commands share."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from absl import flags

from tf_smoothclir import plugins
from tf_smoothclir.settings.base import Settings, absolute, fields_with_flags, help_of
from tf_smoothclir.settings.combinations import NOT_BESIDE_INIT_FROM, check_combinations
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.model import ModelSettings
from tf_smoothclir.settings.presets import PRESETS, preset_settings
from tf_smoothclir.settings.retrieval import SEARCHED_BY
from tf_smoothclir.settings.run import GROUPS, RunSettings, all_groups
from tf_smoothclir.utils.errors import InputError, input_error
from tf_smoothclir.utils.paths import local_path

FLAGS = flags.FLAGS
COMMAND = "command"  # group of a command's own flags in --help


def define_settings(groups: Sequence[str] = tuple(GROUPS)) -> None:
    """Defines a flag for each setting of some groups, with its default, help and range."""
    for group in groups:
        define_fields(all_groups()[group], group)


def define_fields(kind: type[Settings], group: str = COMMAND) -> None:
    """Defines a flag for each setting of a class."""
    for field in fields_with_flags(kind):
        _define(group, field)


def define_path(
    name: str, default: str | None, text: str, *, many: bool = False, **more
) -> flags.FlagHolder:
    """Defines a flag of the command that is a path, or with `many` a list of them."""
    define = flags.DEFINE_multi if many else flags.DEFINE
    serializer = (flags.ArgumentSerializer(),) if many else ()
    return define(_PathParser(), *serializer, name, default, text, module_name=COMMAND, **more)


def values_of(kind: type[Settings]) -> dict[str, object]:
    """The values of the flags that `define_fields` has defined."""
    return {field.name: FLAGS[field.name].value for field in fields_with_flags(kind)}


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
    for group in groups:  # plug-ins bring choices
        for field in fields_with_flags(all_groups()[group]):
            if isinstance(field.metadata["choices"], plugins.Registry):
                FLAGS[field.name].help = _help_of_choices(field)
    return [*groups, *more]


def _plugin_flag(arguments: Sequence[str], place: int) -> str:
    """The value of --plugin at a place of the command line; "" where it is not there."""
    name, equals, value = arguments[place].lstrip("-").partition("=")
    if name != "plugin" or not arguments[place].startswith("-"):
        return ""
    return value if equals else "".join(arguments[place + 1 : place + 2])


def define_preset() -> None:
    """Defines --preset, for commands that use `run_settings_from_flags`."""
    flags.DEFINE_enum(
        "preset",
        "fast",
        list(PRESETS),
        "Defaults of all other flags; those that you give override it. fast: the paper's towers,"
        " loss and sizes, with Adam without momentum, all queries, and every --tower trained alike."
        " paper: as the paper and its authors' code train: Adam, their cnn and lstm, 25,000"
        " queries, and the paper's learning rate, batches and epochs for each --tower. dense: the"
        " towers that rank best here: shared vocabulary, character n-grams, bilingual initial"
        " vectors, learned weights of words and positions, --loss=ordinal_softmax, in-batch and"
        " hard negatives, 512 dimensions; an epoch takes several times as long. lexical: a"
        " translation table and no towers. best: the towers of dense and the table in one ranking"
        " (--retriever=hybrid).",
        module_name=COMMAND,
    )


def define_run_directory(default: str) -> None:
    """Defines --output_dir and --overwrite, for commands that write one run."""
    define_path("output_dir", default, "The run directory.")
    flags.DEFINE_boolean(
        "overwrite", False, "Delete the run in --output_dir and start again.", module_name=COMMAND
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
    export_dir = define_path(
        "export_dir", "runs/train", "Directory that smoothclir-export wrote to."
    )
    index_help = "Directory of the index; empty: index/ in --export_dir."
    return export_dir, define_path("index_dir", "", index_help)


def check_export_dir() -> None:
    """Checks that --export_dir is there, before anything is loaded, which takes seconds."""
    if not Path(FLAGS.export_dir).is_dir():
        remedy = "Write all parts with smoothclir-export"
        raise input_error(f"--export_dir={FLAGS.export_dir}", "there is no such directory", remedy)


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


def settings_from_flags(
    group: str, base: Settings | None = None, *, varied: Collection[str] = (), **flags_beside
) -> Settings:
    """The settings of a group that the flags give."""
    values = {}
    kind = all_groups()[group]
    for field in fields_with_flags(kind):
        flag = FLAGS[field.name]
        value = getattr(base, field.name) if base and not flag.present else flag.value
        values[field.name] = absolute(field, value)
    try:
        for field in fields_with_flags(kind):
            if isinstance(field.default, tuple):
                of_numbers = type(field.default[0]) if field.default else int
                values[field.name] = tuple(
                    _number(field.name, text, of_numbers) for text in values[field.name]
                )
        settings = kind(**values)
    except ValueError as error:
        raise InputError(str(error)) from error
    check_combinations(settings, varied=varied, **flags_beside)
    return settings


def run_settings_from_flags(varied: Collection[str] = (), **flags_beside) -> RunSettings:
    """All settings that the flags give; what they leave out is as in --preset."""
    base = _base_settings()
    settings = RunSettings.from_groups(
        {
            name: settings_from_flags(name, group, varied=varied, **flags_beside)
            for name, group in base.groups().items()
        }
    )
    check_combinations(settings, varied=varied, **flags_beside)
    return settings


def _base_settings() -> RunSettings:
    """Defaults of flags that are not given: a preset, or the run of --init_from."""
    if not FLAGS.init_from:
        return preset_settings(FLAGS.preset, FLAGS.tower if FLAGS["tower"].present else "")
    # Before the run is read, which may not be there.
    check_combinations(**{name: FLAGS[name].value for name in NOT_BESIDE_INIT_FROM | {"init_from"}})
    if FLAGS["preset"].present:
        reason, remedy = "a run that begins with another one has its settings", "Leave --preset out"
        raise input_error(f"--init_from={FLAGS.init_from} --preset={FLAGS.preset}", reason, remedy)
    from tf_smoothclir.training.initial_run import settings_to_begin_with

    return settings_to_begin_with(FLAGS.init_from)


def data_like(trained_on: DataSettings) -> DataSettings:
    """The data settings that the flags give; what they leave out is as in `trained_on`."""
    return settings_from_flags("data", base=trained_on)


def _number(name: str, text: str | float, kind: type) -> float:
    try:
        return kind(text)
    except ValueError:
        what = "whole numbers" if kind is int else "numbers"
        raise ValueError(f"--{name} must be {what}, but one is {text!r}.") from None


def _define(group: str, field: dataclasses.Field) -> None:
    rule, name, default = field.metadata, field.name, field.default
    common = {"help": rule["help"], "module_name": group}
    if isinstance(rule["choices"], plugins.Registry):
        parser = _ChoiceParser(rule["choices"])
        flags.DEFINE(parser, name, default, _help_of_choices(field), module_name=group)
        return
    limits = {"lower_bound": rule["minimum"], "upper_bound": rule["maximum"]}
    if isinstance(default, bool):
        flags.DEFINE_boolean(name, default, **common)
    elif isinstance(default, int):
        flags.DEFINE_integer(name, default, **limits, **common)
    elif isinstance(default, float):
        flags.DEFINE_float(name, default, **limits, **common)
    elif isinstance(default, tuple):
        flags.DEFINE_list(name, list(map(str, default)), **common)
    elif rule["choices"]:
        flags.DEFINE_enum(name, default, list(rule["choices"]), **common)
    elif rule["is_path"]:
        flags.DEFINE(_PathParser(), name, default, **common)
    else:
        flags.DEFINE_string(name, default, **common)


def _help_of_choices(field: dataclasses.Field) -> str:
    """The help of a flag whose choices are registered, in the form of absl's enum flags."""
    return f"<{'|'.join(field.metadata['choices'])}>: {help_of(field)}"


class _PathParser(flags.ArgumentParser):
    """Expands `~`, which the shell leaves in --flag=~/path."""

    def parse(self, argument: str) -> str:
        """The path, which may be a URL."""
        return local_path(argument)


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
