"""Serving: from one query string to its top ten documents, in the process and by REST.

python -m benchmarks.serving
"""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent import futures
from functools import partial
from pathlib import Path

import numpy as np
from absl import flags

from benchmarks import common
from benchmarks.encoding import texts, words
from benchmarks.workload import FIRST_TOKEN, ZIPF, Workload, two_tower, zipf_ranks
from tf_smoothclir.data.tokenized_set import ROLES

_QUERY_TOKENS, _MAX_TOKENS = 17, 200
_TRANSLATIONS, _FEEDBACK = 9, 100.0
_LEAD_IN = 10  # answers that are not counted
_PATIENCE = 30.0  # seconds
_TF_SERVING = "tensorflow_model_server"
OURS = "smoothclir-serve"


def export(
    directory: str, retriever: str, documents: int, dim: int, vocabulary: int
) -> dict[str, float]:
    """Exports random models and a search model over random vectors and texts of random words."""
    from tf_smoothclir.protocols.text_search import CutPoints
    from tf_smoothclir.publishing.exported_models import ExportedFiles
    from tf_smoothclir.publishing.exported_search import Collection, build_search_model
    from tf_smoothclir.publishing.exported_tower import ExportedTower
    from tf_smoothclir.publishing.version_writer import publish_version
    from tf_smoothclir.settings.data import DataSettings
    from tf_smoothclir.text.evidence import WordEvidence
    from tf_smoothclir.text.tokens import TextEncoder
    from tf_smoothclir.text.vocabulary import PADDING, UNKNOWN, write_vocabulary

    known = words(vocabulary)
    for role in ROLES:
        write_vocabulary(Path(directory, f"{role}.txt"), [PADDING, UNKNOWN, ",", *known])
    generator, size = np.random.default_rng(13), len(known) + 3
    collection, parts, towers, lexical = {"vectors": {}}, {}, {}, None
    if retriever != "lexical":
        workload = Workload(vocabulary=size, dim=dim)
        model = two_tower(workload, workload.settings())
        for role in ROLES:
            tower, name = getattr(model, f"{role}_tower"), f"{role}_tower"
            encoder = TextEncoder(Path(directory, f"{role}.txt"), _MAX_TOKENS)
            own = {"epsilon": 1.0, "evidence": WordEvidence(encoder)}
            towers[role] = ExportedTower(tower, encoder, name=name, **own)
        vectors = generator.normal(0, 0.05, (documents, dim))
        collection["vectors"] = {"dense": vectors.astype(np.float32)}
    if retriever != "dense":
        lexical = _lexical_parts(directory, size, with_towers=bool(towers))
        parts["lexical"] = ExportedFiles(lexical.save)
        collection["words"] = _words(generator, documents, size)
    cut_points = CutPoints((0.2, 0.7), ())
    search = build_search_model(
        Collection.of([f"d{row}" for row in range(documents)], **collection),
        {"dense": towers["query"]} if towers else {},
        lexical,
        cut_points=cut_points,
        depth=10,
    )
    probes = [text.encode() for text in texts(64, _QUERY_TOKENS, known)]
    facts = {"dim": dim, "epsilon": 1.0, "thresholds": (0.2, 0.7), "data": DataSettings()}
    facts["cut_points"] = cut_points
    begin = time.perf_counter()
    publish_version(
        {**parts, **towers, "search": search}, directory, facts, dict.fromkeys(ROLES, probes)
    )
    return {"s": time.perf_counter() - begin}


def _lexical_parts(directory: str, size: int, *, with_towers: bool):
    """A lexical model of random translations, as many as on mdn-en-de, and feedback.

    Words translate into words of about their frequency.
    """
    import scipy.sparse as sp

    from tf_smoothclir.hybrid.fusion import Fusion
    from tf_smoothclir.lexical.model import LexicalModel
    from tf_smoothclir.lexical.words import FLAT, PositionProfile
    from tf_smoothclir.publishing.exported_lexical import LexicalParts
    from tf_smoothclir.settings.text import TextSettings

    generator, known = np.random.default_rng(7), np.arange(FIRST_TOKEN, size)
    rows = np.repeat(known, _TRANSLATIONS)
    columns = (
        (rows * np.exp(generator.normal(0, 1, len(rows)))).astype(int).clip(FIRST_TOKEN, size - 1)
    )
    shares = generator.dirichlet(np.ones(_TRANSLATIONS), len(known)).ravel()
    background = np.zeros(2 * size)
    background[FIRST_TOKEN:size] = (1.0 + np.arange(len(known))) ** -ZIPF
    background = np.maximum(background / background.sum(), 1e-8).astype(np.float32)
    weights = generator.uniform(0.1, 0.4, (2, 2 * size)).astype(np.float32)
    table = sp.csr_array((shares.astype(np.float32), (rows, columns)), shape=(size, 2 * size))
    fields = (PositionProfile(100.0, 15.0), FLAT)
    none = sp.csr_array(table.shape, dtype=np.float32)
    arrays = {"table": table, "lookalikes": none, "background": background, "weights": weights}
    arrays |= {"evidence": np.ones(size, np.float32), "counts": 1e6 * background}
    model = LexicalModel(fields, feedback=_FEEDBACK, **arrays)
    fusion = Fusion(0.3, 5.0, 0.1, _FEEDBACK) if with_towers else None
    text = TextSettings(max_query_tokens=_MAX_TOKENS, max_document_tokens=_MAX_TOKENS)
    return LexicalParts(model, Path(directory), text, fusion)


def _words(generator: np.random.Generator, documents: int, size: int):
    """Documents of 100 to 200 words by their ids."""
    from tf_smoothclir.lexical.words import Words

    offsets = np.cumsum([0, *generator.integers(100, 201, documents)])
    ids = FIRST_TOKEN + zipf_ranks(generator, offsets[-1], size - FIRST_TOKEN)
    return Words(ids.astype(np.int32), offsets, size)


def process(directory: str, seconds: float, queries: list[str]) -> dict[str, float]:
    """Asks the model in this process, one query after the other."""
    import tensorflow as tf

    from tf_smoothclir.publishing.export_directory import load_part

    model = load_part(directory, "search").model
    search = model.signatures["serving_default"]

    def ask(query: str) -> None:
        search(text=tf.constant([query]))["ids"].numpy()

    return _measured([ask], seconds, queries)


def served(
    kind: str, directory: str, clients: int, seconds: float, queries: list[str]
) -> dict[str, float]:
    """Asks a server by clients that wait for each answer, each on its own connection."""
    with server(kind, directory) as address, contextlib.ExitStack() as stack:

        def client() -> Callable[[str], None]:
            connection = http.client.HTTPConnection(address, timeout=_PATIENCE)
            stack.callback(connection.close)

            def ask(query: str) -> None:
                body = json.dumps({"instances": [query]})
                connection.request("POST", "/v1/models/search:predict", body)
                with connection.getresponse() as response:
                    if response.status != 200 or "predictions" not in json.load(response):
                        raise RuntimeError(f"{query!r}: HTTP status {response.status}")

            return ask

        return _measured([client() for _ in range(clients)], seconds, queries)


@contextlib.contextmanager
def server(kind: str, directory: str):
    """Runs a server of the search model; yields its address."""
    if kind == OURS:
        command = [sys.executable, "-m", "export.serve", f"--export_dir={directory}"]
        command += ["--port=0", "--verbosity=-1"]
    else:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        command = [_TF_SERVING, f"--rest_api_port={port}", "--model_name=search"]
        command += [f"--model_base_path={directory}/search"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            if kind == OURS:
                address = child.stdout.readline().strip().removeprefix("http://")
            else:
                address = f"127.0.0.1:{port}"
                _wait_for(address)
            yield address
        finally:
            child.terminate()


def _wait_for(address: str) -> None:
    end = time.monotonic() + _PATIENCE
    while True:
        with contextlib.closing(http.client.HTTPConnection(address)) as connection:
            try:
                connection.request("GET", "/v1/models/search")
                if connection.getresponse().status == 200:
                    return
            except OSError:
                pass
        if time.monotonic() > end:
            raise RuntimeError(f"{address} did not answer for {_PATIENCE:g} s")
        time.sleep(0.1)


def _measured(
    clients: Sequence[Callable[[str], None]], seconds: float, queries: list[str]
) -> dict[str, float]:
    """Runs clients at the same time; some answers before that are not counted."""

    def loop(number: int) -> list[float]:
        latencies: list[float] = []
        while (begin := time.perf_counter()) < end:
            clients[number](queries[(number + len(latencies)) % len(queries)])
            latencies.append(time.perf_counter() - begin)
        return latencies

    for query in queries[:_LEAD_IN]:
        clients[0](query)
    end = time.perf_counter() + seconds
    with futures.ThreadPoolExecutor(len(clients)) as pool:
        latencies = [latency for some in pool.map(loop, range(len(clients))) for latency in some]
    p50, p90, p99 = np.percentile(1000 * np.array(latencies or [np.nan]), [50, 90, 99])
    return {"p50 ms": p50, "p90 ms": p90, "p99 ms": p99, "answers/s": len(latencies) / seconds}


def measure(
    *,
    retriever: str = "dense",
    documents: int,
    dim: int,
    vocabulary: int,
    seconds: float,
    clients: int,
    rounds: int,
) -> list[dict]:
    """One table: the model in a process, and servers with one and with many clients."""
    queries = texts(512, _QUERY_TOKENS, words(vocabulary))
    kinds = [OURS] + ([_TF_SERVING] if shutil.which(_TF_SERVING) else [])
    with tempfile.TemporaryDirectory() as directory:
        common.in_new_process(partial(export, directory, retriever, documents, dim, vocabulary))
        rivals = {"in the process": partial(process, directory, seconds, queries)} | {
            f"{kind}, {number} client{'s' * (number > 1)}": partial(
                served, kind, directory, number, seconds, queries
            )
            for kind in kinds
            for number in dict.fromkeys((1, clients))
        }
        size = f"{retriever}, top 10 of {documents:,}" + f" x {dim}" * (retriever != "lexical")
        measured = common.interleaved(rivals, rounds)
        return [common.table(size, measured, ratio_of="answers/s", references=["in the process"])]


def _define_flags() -> None:
    flags.DEFINE_enum(
        "retriever", "dense", ["dense", "lexical", "hybrid"], "What the search model ranks with."
    )
    flags.DEFINE_integer("documents", 100_000, "Documents in the search model.", lower_bound=10)
    flags.DEFINE_integer("dim", 64, "Dimension of the vectors.", lower_bound=1)
    flags.DEFINE_integer("vocabulary", 100_000, "Number of different words.", lower_bound=100)
    flags.DEFINE_float("seconds", 10.0, "Duration of each measurement.", lower_bound=0.1)
    flags.DEFINE_integer("clients", 64, "Clients at the same time.", lower_bound=1)


if __name__ == "__main__":
    common.run(_define_flags, measure)
