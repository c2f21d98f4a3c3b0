"""Serves a model and asks it, by the client of the package and by plain HTTP.

    python examples/serving.py --export_dir=models

Without models in --export_dir, it trains on the built-in toy world and exports first, which takes a
minute. The server is the one for development. In production, TensorFlow Serving takes its place:

    docker run --rm -p 8501:8501 -v "$PWD/models/search:/models/search" -e MODEL_NAME=search \
        tensorflow/serving
"""

from __future__ import annotations

import argparse
import contextlib
import json
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
        sc.train(toy_entities=300).export(export_dir)
    with served(export_dir) as address:
        client = sc.ServingClient(address)
        (found,) = client.search([query])
        print("By the client:", found[0].id, found[0].score, "grade", found[0].grade)
        print("A vector:", client.encode([query], role="query").shape)
        body = json.dumps({"instances": [query]}).encode()
        with urllib.request.urlopen(f"{address}/v1/models/search:predict", body) as answer:
            (found,) = json.load(answer)["predictions"]
        print("By plain HTTP:", found["ids"][0], found["scores"][0], "grade", found["grades"][0])


@contextlib.contextmanager
def served(export_dir: Path) -> Iterator[str]:
    """Runs smoothclir-serve on a free port; yields its address."""
    program = Path(sys.executable).with_name("smoothclir-serve")
    command = [program, f"--export_dir={export_dir}", "--port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield server.stdout.readline().strip()  # printed once it is ready
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
