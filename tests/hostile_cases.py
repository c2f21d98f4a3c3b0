"""Damages what the package reads, and checks that it reads it right or says what is wrong.

A case changes bytes of one file of a small token cache, checkpoint, retrieval set, list of words,
file of embeddings, pickle, request, or of a trained run, its export or its index, and reads it.
Right is: the answer of the undamaged files, one that the input allows (see each class), or an error
of the package in words. Wrong is any other exception, any other answer, and more than `SECONDS`.

    python -m tests.hostile_cases --cases=10000

runs `tests/test_hostile_cases.py` with so many cases; `--every=1` flips every byte of small files.
"""

import contextlib
import hashlib
import json
import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import tensorflow as tf
from absl import app, flags, logging

from tests.papers.liu2020 import test_polyglot as polyglot
from tests.small_world import SmallWorld
from tests.text import test_embeddings as embeddings
from tests.training import test_checkpoints as checkpoints
from tf_smoothclir import SmoothOrdinalSearchLoss, SoftmaxLoss
from tf_smoothclir._compat.keras_api import tf_weights
from tf_smoothclir.api import given, metrics, sets
from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.evaluation.trec import read_qrels, read_run
from tf_smoothclir.index import builder, document_collections, document_index
from tf_smoothclir.lexical.dictionary import Dictionary
from tf_smoothclir.papers.liu2020.polyglot import convert_polyglot
from tf_smoothclir.publishing import export_directory
from tf_smoothclir.search.query_files import read_queries
from tf_smoothclir.server.served_models import inputs_of, parse_request
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.storage.files import read_json
from tf_smoothclir.storage.folder import MANIFEST, files_below
from tf_smoothclir.text.new_vocabulary import given_vocabulary
from tf_smoothclir.training.checkpoints import BestWeights
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.saved_states import BEST, SavedStates
from tf_smoothclir.utils.errors import InputError

SECONDS = 20


def digest(*parts):
    """A digest of arrays and of what has a repr."""
    made = hashlib.sha256()
    for part in parts:
        made.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
    return made.hexdigest()


class Given:
    """Files that have no checksums: whatever can be read of them is an answer."""

    files: ClassVar[dict[str, str]] = {}

    def __init__(self, root):
        self.root = root
        for name, content in self.files.items():
            path = root / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(content, encoding="utf-8")

    def read(self):
        self.open(self.root)
        return digest()


class Sets(Given):
    files: ClassVar = {
        "beir/corpus.jsonl": '{"_id": "d1", "title": "L\'eau", "text": "un liquide"}\n'
        '{"_id": 2, "title": "", "text": "une pierre"}\n',
        "beir/queries.jsonl": '{"_id": "q0", "text": "water"}\n{"_id": "q1", "text": "a stone"}\n',
        "beir/qrels/test.tsv": "query-id\tcorpus-id\tscore\nq0\td1\t2\nq1\t2\t1\n",
        "tsv/documents.tsv": "d-1\tun liquide\nd-2\t\n",
        "tsv/queries.tsv": "q1\ta liquid\n",
        "tsv/judgments.tsv": "q1\td-1\t2\nq1\td-2\t0\n",
        "tsv/splits.tsv": "q1\ttest\n",
        "jsonl/documents.jsonl": '{"id": "d-1", "text": "un liquide", "language": "fr"}\n'
        '{"text": "", "id": "d-2"}\n',
        "jsonl/queries.jsonl": '{"id": "q1", "text": "a liquid"}\n',
        "jsonl/judgments.jsonl": '{"query_id": "q1", "document_id": "d-1", "grade": 2}\n',
        "pairs/pairs.csv": 'query,Document\na,"un\nliquide"\n"b ""c""",une pierre\n',
        "clicks/documents.csv": "id;text;title\n1;un liquide;\n2;une pierre;x\n",
        "clicks/clicks.tsv": "query\tdocument_id\tcount\na\t1\t3\nb\t2\t1\n",
        "wiki/wiki_en.queries": "1\ta\tb\n",
        "wiki/wiki_fr.documents": "1\ta\tb\n2\tc\td\n",
        "wiki/en2fr.rel": "1\t1\t2\n1\t2\t1\n",
        "wiki/wiki_de.documents": "1\ta\tb\n",
        "wiki/en2de.rel": "1\t1\t1\n",
    }

    def open(self, root):
        for layout in ("beir", "tsv", "jsonl", "pairs", "clicks", "wiki"):
            code = "" if layout == "wiki" else "fr"
            settings = DataSettings(data_dir=str(root / layout), document_language=code)
            RetrievalSet.load(source_of(settings))


class Lists(Given):
    files: ClassVar = {
        "queries.txt": "q1\ta red apple\nq2\tthe sea\n",
        "queries.jsonl": '{"_id": 1, "text": "a red apple"}\n{"id": "2", "query": "sea"}\n',
        "documents.tsv": "d1\tun\nd2\tdeux\n",
        "documents.jsonl": '{"id": "d1", "text": "un"}\n',
        "run.trec": "q1 Q0 d1 1 2.5 tag\nq1 Q0 d2 2 1.5 tag\n",
        "qrels.trec": "q1 0 d1 2\nq1 0 d2 0\n",
        "words.txt": "<UNK>\nthe\n####\nsea\n",
        "words.tsv": "sea\tmer\t0.5\nwater\teau\t0.25\n",
    }

    def open(self, root):
        for name in ("queries.txt", "queries.jsonl"):
            list(read_queries(root / name))
        for name in ("documents.tsv", "documents.jsonl"):
            list(document_collections.open_files(root / name, "--collection").documents())
        read_run(root / "run.trec")
        read_qrels(root / "qrels.trec")
        given_vocabulary(root / "words.txt", {b"1999": 3, b"sea": 2}, max_size=9, min_count=1)
        Dictionary.read(root / "words.tsv", "query-document")


class Python(Given):
    files: ClassVar = {
        "arguments.json": '[{"q1": "a red apple", "q2": "a"}, ["un", "deux"],'
        ' [["q1", "0", 2], ["q2", 1, 0]]]'
    }

    def open(self, root):
        try:
            parts = json.loads((root / "arguments.json").read_bytes())
        except (ValueError, RecursionError):
            return  # no Python object
        if isinstance(parts, list) and len(parts) == 3:
            queries, documents, judgments = parts
            named = {"queries": queries, "documents": documents, "judgments": judgments}
            given.texts_of(queries, "queries")
            given.texts_of(documents, "documents")
            given.judgments_of(judgments)
            RetrievalSet.load(sets.given_set("train", None, named, DataSettings()))


class Figures(Given):
    """Metrics are in 0..1, and a loss is the mean of the losses of its lists."""

    files: ClassVar = {
        "arguments.json": "[[[0, 2, 1], [1, 0, -1]], [[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]],"
        " [[true, true, true], [true, true, false]], [2.0, 0.5]]"
    }

    def open(self, root):
        try:
            lists = json.loads((root / "arguments.json").read_bytes())
            labels, scores, mask, weights = (np.array(part, np.float32) for part in lists)
        except (ValueError, TypeError, RecursionError, OverflowError):
            return  # no arguments that these calls could have
        shapes = {part.shape for part in (labels, scores, mask, np.outer(weights, labels[0]))}
        if len(shapes) > 1 or not ((np.abs(labels) < 3) & (np.abs(scores) < 1e6)).all():
            return
        labels = np.where(mask > 0, labels, -1)
        for metric in (metrics.NDCG(), metrics.MRR(), metrics.Precision()):
            assert 0 <= metric(labels, scores) <= 1 + 1e-6
        for loss in (SmoothOrdinalSearchLoss(reduction="sum"), SoftmaxLoss(reduction="sum")):
            lists = [loss(labels[[n]], scores[[n]], weights[[n]]) for n in range(len(labels))]
            whole = loss(labels, scores, weights).numpy()
            np.testing.assert_allclose(whole, np.sum(lists), rtol=1e-4, atol=1e-4)


class Request(Given):
    files: ClassVar = {
        "body": '{"instances": [{"text": "red", "k": "1"}, {"text": {"b64": "cmVk"}, "k": ""}]}'
    }

    def open(self, root):
        document = parse_request((root / "body").read_bytes())
        inputs_of(document, dict.fromkeys(("text", "k"), tf.TensorSpec([None], tf.string)))


def add_index(root: Path) -> None:
    """Adds `index` to a `run` and its `export` there, and deletes what nobody reads."""
    for name in ("logs", "plots", "evaluation"):
        shutil.rmtree(root / "run" / name, ignore_errors=True)
    for name in ("run/report.md", "run/flags.txt", "run/.training.lock"):
        (root / name).unlink(missing_ok=True)
    for path in (root / "export").iterdir():
        if path.is_file():
            path.unlink()  # the lock and the model card
    halves, manifest = builder.export_halves(root / "export")
    source = source_of(manifest.data)
    builder.build_index(root / "index", source, halves, manifest, data=manifest.data)


class Kept:
    """A part of `Kept.whole`, of which every byte counts; `open` checks all its files."""

    whole: Path  # with a run, its export and its index
    damaged = Path(MANIFEST)  # set for each case; nothing else is written while it is read

    def __init__(self, root):
        self.path = root / self.name
        shutil.copytree(self.whole / self.name, self.path)

    def read(self):
        # Lists of sizes and digests say nothing more: where one is damaged and another list of what
        # was written is as right, the files are.
        self.open(self.path)
        return digest(*map(self._content, files_below(self.path)))

    def _content(self, name):
        path = self.path / name
        if path.name == MANIFEST:  # of an unknown entry, nothing is read
            return name, self.manifest.read(path.parent) if self.manifest else ""
        if path.suffix == ".json":
            return name, read_json(path)
        return name, path.read_bytes()


class WholeRun(Kept):
    """A run with towers, words and perhaps a re-ranker."""

    name, manifest, open = "run", None, RunDirectory.load


class WholeExport(Kept):
    """Its export: towers, lexical model, re-ranker and search model.

    Each part is opened that reads the damaged file: all of them, if that is a manifest.
    """

    name, manifest = "export", export_directory.ExportManifest

    def open(self, path):
        for role in export_directory.DIRECTORIES:
            reads = (
                self.damaged.name == MANIFEST
                or export_directory.part_dir("", role).name in self.damaged.parts
            )
            if reads and export_directory.exported_versions(path, role):
                export_directory.checked_part(path, role)


class WholeIndex(Kept):
    name, manifest, open = "index", document_index.IndexManifest, document_index.DocumentIndex


TRAINED = (WholeRun, WholeExport, WholeIndex)


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


INPUTS = (TokenCache, States, Embeddings, Pickle, Sets, Lists, Python, Figures, Request)


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
