"""Running a command: flags, `--help`, quiet logs, and errors without a stack trace."""

import dataclasses
import gc
import logging as standard_logging
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from absl import app, flags, logging

from tf_smoothclir import plugins
from tf_smoothclir._compat.quiet import hush_tensorflow
from tf_smoothclir.command_line.setting_flags import COMMAND, define_plugin, load_plugins
from tf_smoothclir.settings.base import LEAVE_OUT, Rule
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError, is_full_disk, name_flags
from tf_smoothclir.utils.import_hooks import OFFERS_OF_KERAS, around_import, hiding
from tf_smoothclir.utils.printing import print_any_text, visible_lines

_PLACE_IN_GRAPH = re.compile(r"{{.*?}} | \[Op:\w+\].*")
_DATA = [field.name for field in dataclasses.fields(DataSettings)]
_DATA = [name for name in _DATA if name not in ("cache_dir", "columns")]
_OF_ENGINES = ("uri", "engine_collection")
_OF_NEW_ONES = ("index_type", "overwrite")
_ON_DISK = "an engine keeps the collection, no directory does"
_CHANGES_A_COLLECTION = "documents are added to and removed from the collection as it is"


def run_main(
    main: Callable, description: str, groups: Sequence[str] = (), *, arguments: str = ""
) -> None:
    """Runs a command: parses and checks its flags, calls `main`, reports users' mistakes."""
    name_flags()
    hush_tensorflow()
    around_import("tensorflow", lambda: hiding(*OFFERS_OF_KERAS))
    # With oneDNN, TensorFlow keeps all memory that it ever had; our graphs are no faster by it.
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    define_plugin()
    try:
        groups = load_plugins(sys.argv[1:], groups)
    except InputError as error:
        _end(error)
    print_any_text()
    if any(argument in ("--help", "-h", "-help") for argument in sys.argv[1:]):
        try:
            print(_help(description, groups, arguments), flush=True)
        except BrokenPipeError:
            _end_for_closed_pipe()
        return
    logging.use_absl_handler()
    handler = logging.get_absl_handler().python_handler
    handler.setFormatter(_Formatter())
    handler.addFilter(_is_ours_or_a_warning)
    app.run(lambda argv: _guarded(main, argv, arguments))


def restart(*more: str) -> NoReturn:
    """Replaces this process by a new one that runs the same command."""
    logging.flush()
    module = sys.modules["__main__"].__spec__
    program = ["-m", module.name] if module else [sys.argv[0]]
    os.execv(sys.executable, [sys.executable, *program, *sys.argv[1:], *more])


def _help(description: str, groups: Sequence[str], arguments: str) -> str:
    parts = [description.strip() + "\n"]
    if arguments:
        parts.append(f"Arguments: {arguments}\n")
    parts += map(flags.FLAGS.module_help, (COMMAND, *groups))
    parts.append("All flags of all libraries: --helpfull. Less output: --verbosity=-1.")
    return "\n".join(parts)


def _end_for_closed_pipe() -> NoReturn:
    """Exits as programs do whose reader, such as `head`, has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(128 + signal.SIGPIPE)


def _end_for_full_disk(message: str) -> NoReturn:
    _end(
        f"{message}. Free some space, then give the same command again: everything saved so far is"
        " kept."
    )


def _end(error: object) -> NoReturn:
    sys.exit(visible_lines(f"error: {error}"))


class _Formatter(standard_logging.Formatter):
    """Messages alone, without the control characters of the names in them."""

    def format(self, record: standard_logging.LogRecord) -> str:
        return visible_lines(super().format(record))


def _is_ours_or_a_warning(record: standard_logging.LogRecord) -> bool:
    """Whether to log a record: of other libraries than plug-ins, only warnings and errors."""
    ours = ("tf_smoothclir.", *plugins.loaded())  # by module: papers and extras lie elsewhere
    return record.levelno >= standard_logging.WARNING or any(
        getattr(module, "__file__", "") == record.pathname
        for name, module in list(sys.modules.items())
        if name.startswith(ours)
    )


def _guarded(main: Callable, argv: Sequence[str], arguments: str) -> None:
    """Calls `main`; exits with a message on a user's mistake, Ctrl-C or a full disk."""
    if len(argv) > 1 and not arguments:
        raise app.UsageError(f"Unknown argument {argv[1]!r}; flags begin with --.")
    try:
        check_flags()
        main(argv)
    except InputError as error:
        logging.flush()
        if is_full_disk(error.__cause__):  # whose remedy is another one
            _end_for_full_disk(str(error.__cause__))
        _end(error)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except BrokenPipeError:
        _end_for_closed_pipe()
    except Exception as error:  # TensorFlow's own errors are no OSError
        if not is_full_disk(error):
            raise
        logging.flush()
        _end_for_full_disk(_PLACE_IN_GRAPH.sub("", str(error)))
    finally:
        # Otherwise Python searches all of TensorFlow's objects for garbage before it exits.
        gc.freeze()


def _not_beside(name: str, others, reason: str) -> tuple[Rule, ...]:
    """Rules that refuse each of some flags where `name` is given."""
    return tuple(
        Rule(lambda *given: None not in given, reason, LEAVE_OUT, (name, other)) for other in others
    )


def _needs(name: str, other: str, reason: str) -> Rule:
    """A rule that refuses a flag without another one."""
    return Rule(
        lambda value, needed: value is not None and needed is None,
        reason,
        f"Give --{other} too, or leave --{name} out",
        (name, other),
    )


FLAG_RULES = (
    # smoothclir-search
    *_not_beside("queries", ["query"], "both give the queries"),
    *_not_beside("trec_run", ["json", "explain"], "a TREC run holds ids and scores only"),
    # smoothclir-index
    *_not_beside("add", ["collection", *_OF_NEW_ONES, *_DATA], _CHANGES_A_COLLECTION),
    *_not_beside("remove", ["collection", *_OF_NEW_ONES, *_DATA], _CHANGES_A_COLLECTION),
    *_not_beside("update", ["overwrite"], "the one keeps what has not changed, the other nothing"),
    *_not_beside("update", ["engine"], "an engine takes changes by --add and --remove"),
    *_not_beside("collection", _DATA, "both name the documents to index"),
    *_not_beside("collection", ["search_model"], "the search model holds the collection"),
    # smoothclir-serve
    *(_needs(name, "ui", "the page alone searches by it") for name in ("filter", "retriever")),
    # engines
    *_not_beside("engine", ["index_dir"], _ON_DISK),
    _needs("engine", "uri", "an engine has an address"),
    *(_needs(name, "engine", "it is about an engine") for name in _OF_ENGINES),
    *(
        _needs(name, "engine", "an index on disk takes a whole collection, by --update")
        for name in ("add", "remove")
    ),
)


def check_flags(given: flags.FlagValues = flags.FLAGS) -> None:
    """Checks the flags of a command."""
    values = {
        name: given[name].value if given[name].value != given[name].default else None
        for name in given
    }
    for rule in FLAG_RULES:
        if rule.breaks(values):
            raise rule.error(values)
