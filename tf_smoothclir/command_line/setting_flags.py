"""Flags made from the settings, the settings that flags give, and flags that commands share."""

import dataclasses
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from absl import flags

from tf_smoothclir import plugins
from tf_smoothclir.settings import base
from tf_smoothclir.settings.base import Settings, fields_with_flags
from tf_smoothclir.settings.data import LANGUAGES, DataSettings
from tf_smoothclir.settings.presets import PRESETS, changed, preset_settings
from tf_smoothclir.settings.retrieval import SEARCHED_BY
from tf_smoothclir.settings.run import GROUPS, RunSettings, all_groups
from tf_smoothclir.utils.errors import InputError, input_error
from tf_smoothclir.utils.paths import local_path

SettingsT = TypeVar("SettingsT", bound=Settings)
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
        _define(group, field.name, field)


def flag(name: str, default, help_text: str, **accepted) -> flags.FlagHolder:
    """Defines a flag of a command's own, with the values that it accepts; see `setting`."""
    return _define(COMMAND, name, base.setting(default, help_text, **accepted))


def define_path(name: str, default: str | None, help_text: str, **more) -> flags.FlagHolder:
    """Defines a flag of a command's own that is a path."""
    return flags.DEFINE(_PathParser(), name, default, help_text, module_name=COMMAND, **more)


def define_run_settings() -> None:
    """Defines --preset and a flag for each setting, for commands that train."""
    define_settings()
    flag(
        "preset",
        "best",
        "Sets the flags that you do not give. best: a translation table, and the towers of dense"
        " where they help; without --preset, flags that do not go with these towers, such as"
        " --tower=lstm, take those of fast. dense: the towers that rank best here, alone. lexical:"
        " the table alone, in seconds. fast: the paper's towers, loss and sizes, with Adam without"
        " momentum, all queries, and every --tower trained alike. paper: as the paper and its"
        " authors' code train: Adam, their cnn and lstm, 25,000 queries, and the paper's learning"
        " rate, batches and epochs for each --tower.",
        choices=PRESETS,
    )
    for name, value in PRESETS[FLAGS["preset"].value].items():
        FLAGS.set_default(name, value)


def define_plugin() -> None:
    """Defines --plugin, for all commands."""
    if "plugin" not in FLAGS:
        flags.DEFINE_list(
            "plugin",
            [],
            "Python modules to import first, which register losses, towers, objectives,"
            " re-rankers or families (tf_smoothclir.plugins.register).",
            module_name=COMMAND,
        )


def load_plugins(arguments: Sequence[str], groups: Sequence[str]) -> list[str]:
    """Imports what --plugin names, and defines the flags of their settings, to be parsed."""
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
        FLAGS[name].help = _help(field)
    return [*groups, *more]


def _plugin_flag(arguments: Sequence[str], place: int) -> str:
    """The value of --plugin at a place of the command line; "" where it is not there."""
    name, equals, value = arguments[place].lstrip("-").partition("=")
    if name != "plugin" or not arguments[place].startswith("-"):
        return ""
    return value if equals else "".join(arguments[place + 1 : place + 2])


def define_run_directory(default: str) -> None:
    """Defines --output_dir and --overwrite, for commands that write one run."""
    define_path("output_dir", default, "The run directory.")
    flag("overwrite", False, "Delete the run in --output_dir and start again.")


def define_verify() -> flags.FlagHolder:
    """Defines --verify, for commands that read a run."""
    return flag(
        "verify",
        True,
        "Checks that the files of the run are those that training wrote; --noverify reads a run"
        " that you have changed by hand.",
    )


def define_index_flags() -> tuple[flags.FlagHolder, flags.FlagHolder, flags.FlagHolder]:
    """Defines --export_dir, --index_dir and --version, for commands that use an index."""
    version_help = "Version of the export; without it, the newest."
    return (
        define_path("export_dir", "runs/train", "Directory that smoothclir-export wrote to."),
        define_path("index_dir", "", "Directory of the index; empty: index/ in --export_dir."),
        flags.DEFINE_integer("version", None, version_help, 1, module_name=COMMAND),
    )


def check_export_dir(*, searched: bool = False) -> None:
    """Checks that --export_dir, and a --index_dir to search, are there: loading takes seconds."""
    if not Path(FLAGS.export_dir).is_dir():
        remedy = "Write all parts with smoothclir-export"
        raise input_error(f"--export_dir={FLAGS.export_dir}", "there is no such directory", remedy)
    if searched and FLAGS.index_dir and not Path(FLAGS.index_dir).exists():
        where = f"--index_dir={FLAGS.index_dir}"
        remedy = f"Correct it, or build the index with smoothclir-index {where}"
        raise input_error(where, "there is no such directory", remedy)


def check_data(data: DataSettings) -> None:
    """Opens --data_dir, if it is given, before TensorFlow takes seconds to load."""
    from tf_smoothclir.data.sources.opening import source_of

    if data.data_dir:
        source_of(data)
    check_given_columns(data)


def check_given_columns(data: DataSettings) -> None:
    """Checks that tables have the names that --columns gives."""
    if "columns" not in FLAGS or not FLAGS.columns:
        return
    from tf_smoothclir.data.sources.opening import check_columns
    from tf_smoothclir.index.document_collections import open_files

    names = [name for name in ("collection", "add") if name in FLAGS and FLAGS[name].value]
    for collection in [open_files(FLAGS[name].value, f"--{name}") for name in names] or [None]:
        check_columns(data, collection)


def define_retriever() -> flags.FlagHolder:
    """Defines --retriever, for commands that rank with what has been trained."""
    return flag(
        "retriever",
        "auto",
        "What ranks the documents. auto: as the run was trained. Of a hybrid, dense uses"
        " the vectors alone, and lexical the words alone. All but auto and reranked leave"
        " the re-ranker out.",
        choices=SEARCHED_BY,
    )


def settings_from_flags(others: RunSettings | None = None, **beside) -> RunSettings:
    """The settings that flags give; what they leave out is as in `others`."""
    settings = changed(others or RunSettings(), given_settings(), **beside)
    check_given_columns(settings.data)
    return settings


def group_from_flags(kind: type[SettingsT]) -> SettingsT:
    """The settings of one group that flags give."""
    try:
        return kind(**{field.name: FLAGS[field.name].value for field in fields_with_flags(kind)})
    except ValueError as error:
        raise InputError(str(error)) from error


def run_settings_from_flags(**beside) -> RunSettings:
    """The settings that flags give; what they leave out is as --preset or --init_from say."""
    return preset_settings(given_preset(), given_settings(), begin_with=_begin_with, **beside)


def given_preset() -> str:
    """What --preset gives; "" for the best one that goes with the other flags."""
    return FLAGS.preset if FLAGS["preset"].present else ""


def given_settings() -> dict[str, object]:
    """Name -> value of each setting that a flag gives."""
    defined = FLAGS.flags_by_module_dict()
    return {
        field.name: FLAGS[field.name].value
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
    is_another_set = FLAGS["data_dir"].present and not FLAGS["parallel"].present
    if is_another_set:
        trained_on = trained_on.of_another_set()
    data = settings_from_flags(RunSettings(data=trained_on)).data
    if is_another_set:
        from tf_smoothclir.data.sources.opening import warn_of_left_out

        warn_of_left_out(data, [name for name in LANGUAGES if not FLAGS[name].present])
    return data


def _define(group: str, name: str, field: dataclasses.Field) -> flags.FlagHolder:
    if isinstance(field.default, bool):
        return flags.DEFINE_boolean(name, field.default, base.help_of(field), module_name=group)
    common = {"serializer": _Serializer(), "module_name": group}
    return flags.DEFINE(_Parser(field), name, field.default, _help(field), **common)


def _help(field: dataclasses.Field) -> str:
    """The help of a flag, after its choices."""
    choices = field.metadata["choices"]
    return f"<{'|'.join(choices)}>: {base.help_of(field)}" if choices else base.help_of(field)


class _Serializer(flags.ArgumentSerializer):
    def serialize(self, value) -> str:
        return base.value_text(value)


class _PathParser(flags.ArgumentParser):
    """Expands `~`, which the shell leaves in --flag=~/path."""

    def parse(self, argument: str) -> str:
        """The path, which may be a URL."""
        return local_path(argument)


class _Parser(flags.ArgumentParser):
    """Reads and checks the values of a setting, when plug-ins have brought their choices."""

    def __init__(self, field: dataclasses.Field):
        super().__init__()
        self._field = field
        self.syntactic_help = "" if isinstance(field.default, str) else base.kind_of(field)
        self.enum_values = field.metadata["choices"] or ()

    def parse(self, argument):
        """The value of a text."""
        try:
            value = base.typed(self._field, argument)
        except ValueError:
            raise ValueError(f"must be {base.kind_of(self._field)}") from None
        if wrong := base.refused(self._field, value):
            raise ValueError(wrong)
        return value
