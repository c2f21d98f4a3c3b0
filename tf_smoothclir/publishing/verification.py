"""Runs written models in a fresh process, like a server, and compares with the trained ones."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from tf_smoothclir.encoder.description import DESCRIPTION
from tf_smoothclir.encoder.encoder import Encoder
from tf_smoothclir.utils.import_hooks import OFFERS_OF_KERAS

TOLERANCE = 1e-6  # of the larger of 1 and the number itself
_NUM_PROBES = 32
# Uses TensorFlow and nothing of this package. Each line of input is a directory and the requests to
# run there; the answers are printed when the input ends, as it also does when the parent is killed.
# Strings travel as Latin-1, which can decode any bytes. Garbage collection is off because it takes
# half a second during the import, and more at the end. Its arguments are libraries to hide.
_LOAD_AND_RUN = """
import gc
import json
import sys
gc.disable()
sys.modules.update(dict.fromkeys(sys.argv[1:]))
import tensorflow as tf

def decoded(rows):
    return [row.encode("latin-1") if isinstance(row, str) else row for row in rows]

def plain(values):
    return json.loads(json.dumps(values.numpy().tolist(), default=lambda b: b.decode("latin-1")))

answers = []
for line in sys.stdin:
    directory, requests = json.loads(line)
    signatures = tf.saved_model.load(directory).signatures
    answers.append({})
    for name, inputs in requests.items():
        tensors = {key: tf.constant(decoded(rows)) for key, rows in inputs.items()}
        outputs = signatures[name](**tensors)
        answers[-1][name] = {key: plain(value) for key, value in outputs.items()}
print(json.dumps(answers))
gc.freeze()
"""


class Verifier:
    """A process that imports TensorFlow, which takes seconds, and then waits for models."""

    # Importing this module does not import TensorFlow, so the process and its parent do it at the
    # same time.

    def __init__(self):
        # A file, because a full pipe that nobody reads yet would block the process.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._errors}
        # Like most servers; and the parent needs the memory of the GPU.
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}
        self._child = subprocess.Popen(
            [sys.executable, "-c", _LOAD_AND_RUN, *OFFERS_OF_KERAS],
            text=True,
            env=environment,
            **pipes,
        )
        self._sent: list[tuple[str, Any, Path, dict]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error) -> None:
        self._child.kill()
        self._child.communicate()
        self._errors.close()

    def send(self, role: str, part, directory: Path, texts: dict[str, Sequence[bytes]]) -> None:
        """Sends a written part to the process, to load it and run its signatures; does not wait."""
        requests = _requests(role, part, texts)
        line = json.dumps([str(directory), requests], default=lambda text: text.decode("latin-1"))
        with contextlib.suppress(BrokenPipeError):  # it has failed already: `compare` reports why
            print(line, file=self._child.stdin, flush=True)
        self._sent.append((role, part, directory, requests))

    def compare(self) -> None:
        """Compares with this process and, where possible, plain Python; once, at the end."""
        expected = [  # computed while the process works
            {name: _run(part.signatures[name], inputs) for name, inputs in requests.items()}
            for _, part, _, requests in self._sent
        ]
        answers, _ = self._child.communicate()
        if self._child.returncode:
            self._errors.seek(0)
            errors = self._errors.read().decode(errors="replace")
            raise RuntimeError(f"The written models do not load and run:\n{errors}")
        answered = json.loads(answers.splitlines()[-1])
        for (role, part, directory, requests), ours, theirs in zip(self._sent, expected, answered):
            for name in requests:
                _compare(f"The written {part.name}, {name},", ours[name], theirs[name])
            if (directory / DESCRIPTION).exists():
                texts = requests["serving_default"]["text"]
                vectors = Encoder.of_version(directory, role).encode(texts)
                name = f"The written {part.name} without TensorFlow"
                _compare(name, ours["serving_default"], {"vector": vectors})


def _requests(role: str, part, texts: dict[str, Sequence[bytes]]) -> dict[str, dict]:
    """Signature -> input name -> rows."""
    if role == "head":
        return part.requests
    # Servers also get empty texts and bytes that are not UTF-8.
    probes = {
        name: [b"", b"\xff", *(rows[i * len(rows) // _NUM_PROBES] for i in range(_NUM_PROBES))]
        for name, rows in texts.items()
    }
    if role == "search":
        return {"serving_default": {"text": probes["query"]}}
    if role == "reranker":
        return {"serving_default": probes}
    tokens = part.encoder(_array(probes[role]))
    return {
        "serving_default": {"text": probes[role]},
        "tokens": {"ids": tokens.ids.numpy().tolist(), "lengths": tokens.lengths.numpy().tolist()},
    }


def _compare(name: str, expected: dict[str, Any], answered: dict[str, Any]) -> None:
    for output, tensor in expected.items():
        if tensor.dtype.is_floating:
            difference = np.abs(np.array(answered[output], np.float64) - tensor)
            difference = (difference / np.maximum(1, np.abs(tensor))).max(initial=0)
            if not difference <= TOLERANCE:
                raise RuntimeError(f"{name} differs from the trained one by {difference}.")
    if "ids" in expected:
        # Neighbours with almost equal scores may swap places because of rounding.
        scores = expected["scores"].numpy()
        gaps = -np.diff(scores, axis=1) > 2 * TOLERANCE * np.maximum(1, np.abs(scores[:, 1:]))
        apart = np.pad(gaps, ((0, 0), (1, 0)), constant_values=True)
        apart &= np.pad(gaps, ((0, 0), (0, 1)), constant_values=False)
        ids = np.char.encode(np.array(answered["ids"]), "latin-1")
        if (ids != expected["ids"].numpy().astype(bytes))[apart].any():
            raise RuntimeError(f"{name} finds other documents than the trained one.")


def _run(signature, inputs: dict[str, list]) -> dict[str, Any]:
    """What a `tf.function` of `tf.TensorSpec`s answers."""
    # The graph that was saved: the first call of the function itself would trace another one.
    saved = signature.get_concrete_function()
    return saved(**{name: _array(rows) for name, rows in inputs.items()})


def _array(rows: list) -> np.ndarray:
    """`[rows]`, objects of type bytes or numbers; NumPy strings would drop NUL bytes."""
    return np.array(rows, {bytes: object, int: np.int32, list: np.float32}[type(rows[0])])
