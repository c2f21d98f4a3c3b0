"""Encoders behind an OpenAI-compatible endpoint: `POST <url>/embeddings`.

TEI, vLLM, Ollama, llama.cpp and the hosted services speak it. The format: a body with "model" and
"input" (a list of texts); the answer has "data", a list of objects with "index" and "embedding".
"""

import http.client
import json
import os
import time
import urllib.error
import urllib.request
from typing import Any

import numpy as np

from tf_smoothclir.foreign_encoders.protocol import ForeignEncoder
from tf_smoothclir.utils.errors import InputError, input_error

KEY = "OPENAI_API_KEY"  # in the environment; sent as a bearer token where it is there
_ATTEMPTS, _FIRST_PAUSE = 6, 0.5  # seconds; each pause is twice as long as the one before
_TIMEOUT = 120
_AGAIN = {408, 409, 425, 429, 500, 502, 503, 504}


class EndpointEncoder(ForeignEncoder):
    """Asks a server."""

    def __init__(self, url: str, model: str, *, texts_per_request: int = 64, **prefixes: str):
        """Remembers where to ask for a model; nothing is sent before texts are encoded."""
        self._url = url.rstrip("/") + "/embeddings"
        self._model, self._size = model, texts_per_request
        super().__init__(model or url, self._url, model, **prefixes)

    def _encoded(self, role: str, texts: list[str]) -> np.ndarray:
        begins = range(0, len(texts), self._size)
        return np.concatenate([self._answer(texts[b : b + self._size]) for b in begins])

    def _answer(self, texts: list[str]) -> np.ndarray:
        """Vectors of the texts of one request, asked again after a pause where that may help."""
        # Servers refuse empty texts; a space has a vector without a meaning too.
        body = json.dumps({"model": self._model, "input": [text or " " for text in texts]})
        for attempt in range(_ATTEMPTS):
            try:
                return self._vectors(self._post(body.encode()), len(texts))
            except urllib.error.HTTPError as error:
                detail = error.read(500).decode(errors="replace").strip()
                reason = f"it answered {error.code} {error.reason}: {detail}"
                if error.code not in _AGAIN:
                    break
            except (OSError, http.client.HTTPException) as error:
                reason = f"it does not answer ({error})"
            if attempt < _ATTEMPTS - 1:
                time.sleep(_FIRST_PAUSE * 2**attempt)
        raise self._wrong(reason)

    def _post(self, body: bytes) -> Any:
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get(KEY):
            headers["Authorization"] = f"Bearer {key}"
        request = urllib.request.Request(self._url, body, headers)
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
            try:
                return json.load(answer)
            except ValueError as error:
                raise self._wrong(f"its answer is not JSON ({error})") from None

    def _vectors(self, answer: Any, number: int) -> np.ndarray:
        try:
            data = sorted(answer["data"], key=lambda item: item["index"])
            vectors = np.array([item["embedding"] for item in data], np.float32)
        except (KeyError, TypeError, ValueError):
            vectors = np.zeros(0, np.float32)
        if vectors.ndim != 2 or len(vectors) != number or not np.isfinite(vectors).all():
            raise self._wrong(f"its answer does not hold {number} vectors of the same length")
        return vectors

    def _wrong(self, reason: str) -> InputError:
        return input_error(
            f"--encoder: {self._url}",
            reason,
            f"Check the address, --encoder_model={self._model!r} and the key in {KEY}; vectors that"
            " were there already are kept",
        )
