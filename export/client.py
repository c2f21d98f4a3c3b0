"""Asks TensorFlow Serving, or smoothclir-serve, for answers of exported models.

encode prints vectors, search prints documents, status prints which versions are served. Texts are
arguments or, without arguments, lines of standard input.
"""

from __future__ import annotations

import os
import sys

from absl import flags

from tf_smoothclir.command_line import command
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.terminal import print_json

_OURS = {"module_name": command.COMMAND}
_SERVER = flags.DEFINE_string("server", "http://127.0.0.1:8501", "Its address.", **_OURS)
_ROLES = ["query", "document"]
_ROLE = flags.DEFINE_enum("role", "query", _ROLES, "The tower that encodes.", **_OURS)
_JSON = flags.DEFINE_boolean("json", False, "Print one JSON object per text.", **_OURS)
# Each is an argument of `ServingClient`.
_VERSION = flags.DEFINE_integer("version", 0, "Version of the models; 0: the latest.", 0, **_OURS)
_LABEL = flags.DEFINE_string("label", "", "Label of a version, such as canary.", **_OURS)
_TIMEOUT = flags.DEFINE_float("timeout", 10.0, "Seconds per request.", 0.001, **_OURS)
_BATCH_SIZE = flags.DEFINE_integer("batch_size", 256, "Texts per request.", 1, **_OURS)
_OPTIONS = (_VERSION, _LABEL, _TIMEOUT, _BATCH_SIZE)
_ARGUMENTS = "encode|search TEXT..., or status [MODEL...]"


def main(argv) -> None:
    """Runs the command that the arguments and flags give."""
    from tf_smoothclir.client.output import PRINTERS
    from tf_smoothclir.client.serving_client import ServingClient

    what, texts = argv[1] if len(argv) > 1 else "", [os.fsencode(text) for text in argv[2:]]
    if what not in PRINTERS:
        remedy = f"Give one of: {', '.join(PRINTERS)}"
        raise input_error(f"argument {what!r}", "there is no such command", remedy)
    if not texts and what != "status":
        texts = [line.rstrip(b"\r\n") for line in sys.stdin.buffer]
    options = {option.name: option.value for option in _OPTIONS}
    client = ServingClient(_SERVER.value, **options)
    for record, shown in PRINTERS[what](client, texts, role=_ROLE.value):
        if _JSON.value:
            print_json(record)
        else:
            print(shown)


def run() -> None:
    """Entry point of `smoothclir-client`."""
    command.run_main(main, __doc__, arguments=_ARGUMENTS)


if __name__ == "__main__":
    run()
