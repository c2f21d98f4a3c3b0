"""A small deterministic encoder, alone and behind an OpenAI-compatible endpoint."""

import contextlib
import json
import zlib

import numpy as np

from tests.server.local_server import answering

DIM = 8


def encode(texts):
    """Counts of letters, by a hash: texts with the same letters are near each other."""
    vectors = np.zeros((len(texts), DIM))
    for row, text in enumerate(texts):
        for letter in text:
            vectors[row, zlib.crc32(letter.encode()) % DIM] += 1
    return vectors


@contextlib.contextmanager
def endpoint(refusals=(), answer=None):
    """`(asked, url)`; it answers in another order than asked, and first with `refusals`."""
    asked, left = [], list(refusals)

    def vectors(path, headers, body):
        asked.append((path, headers["Authorization"], body))
        found = enumerate(encode(body["input"]).tolist())
        data = [{"index": n, "embedding": vector} for n, vector in found][::-1]
        said = {"error": "too many"} if left else answer or {"data": data}
        return left.pop(0) if left else 200, json.dumps(said).encode()

    with answering(vectors) as address:
        yield asked, f"{address}/v1"
