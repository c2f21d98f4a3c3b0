"""Damages what the package reads, and checks that it reads it right or says what is wrong.

A case changes bytes of one file of a small token cache, checkpoint, retrieval set, list of words,
file of embeddings, pickle, request, or of a trained run, its export or its index, and reads it.
Right is: the answer of the undamaged files, one that the input allows (see each class), or an error
of the package in words. Wrong is any other exception, any other answer, and more than `SECONDS`.

    python -m tests.hostile_cases --cases=10000

runs `tests/test_hostile_cases.py` with so many cases; `--every=1` flips every byte of small files.
"""

import contextlib
import os
import signal
import tempfile
from pathlib import Path

import numpy as np
import pytest
from absl import app, flags, logging

from tests.hostile_inputs import GIVEN, TRAINED, digest
from tests.papers.liu2020 import test_polyglot as polyglot
from tests.small_world import SmallWorld
from tests.text import test_embeddings as embeddings
from tests.training import test_checkpoints as checkpoints
from tf_smoothclir._compat.keras_api import tf_weights
from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.papers.liu2020.polyglot import convert_polyglot
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.training.checkpoints import BestWeights
from tf_smoothclir.training.saved_states import BEST, SavedStates
from tf_smoothclir.utils.errors import InputError

SECONDS = 20


class TokenCache:
    """A token store and its vocabularies; damage is mended."""

    def __init__(self, root):
        self.root, self.set = root, RetrievalSet.load(SmallWorld())
        self.read()

    def read(self):
        found = tokenize_set(self.set, TextSettings(), self.root)
        stores = [found.tokens(role) for role in ("query", "document")]
        words = [found.vocabulary(role) for role in ("query", "document")]
        return digest(*(part for s in stores for part in (s.offsets, np.asarray(s.values))), words)


class States:
    """The checkpoints of a run: the state before is an answer too."""

    def __init__(self, root):
        self.root = root
        checkpoints.saved_twice(root / "checkpoints")
        self.model = checkpoints.make_model()
        self.allowed = {self._of(epoch) for epoch in (1, 2)}

    def _of(self, epoch):
        model = checkpoints.make_model()
        for _ in range(epoch - 1):
            checkpoints.shift(model)
        return digest(epoch, *checkpoints.state(model))

    def read(self):
        directory = self.root / "checkpoints"
        progress = checkpoints.checkpoints_of(directory, self.model).restore()
        answer = digest(progress.epoch, *checkpoints.state(self.model))
        best = SavedStates(directory, BEST)
        with contextlib.suppress(InputError):
            best.checked(best.latest())
            BestWeights(directory, tf_weights(self.model)).restore()
        return answer


class Embeddings:
    """Files of embeddings, without checksums: any finite matrix of the same shape is an answer."""

    def __init__(self, root):
        self.paths = []
        for write in (embeddings.write_word2vec, embeddings.write_glove):
            self.paths.append(root / write.__name__)
            write(self.paths[-1])

    def read(self):
        found = [embeddings.load(path).matrix for path in self.paths]
        return digest([(matrix.shape, bool(np.isfinite(matrix).all())) for matrix in found])


class Pickle:
    """A Polyglot pickle: any words and vectors are an answer, an endless one is not."""

    def __init__(self, root):
        self.root = root
        words, rows = map(polyglot.py2_unicode, polyglot.WORDS), polyglot.py2_array(polyglot.ROWS)
        (root / "in.pkl").write_bytes(polyglot.py2_polyglot([*words], rows))

    def read(self):
        with tempfile.TemporaryDirectory() as directory:
            made = [Path(directory, name) for name in ("out.vec", "words.txt")]
            convert_polyglot(self.root / "in.pkl", *made)
        return digest()


INPUTS = (TokenCache, States, Embeddings, Pickle, *GIVEN)


class Case:
    def __init__(self, kind, root):
        root.mkdir()
        self.name, self.input = kind.__name__, kind(root)
        self.files = {path: path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
        self.allowed = {self.input.read(), *getattr(self.input, "allowed", ())}

    def try_with(self, path, content):
        """Returns "answer" or "error", or raises what should not have been."""
        path.write_bytes(content)
        self.input.damaged = path
        signal.alarm(SECONDS)
        try:
            answer = self.input.read()
        except InputError:
            return "error"
        finally:
            signal.alarm(0)
            self._restore(path)
        if answer not in self.allowed:
            raise AssertionError("another answer")
        return "answer"

    def _restore(self, damaged):
        writes = not isinstance(self.input, TRAINED)  # such as a token cache, which mends itself
        for path, content in self.files.items() if writes else [(damaged, self.files[damaged])]:
            if not path.is_file() or path.read_bytes() != content:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)


def damaged(content, random):
    """Some bytes flipped, cut, doubled, replaced or inserted."""
    content, kind = bytearray(content), random.integers(6)
    place = int(random.integers(len(content) + 1))
    end = min(len(content), place + int(random.integers(1, 40)))
    if kind == 0 and place < len(content):
        content[place] ^= 1 << int(random.integers(8))
    elif kind == 1:
        del content[place:]
    elif kind == 2:
        del content[place:end]
    elif kind == 3:
        content[place:place] = content[place:end]
    elif kind == 4:
        content[place:end] = random.bytes(end - place)
    else:
        tokens = (b"\0", b"\n", b"[" * 200, b"-1", b"1e999", b"\xff", b"9" * 30, b'"', b"null")
        content[place:place] = tokens[int(random.integers(len(tokens)))]
    return bytes(content)


def drawn(cases, number, seed):
    """Yields (case, file, content) of damage drawn by a seed."""
    random = np.random.default_rng(seed)
    for _ in range(number):
        case = cases[int(random.integers(len(cases)))]
        path = list(case.files)[int(random.integers(len(case.files)))]
        yield case, path, damaged(case.files[path], random)


def every_byte(cases):
    """Yields (case, file, content) for each byte of each file, its lowest bit flipped."""
    for case in cases:
        for path, content in case.files.items():
            for place, byte in enumerate(content):
                yield case, path, content[:place] + bytes([byte ^ 1]) + content[place + 1 :]


def run(root, attempts):
    """Tries all; returns name -> outcome -> number, and the failures in words."""
    counts, failures = {}, []
    verbosity, handler = logging.get_verbosity(), signal.signal(signal.SIGALRM, _too_long)
    logging.set_verbosity(logging.ERROR)
    for number, (case, path, content) in enumerate(attempts):
        try:
            outcome = case.try_with(path, content)
        except Exception as error:
            outcome = "WRONG"
            place = f"case {number}, {case.name}, {path.relative_to(root)}"
            failures.append(f"{place}: {type(error).__name__}: {str(error)[:200]}")
        of_name = counts.setdefault(case.name, {})
        of_name[outcome] = of_name.get(outcome, 0) + 1
    logging.set_verbosity(verbosity)
    signal.signal(signal.SIGALRM, handler)
    return counts, failures


def make_cases(root, kinds):
    return [Case(kind, root / kind.__name__) for kind in kinds]


def _too_long(*_):
    raise TimeoutError(f"more than {SECONDS} seconds")


def main(_) -> None:
    numbers = ("cases", "seed", "every")
    os.environ |= {f"HOSTILE_{name.upper()}": str(flags.FLAGS[name].value) for name in numbers}
    raise SystemExit(pytest.main(["-q", "tests/test_hostile_cases.py"]))


if __name__ == "__main__":
    flags.DEFINE_integer("cases", 200, "How many are drawn.", lower_bound=1)
    flags.DEFINE_integer("seed", 7, "Draws other cases.")
    flags.DEFINE_integer("every", 30, "Flips every byte (1), every tenth (10), ...", lower_bound=1)
    app.run(main)
