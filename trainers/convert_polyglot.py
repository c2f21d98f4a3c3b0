"""Converts a Polyglot pickle into the .npz that training takes as initial word vectors.

The pickle is opened by an unpickler that knows nothing but NumPy arrays, so it cannot run code.
"""

from __future__ import annotations

from absl import flags

from tf_smoothclir.command_line import command

_INPUT = flags.DEFINE_string(
    "input", None, "Polyglot embeddings, a .pkl file.", required=True, module_name=command.COMMAND
)
_OUTPUT = flags.DEFINE_string(
    "output", None, "The .npz file to write.", required=True, module_name=command.COMMAND
)


def main(argv) -> None:
    """Converts as the flags say."""
    del argv
    from tf_smoothclir.text.polyglot import convert_polyglot

    words, dim = convert_polyglot(_INPUT.value, _OUTPUT.value)
    print(f"{_OUTPUT.value}: {words} words of dimension {dim}")


def run() -> None:
    """Entry point of `smoothclir-convert-polyglot`."""
    command.run_main(main, __doc__)


if __name__ == "__main__":
    run()
