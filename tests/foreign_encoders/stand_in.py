"""A small deterministic encoder, alone and behind an OpenAI-compatible endpoint."""

import contextlib
import http.server
import json
import threading
import zlib

import numpy as np

DIM = 8


def encode(texts):
    """Counts of letters, by a hash: texts with the same letters are near each other."""
    vectors = np.zeros((len(texts), DIM))
    for row, text in enumerate(texts):
        for letter in text:
            vectors[row, zlib.crc32(letter.encode()) % DIM] += 1
    return vectors


class Endpoint(http.server.BaseHTTPRequestHandler):
    """Answers with the vectors of `encode`, in another order than asked; first with `refusals`."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, self.headers["Authorization"], body))
        status = self.server.refusals.pop(0) if self.server.refusals else 200
        vectors = encode(body["input"]).tolist()
        data = [{"index": n, "embedding": vector} for n, vector in enumerate(vectors)][::-1]
        answer = {"data": data} if status == 200 else {"error": "too many"}
        content = json.dumps(self.server.answer or answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def endpoint(refusals=(), answer=None):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    server.asked, server.refusals, server.answer = [], list(refusals), answer
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server, f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
