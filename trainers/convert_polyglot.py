"""Converts a Polyglot pickle into the `.npz` that training takes as initial embeddings.

python -m trainers.convert_polyglot --input=polyglot-fr.pkl --output=polyglot-fr.npz
"""

import sys

from absl import app, flags

from tf_smoothclir.errors import InputError
from tf_smoothclir.text.polyglot import convert_polyglot

_INPUT = flags.DEFINE_string("input", None, "Polyglot embeddings, a .pkl file.", required=True)
_OUTPUT = flags.DEFINE_string("output", None, "The .npz file to write.", required=True)


def main(argv):
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {' '.join(argv[1:])}")
    try:
        words, dim = convert_polyglot(_INPUT.value, _OUTPUT.value)
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    print(f"{_OUTPUT.value}: {words} words of dimension {dim}")


def run():
    """Entry point of `smoothclir-convert-polyglot`."""
    app.run(main)


if __name__ == "__main__":
    run()
