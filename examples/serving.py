"""Serves a model and asks it, by the client of the package and by plain HTTP.

    python examples/serving.py --export_dir=models

Without models in --export_dir, it trains on the built-in toy world and exports first, which takes a
minute. The server is the one for development. In production, TensorFlow Serving takes its place:

    docker run --rm -p 8500:8500 -p 8501:8501 -v "$PWD/models/search:/models/search" \
        -e MODEL_NAME=search tensorflow/serving
"""

from __future__ import annotations

import argparse
import contextlib
import json
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import tf_smoothclir as sc

QUESTION = "A small animal that eats berries and lives in the hills."


def main() -> None:
    """Exports if there is nothing yet, starts a server, and asks it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--export_dir", default="models")
    parser.add_argument("--query", default=QUESTION)
    given = parser.parse_args()
    export_dir, query = Path(given.export_dir), given.query
    if not (export_dir / "search").is_dir():
        sc.train(toy_entities=300, epochs=5).export(export_dir)
    with served(export_dir) as (grpc, rest):
        with sc.ServingClient(grpc, retries=10) as client:
            (found,) = client.search([query])
            print("By gRPC:", found[0].id, found[0].score, "grade", found[0].grade)
            print("A vector:", client.encode([query], role="query").shape)
        body = json.dumps({"instances": [query]}).encode()
        with urllib.request.urlopen(f"{rest}/v1/models/search:predict", body) as answer:
            (found,) = json.load(answer)["predictions"]
        print("By REST:", found["ids"][0], found["scores"][0], "grade", found["grades"][0])


@contextlib.contextmanager
def served(export_dir: Path) -> Iterator[tuple[str, str]]:
    """Runs smoothclir-serve on free ports; yields the addresses of gRPC and REST."""
    ports = free_ports(2)
    command = [
        Path(sys.executable).with_name("smoothclir-serve"),
        f"--export_dir={export_dir}",
        f"--port={ports[0]}",
        f"--rest_api_port={ports[1]}",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            print(server.stdout.readline().strip())  # printed once it is ready
            yield f"127.0.0.1:{ports[0]}", f"http://127.0.0.1:{ports[1]}"
        finally:
            server.terminate()


def free_ports(number: int) -> list[int]:
    """Returns ports that nothing listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


if __name__ == "__main__":
    main()
