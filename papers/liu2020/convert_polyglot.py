"""Converts Polyglot word vectors into a text file that training can start from.

The pickle file cannot run code: the unpickler that reads it only knows NumPy arrays.
"""

from __future__ import annotations

from tf_smoothclir.command_line import command
from tf_smoothclir.command_line.setting_flags import define_path

_INPUT = define_path("input", None, "Polyglot word vectors, a .pkl file.", required=True)
_OUTPUT = define_path(
    "output",
    None,
    "The file to write, such as de.vec: a word and its numbers in each line.",
    required=True,
)
_WORDS = define_path(
    "words",
    None,
    "A text file to write the words to, for --query_vocabulary or --document_vocabulary of"
    " training.",
)


def main(argv) -> None:
    """Converts the file."""
    del argv
    from tf_smoothclir.papers.liu2020.polyglot import convert_polyglot

    words, dim = convert_polyglot(_INPUT.value, _OUTPUT.value, _WORDS.value)
    print(f"{_OUTPUT.value}: {words} words of dimension {dim}")


def run() -> None:
    """Entry point of `smoothclir-convert-polyglot`."""
    command.run_main(main, __doc__)


if __name__ == "__main__":
    run()
