"""Asks TensorFlow Serving, or smoothclir-serve, for answers of exported models.

encode prints vectors, search prints documents, score prints the score and grade of a query and a
document, status prints which versions are served. Texts are arguments or, without arguments, lines
of standard input. For score, give a query and a document in turn, or with a tab between them.
"""

from __future__ import annotations

import json
import os
import sys

from absl import flags

from tf_smoothclir.command_line import command
from tf_smoothclir.utils.errors import input_error

_SERVER = flags.DEFINE_string(
    "server",
    "127.0.0.1:8500",
    "host:port for gRPC, or http://host:port for REST (default ports: 8500 and 8501).",
    module_name=command.COMMAND,
)
_ROLE = flags.DEFINE_enum(
    "role",
    "query",
    ["query", "document"],
    "The tower that encodes.",
    module_name=command.COMMAND,
)
_VERSION = flags.DEFINE_integer(
    "version",
    0,
    "Version of the models; 0: the latest.",
    lower_bound=0,
    module_name=command.COMMAND,
)
_LABEL = flags.DEFINE_string(
    "label", "", "Label of a version, such as stable or canary.", module_name=command.COMMAND
)
_TIMEOUT = flags.DEFINE_float(
    "timeout", 10.0, "Seconds per request.", lower_bound=0.001, module_name=command.COMMAND
)
_RETRIES = flags.DEFINE_integer(
    "retries",
    3,
    "Further attempts at a request that reaches no server, after growing waits.",
    lower_bound=0,
    module_name=command.COMMAND,
)
_BATCH_SIZE = flags.DEFINE_integer(
    "batch_size", 256, "Texts per request.", lower_bound=1, module_name=command.COMMAND
)
_JSON = flags.DEFINE_boolean(
    "json", False, "Print one JSON object per text.", module_name=command.COMMAND
)
_COMMANDS = ("encode", "search", "score", "status")
_ARGUMENTS = "encode|search TEXT..., score QUERY DOCUMENT..., or status [MODEL...]"


def main(argv) -> None:
    """Runs the command that the arguments and flags give."""
    from tf_smoothclir.client.output import PRINTERS
    from tf_smoothclir.client.serving_client import ServingClient

    what, texts = argv[1] if len(argv) > 1 else "", [os.fsencode(text) for text in argv[2:]]
    if what not in _COMMANDS:
        raise input_error(
            f"argument {what!r}", "there is no such command", f"Give one of: {', '.join(_COMMANDS)}"
        )
    if not texts and what != "status":
        texts = [line.rstrip(b"\r\n") for line in sys.stdin.buffer]
    with ServingClient(
        _SERVER.value,
        timeout=_TIMEOUT.value,
        retries=_RETRIES.value,
        batch_size=_BATCH_SIZE.value,
        version=_VERSION.value,
        label=_LABEL.value,
    ) as client:
        for record, shown in PRINTERS[what](client, texts, role=_ROLE.value):
            print(json.dumps(record, ensure_ascii=False) if _JSON.value else shown)


def run() -> None:
    """Entry point of `smoothclir-client`."""
    command.run_main(main, __doc__, arguments=_ARGUMENTS)


if __name__ == "__main__":
    run()
