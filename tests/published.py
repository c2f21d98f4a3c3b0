"""A trained tiny run, its published towers, and small towers that need no training."""

import contextlib
import functools
import random
import shutil

import pytest
import tensorflow as tf
from tensorflow import keras
from tensorflow.python.framework import op_def_registry

from tests.graphs import operations_in
from tests.server.local_server import local_server
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.protocols.text_search import CutPoints
from tf_smoothclir.publishing import version_writer
from tf_smoothclir.publishing.export import export_run
from tf_smoothclir.publishing.exported_search import Collection, build_search_model
from tf_smoothclir.publishing.exported_tower import ExportedTower
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.text import tokens, vocabulary
from tf_smoothclir.text.evidence import WordEvidence
from tf_smoothclir.towers.average_pooling import AveragePoolingTower
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import load_models
from tf_smoothclir.training.train import train

WORDS = {"query": ["red", "apple", "sea"], "document": ["roter", "apfel", "meer", "日"]}
DIM, EPSILON, THRESHOLDS, DEPTH, RERANKED_DEPTH = 3, 0.5, (0.2, 0.7), 4, 5
CUT_POINTS = CutPoints(scores=(0.2, 0.7), shares=(0.5, 0.9))
FACTS = {"dim": DIM, "epsilon": EPSILON, "thresholds": THRESHOLDS, "data": DataSettings()}
FACTS["cut_points"] = CUT_POINTS
# Of average pooling, beyond the paper; rare words have n-grams alone.
OPTIONS = {"ngram_buckets": 50, "min_count": 4}
OPTIONS |= {"token_weights": "learned", "position_weights": "learned"}
# Hazards that random texts have side by side.
PIECES = [b"", b" ", b"\t\r\n", b"\0", b"\x1b[31m", b"wordb", b"MOT2", b"red", b"?!", b"%s%n"]
PIECES += [b"\xff", b"\xc3", b"\xc0\x80", b"\xf5\x80\x80\x80", b"\xf0\x9f\x98", b"\xed\xbf\xbf"]
PIECES += map(str.encode, ("日本語", "ภาษาไทย", "яблоко", "\u0130I\u0131", "ß", "ﬁ", "e\u0301"))
PIECES += map(str.encode, "\u202eש\u202c\u2066\u200b\u200d\ufeff\u00ad👩\U0010ffff\ue000\u2028")


def _hostile_texts():
    yield from (b"", " \t\n\u00a0\u3000".encode(), b"red\0apple", "\u0301\u200b\u200d".encode())
    yield from (b"red apple " * 100_000, b"x" * 1_000_000, b"\0" * 1_000_000, b"\xff" * 1_000_000)
    generator = random.Random(20201)
    for _ in range(200):
        yield generator.randbytes(generator.randrange(200))
        points = (generator.randrange(0x110000) for _ in range(generator.randrange(100)))
        yield "".join(map(chr, points)).encode("utf-8", "surrogatepass")
        text = b"".join(generator.choices(PIECES, k=generator.randrange(30)))
        yield text[: generator.randrange(len(text) + 1)]


HOSTILE = list(_hostile_texts())


@pytest.fixture(scope="session")
def tiny_run(tiny, made_once):
    """A finished run on the tiny set; read-only."""
    settings = tiny(epochs=1, epsilon=EPSILON)
    return RunDirectory.load(made_once("tiny_run", lambda path: train(settings, path)))


@pytest.fixture(scope="session")
def export_dir(tiny_run, made_once):
    """The towers and the search model of `tiny_run`, version 1; read-only."""
    return made_once("export", lambda path: export_run(tiny_run, path, search_depth=DEPTH))


@pytest.fixture(scope="session")
def ranking_runs(tiny, tiny_run, made_once):
    """Name of a retriever -> a finished run on the tiny set; read-only."""
    runs = {"dense": tiny_run}
    for name in ("lexical", "hybrid"):
        path = made_once(f"{name}_run", functools.partial(train, tiny(retriever=name, epochs=1)))
        runs[name] = RunDirectory.load(path)
    return runs


@pytest.fixture(scope="session")
def ranking_exports(ranking_runs, export_dir, made_once):
    """Name of a retriever -> directory with version 1 of the export of its run; read-only.

    Those of `export_dir` and `reranked` alone are compared in a fresh process: it takes seconds.
    """
    exports, options = {"dense": export_dir}, {"search_depth": DEPTH, "verifier": NoVerifier()}
    for name in ("lexical", "hybrid"):
        make = functools.partial(export_run, ranking_runs[name], **options)
        exports[name] = made_once(f"{name}_export", make)
    return exports


@pytest.fixture(scope="session")
def reranked(tiny, made_once):
    """`(run, export)` of a lexical run whose re-ranker counts much; read-only."""

    def make(path):
        depth = RERANKED_DEPTH
        settings = tiny(retriever="lexical", reranker="late_interaction", rerank_depth=depth)
        train(settings, path / "run")
        run = RunDirectory.load(path / "run")
        reranker = load_models(run)["reranked"].chosen(weight=30.0)
        shutil.rmtree(run.reranker)
        with run.writing(run.reranker) as temporary:
            reranker.save(temporary)
        export_run(run, path / "export", search_depth=depth)

    path = made_once("reranked", make)
    return RunDirectory.load(path / "run"), path / "export"


def small_tower(directory, role, seed=0, words=None, max_tokens=5):
    """An exported tower with random vectors for words; writes its vocabulary to `directory`."""
    words = words or WORDS[role]
    vocabulary.write_vocabulary(directory / f"{role}.txt", ["[PAD]", "[UNK]", *words])
    normal = keras.initializers.RandomNormal(stddev=1.0, seed=seed)
    tower = AveragePoolingTower(2 + len(words), DIM, embeddings_initializer=normal)
    tower.build()
    encoder = tokens.TextEncoder(directory / f"{role}.txt", max_tokens)
    evidence = WordEvidence(encoder) if role == "query" else None
    return ExportedTower(tower, encoder, epsilon=EPSILON, name=f"{role}_tower", evidence=evidence)


class NoVerifier(contextlib.nullcontext):
    """Skips the comparison in a fresh process, which takes seconds."""

    def __enter__(self):
        return self

    def send(self, *arguments):
        pass

    def compare(self):
        pass


@pytest.fixture
def no_child_process(monkeypatch):
    monkeypatch.setattr(version_writer, "Verifier", NoVerifier)


def publish_small(vocabulary_dir, path, seed=0, verifier=None):
    """Publishes both small towers and their search model; returns the version."""
    parts = {role: small_tower(vocabulary_dir, role, seed) for role in ROLES}
    documents = [*WORDS["document"], ""]
    vectors = encode(parts["document"].serve, documents)
    collection = Collection.of([f"id of {document}" for document in documents], {"dense": vectors})
    options = {"cut_points": CUT_POINTS, "depth": DEPTH}
    parts["search"] = build_search_model(collection, {"dense": parts["query"]}, None, **options)
    texts = {role: [*map(str.encode, WORDS[role])] for role in ROLES}
    return version_writer.publish_version(parts, path, FACTS, texts, verifier)


@pytest.fixture(scope="session")
def export(tmp_path_factory):
    """What `publish_small` publishes; read-only."""
    path = tmp_path_factory.mktemp("export")
    publish_small(tmp_path_factory.mktemp("vocabulary"), path, verifier=NoVerifier())
    return path


@pytest.fixture(scope="module")
def server(export):
    """The address of a server of what `publish_small` publishes."""
    with local_server(export) as address:
        yield address


@pytest.fixture(scope="session")
def towers(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary")
    return {role: small_tower(path, role) for role in ROLES}


def grades_of_hits(scores, cut_points, factor=1.0):
    """The grades of one ranking, best first: by the score and by its share of the first one."""
    first = max(scores[0], 0)
    shares = [score / first if first else 0 for score in scores]
    return [
        min(sum(score > cut for cut in own) for score, own in zip(pair, cut_points))
        for pair in zip([score * factor for score in scores], shares)
    ]


def encode(signature, texts):
    """Vectors of texts by a loaded signature, or by that of a loaded tower."""
    signature = getattr(signature, "signatures", {}).get("serving_default", signature)
    return signature(text=tf.constant(texts, tf.string))["vector"].numpy()


def undesired_operations(model):
    """Operations of the signatures of a model that a stock server does not have."""
    operations = set()
    for signature in model.signatures.values():
        operations |= operations_in(signature.graph)
    assert operations
    # Also registered, but these work only inside a Python process.
    python = {name for name in operations if "PyFunc" in name}
    return python | {name for name in operations if op_def_registry.get(name) is None}


def described(model):
    """Signature -> its inputs and its outputs, name -> type and shape, of a loaded model."""
    return {
        name: tuple(
            {key: (spec.dtype, spec.shape.as_list()) for key, spec in specs.items()}
            for specs in (function.structured_input_signature[1], function.structured_outputs)
        )
        for name, function in model.signatures.items()
    }
