"""Serving: latency from one query string through the gRPC server to its top ten documents.

python -m benchmarks.serving
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
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
_LEAD_IN = 1.0  # seconds of requests that are not counted
_PATIENCE = 30.0  # seconds
_TF_SERVING = "tensorflow_model_server"
OURS = "smoothclir-serve"


def export(
    directory: str, retriever: str, documents: int, dim: int, vocabulary: int
) -> dict[str, float]:
    """Exports random models and a search model over random vectors and texts of random words."""
    from tf_smoothclir.protocols.cut_points import CutPoints
    from tf_smoothclir.publishing.export_search import build_search_model
    from tf_smoothclir.publishing.exported_collection import Collection
    from tf_smoothclir.publishing.exported_lexical import ExportedLexical
    from tf_smoothclir.publishing.exported_tower import ExportedTower
    from tf_smoothclir.publishing.version_writer import PairInfo, publish_version
    from tf_smoothclir.settings.data import DataSettings
    from tf_smoothclir.text.evidence import WordEvidence
    from tf_smoothclir.text.vocabulary import PADDING, UNKNOWN, write_vocabulary
    from tf_smoothclir.text.word_encoder import TextEncoder

    known = words(vocabulary)
    for role in ROLES:
        write_vocabulary(Path(directory, f"{role}.txt"), [PADDING, UNKNOWN, ",", *known])
    generator, size = np.random.default_rng(13), len(known) + 3
    collection, parts, towers, lexical = {}, {}, {}, None
    if retriever != "lexical":
        workload = Workload(vocabulary=size, dim=dim)
        model = two_tower(workload, workload.settings())
        for role in ROLES:
            tower, name = getattr(model, f"{role}_tower"), f"{role}_tower"
            encoder = TextEncoder(Path(directory, f"{role}.txt"), _MAX_TOKENS)
            own = {"epsilon": 1.0, "evidence": WordEvidence(encoder)}
            towers[role] = ExportedTower(tower, encoder, name=name, **own)
        vectors = generator.normal(0, 0.05, (documents, dim))
        collection["vectors"] = vectors.astype(np.float32)
    if retriever != "dense":
        lexical = _lexical_parts(directory, size, with_towers=bool(towers))
        parts["lexical"] = ExportedLexical(lexical)
        collection["words"] = _words(generator, documents, size)
    cut_points = CutPoints((0.2, 0.7), (), (0.2, 0.7))
    search = build_search_model(
        Collection.of([f"d{row}" for row in range(documents)], **collection),
        towers,
        lexical,
        cut_points=cut_points,
        depth=10,
    )
    probes = [text.encode() for text in texts(64, _QUERY_TOKENS, known)]
    info = PairInfo(dim, 1.0, (0.2, 0.7), DataSettings(), cut_points)
    begin = time.perf_counter()
    publish_version(
        {**parts, **towers, "search": search}, directory, info, dict.fromkeys(ROLES, probes)
    )
    return {"s": time.perf_counter() - begin}


def _lexical_parts(directory: str, size: int, *, with_towers: bool):
    """A lexical model of random translations, as many as on mdn-en-de, and feedback.

    Words translate into words of about their frequency.
    """
    import scipy.sparse as sp

    from tf_smoothclir.hybrid.fusion import Fusion
    from tf_smoothclir.lexical.model import LexicalModel
    from tf_smoothclir.lexical.positions import FLAT, PositionProfile
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
    model = LexicalModel(table, background, fields, weights, feedback=_FEEDBACK)
    fusion = Fusion(0.3, 5.0, 0.1, _FEEDBACK) if with_towers else None
    text = TextSettings(max_query_tokens=_MAX_TOKENS, max_document_tokens=_MAX_TOKENS)
    return LexicalParts(model, Path(directory), text, fusion)


def _words(generator: np.random.Generator, documents: int, size: int):
    """Documents of 100 to 200 words by their ids."""
    from tf_smoothclir.lexical.words import Words

    offsets = np.cumsum([0, *generator.integers(100, 201, documents)])
    ids = FIRST_TOKEN + zipf_ranks(generator, offsets[-1], size - FIRST_TOKEN)
    return Words(ids.astype(np.int32), offsets, size)


@contextlib.contextmanager
def server(kind: str, directory: str):
    """Runs a server of the search model; yields its address and its process."""
    if kind == OURS:
        command = [sys.executable, "-m", "export.serve", f"--export_dir={directory}"]
        command += ["--port=0", "--rest_api_port=0", "--verbosity=-1"]
    else:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{one.getsockname()[1]}"
        command = [_TF_SERVING, f"--port={address.rpartition(':')[2]}", "--model_name=search"]
        command += [f"--model_base_path={directory}/search"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            if kind == OURS:
                address = child.stdout.readline().split()[0].partition("=")[2]
            yield address, child
        finally:
            child.terminate()


def open_loop(
    kind: str, directory: str, rate: float, seconds: float, queries: list[str]
) -> dict[str, float]:
    """Sends queries at a fixed rate, whether answers come or not, and measures their latency.

    The latency of a request that was sent late counts from when it was due.
    """
    with server(kind, directory) as (address, child), _stub(address) as predict:
        requests = [_request(query) for query in queries]
        predict(requests[0], timeout=_PATIENCE, wait_for_ready=True)
        _send(predict, requests, rate, _LEAD_IN)
        before = _megabytes(child.pid)
        latencies, errors, span = _send(predict, requests, rate, seconds)
        return {
            **_percentiles(latencies),
            "answers/s": len(latencies) / span,
            "errors": errors,
            "server MB before": before,
            "server MB after": _megabytes(child.pid),
        }


def closed_loop(
    kind: str, directory: str, clients: int, seconds: float, queries: list[str]
) -> dict[str, float]:
    """Runs clients on their own connections, each asking one query after the other."""
    requests = [_request(query) for query in queries]
    with server(kind, directory) as (address, child), contextlib.ExitStack() as stack:
        stubs = [stack.enter_context(_stub(address)) for _ in range(clients)]
        stubs[0](requests[0], timeout=_PATIENCE, wait_for_ready=True)
        before = _megabytes(child.pid)
        end = time.perf_counter() + seconds

        def ask(number: int) -> tuple[list[float], int]:
            latencies, errors = [], 0
            while (begin := time.perf_counter()) < end:
                try:
                    request = requests[(number + len(latencies)) % len(requests)]
                    stubs[number](request, timeout=_PATIENCE, wait_for_ready=True)
                    latencies.append(time.perf_counter() - begin)
                except Exception:
                    errors += 1
            return latencies, errors

        with futures.ThreadPoolExecutor(clients) as pool:
            answers = list(pool.map(ask, range(clients)))
        latencies = [latency for some, _ in answers for latency in some]
        return {
            **_percentiles(latencies),
            "answers/s": len(latencies) / seconds,
            "errors": sum(errors for _, errors in answers),
            "server MB before": before,
            "server MB after": _megabytes(child.pid),
        }


@contextlib.contextmanager
def _stub(address: str):
    import grpc
    from tensorflow_serving.apis import prediction_service_pb2_grpc

    options = [("grpc.use_local_subchannel_pool", 1)]  # a connection of its own
    with grpc.insecure_channel(address, options=options) as channel:
        yield prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict


def _request(query: str):
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2

    request = predict_pb2.PredictRequest()
    request.model_spec.name = "search"
    request.inputs["text"].CopyFrom(tf.make_tensor_proto([query]))
    return request


def _send(predict, requests, rate: float, seconds: float) -> tuple[list[float], int, float]:
    """The seconds of each answer, the number of errors, and the total seconds."""
    count = max(1, round(rate * seconds))
    latencies, errors = [], []
    done = threading.Semaphore(0)
    begin = time.perf_counter()

    def finished(due: float, future) -> None:
        took = time.perf_counter() - due
        (latencies if future.exception() is None else errors).append(took)
        done.release()

    for number in range(count):
        due = begin + number / rate
        time.sleep(max(0.0, due - time.perf_counter()))
        future = predict.future(requests[number % len(requests)], timeout=_PATIENCE)
        future.add_done_callback(partial(finished, due))
    for _ in range(count):
        done.acquire()
    return latencies, len(errors), time.perf_counter() - begin


def _percentiles(latencies: list[float]) -> dict[str, float]:
    values = 1000 * np.array(latencies or [np.nan])
    p50, p90, p99 = np.percentile(values, [50, 90, 99])
    return {"p50 ms": p50, "p90 ms": p90, "p99 ms": p99, "max ms": values.max()}


def _megabytes(process: int) -> float:
    """The resident memory of a process in MiB."""
    with open(f"/proc/{process}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def measure(
    *,
    retriever: str = "dense",
    documents: int,
    dim: int,
    vocabulary: int,
    rates: list[float],
    seconds: float,
    curve_seconds: float,
    clients: int,
    rounds: int,
) -> list[dict]:
    """Two tables: open loops at some rates, and closed loops of one and many clients.

    Args:
        rates: Requests per second; the first for `seconds`, the others for `curve_seconds`.
        seconds: Duration of the first rate.
        curve_seconds: Duration of each other rate, and of the closed loops.
    """
    queries = texts(512, _QUERY_TOKENS, words(vocabulary))
    kinds = [OURS] + ([_TF_SERVING] if shutil.which(_TF_SERVING) else [])
    with tempfile.TemporaryDirectory() as directory:
        common.in_new_process(partial(export, directory, retriever, documents, dim, vocabulary))
        lengths = [seconds] + [curve_seconds] * (len(rates) - 1)
        rivals = {
            f"{kind}, {rate:g}/s": partial(open_loop, kind, directory, rate, length, queries)
            for kind in kinds
            for rate, length in zip(rates, lengths)
        }
        crowds = {
            f"{kind}, {number} client{'s' * (number > 1)}": partial(
                closed_loop, kind, directory, number, curve_seconds, queries
            )
            for kind in kinds
            for number in dict.fromkeys((1, clients))
        }
        size = f"{retriever}, top 10 of {documents:,}" + f" x {dim}" * (retriever != "lexical")
        return [
            common.table(
                f"Queries at a rate, {size}",
                common.interleaved(rivals, rounds),
                ratio_of="p50 ms",
                references=[next(iter(rivals))],
            ),
            common.table(
                f"Clients that wait for each answer, {size}",
                common.interleaved(crowds, rounds),
                ratio_of="answers/s",
                references=[next(iter(crowds))],
            ),
        ]


def _define_flags() -> None:
    flags.DEFINE_enum(
        "retriever", "dense", ["dense", "lexical", "hybrid"], "What the search model ranks with."
    )
    flags.DEFINE_integer("documents", 100_000, "Documents in the search model.", lower_bound=10)
    flags.DEFINE_integer("dim", 64, "Dimension of the vectors.", lower_bound=1)
    flags.DEFINE_integer("vocabulary", 100_000, "Number of different words.", lower_bound=100)
    flags.DEFINE_list(
        "rates",
        ["50", "100", "200", "400", "600", "800"],
        "Queries per second, one rate after the other.",
    )
    flags.DEFINE_float("seconds", 60.0, "Duration of the first rate.", lower_bound=0.1)
    flags.DEFINE_float("curve_seconds", 10.0, "Duration of each other rate.", lower_bound=0.1)
    flags.DEFINE_integer("clients", 64, "Clients at the same time.", lower_bound=1)


def _measure(values: flags.FlagValues) -> list[dict]:
    return measure(
        retriever=values.retriever,
        documents=values.documents,
        dim=values.dim,
        vocabulary=values.vocabulary,
        rates=[float(rate) for rate in values.rates],
        seconds=values.seconds,
        curve_seconds=values.curve_seconds,
        clients=values.clients,
        rounds=values.rounds,
    )


if __name__ == "__main__":
    common.run(_define_flags, _measure)
