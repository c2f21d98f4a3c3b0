"""A client that asks a model server for vectors, documents and scores, by gRPC or REST."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tf_smoothclir.client.transport import ModelSelection, RequestFailure, VersionStatus
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.utils.errors import InputError, input_error

if TYPE_CHECKING:
    from tf_smoothclir.client.grpc_transport import GrpcTransport
    from tf_smoothclir.client.rest_transport import RestTransport

SEARCH_MODEL, RERANKER = "search", "reranker"
_REMEDIES = {
    "UNAVAILABLE": "Start the server, or check the host, the port and the network",
    "DEADLINE_EXCEEDED": "Raise --timeout, or send fewer texts per request with --batch_size",
    "NOT_FOUND": "See what is served with `smoothclir-client status`, or serve this model",
    "RESOURCE_EXHAUSTED": "Send less per request with --batch_size, or raise the server's limit",
    "FAILED_PRECONDITION": "Check that smoothclir-export wrote the model, and its signatures",
    "INVALID_ARGUMENT": "Check version and label, and that smoothclir-export wrote the model",
    "UNIMPLEMENTED": "Check that TensorFlow Serving or smoothclir-serve listens at this address",
}
_REMEDY = "See the log of the server"


@dataclasses.dataclass(frozen=True)
class FoundDocument:
    """A document that the search model found.

    Attributes:
        id: Id of the document.
        score: Of what ranks in the exported run: a smooth cosine similarity, the score of a
            translation table, or the weighted sum of a hybrid.
        grade: Predicted from the score, 0..K-1.
        evidence: By what the query was understood: "words", "spelling" or "n-grams".
    """

    id: str
    score: float
    grade: int
    evidence: str


class ServingClient:
    """Asks TensorFlow Serving, or `smoothclir-serve`, about exported models.

    gRPC repeats a request that reaches no server (UNAVAILABLE: connection refused or lost) after
    growing, random waits; a request by REST is sent once. Several threads may share a client. `with
    ServingClient(...) as client:` closes its connections.
    """

    def __init__(
        self,
        address: str,
        *,
        timeout: float = 10.0,
        retries: int = 3,
        batch_size: int = 256,
        version: int = 0,
        label: str = "",
    ):
        """Checks the address; connects with the first request.

        Args:
            address: "host:8500" for gRPC, "http://host:8501" (or https) for REST.
            timeout: Seconds per request.
            retries: Further attempts of gRPC at a request that reaches no server, at most 4.
            batch_size: Texts per request; more texts are sent in several requests.
            version: Version of the models; 0 for the latest.
            label: Label of a version, such as "canary"; not together with `version`.

        Raises:
            InputError: The address is not valid, both version and label are given, or a number is
                out of range.
        """
        if version and label:
            raise input_error(
                f"label {label!r}", f"version {version} is given too", "Give only one"
            )
        for name, number, least in (("retries", retries, 0), ("batch_size", batch_size, 1)):
            if number < least:
                raise input_error(f"{name}={number}", "it is too small", f"Give {least} or more")
        self._address = address
        self._batch_size = batch_size
        self._selection = {"version": version, "label": label}
        self._transport = _transport(address, timeout, retries)

    def encode(self, texts: Sequence[str | bytes], role: str = "query") -> np.ndarray:
        """Returns the smooth-normalised vectors of texts, `[texts, dim]` float32.

        Args:
            texts: Any strings or bytes. Without any, the result is `[0, 0]`.
            role: "query" or "document", for the tower.

        Raises:
            InputError: There is no such role, `texts` is a single text, or the request failed; then
                the message names the server, the model, the cause and a remedy.
        """
        model = _tower(role)
        parts = [
            _only(output) for output in self._batches(model, "serving_default", {"text": texts})
        ]
        return np.concatenate(parts) if parts else np.empty([0, 0], np.float32)

    def search(self, texts: Sequence[str | bytes]) -> list[list[FoundDocument]]:
        """Returns the documents that the search model finds for each query, best first.

        There are none for a query of which the model knows nothing. How many there are at most was
        chosen at the export (`--search_depth`).

        Args:
            texts: Queries, strings or bytes.

        Raises:
            InputError: The request failed; names the server, the model, the cause and a remedy.
        """
        found = []
        for output in self._batches(SEARCH_MODEL, "serving_default", {"text": texts}):
            names = ("ids", "scores", "grades", "evidence")
            found += [
                [
                    FoundDocument(id.decode("utf-8", "replace"), float(s), int(g), known.decode())
                    for id, s, g in zip(ids, scores, grades)
                    if id
                ]
                for ids, scores, grades, known in zip(*(self._named(output, n) for n in names))
            ]
        return found

    def encode_queries(
        self, texts: Sequence[str | bytes]
    ) -> tuple[np.ndarray, list[tuple[str, str]]]:
        """Returns the vectors of queries, and by what the tower understands them, in one request.

        Args:
            texts: Queries, strings or bytes.

        Returns:
            `(vectors, evidence)`: vectors as of `encode`, and for each text its evidence and its
            unknown words.

        Raises:
            InputError: The request failed; names the server, the model, the cause and a remedy.
        """
        vectors, evidence = [np.empty([0, 0], np.float32)], []
        for answer in self._batches("query_tower", "evidence", {"text": texts}):
            vectors.append(self._named(answer, "vector"))
            rows = zip(self._named(answer, "evidence"), self._named(answer, "unknown"))
            evidence += [tuple(value.decode("utf-8", "replace") for value in row) for row in rows]
        return np.concatenate(vectors[1:] or vectors), evidence

    def rerank(self, query: str | bytes, documents: Sequence[str | bytes]) -> np.ndarray:
        """Returns the score of each document for a query by the re-ranker, `[documents]` float32.

        A search adds `rerank_weight` times these scores to those of its first stage.

        Args:
            query: A string or bytes.
            documents: Texts, strings or bytes.

        Raises:
            InputError: The request failed; names the server, the model, the cause and a remedy.
        """
        columns = {"query": [query] * len(documents), "document": documents}
        answers = self._batches(RERANKER, "serving_default", columns)
        return np.concatenate([np.zeros(0, np.float32), *map(_only, answers)])

    def rerank_weight(self) -> float:
        """Returns what the scores of `rerank` count beside those of the first stage.

        Raises:
            InputError: The request failed; names the server, the model, the cause and a remedy.
        """
        (answer,) = self._batches(RERANKER, "pair_id", {"text": [b""]})
        return float(answer["weight"][0])

    def status(self, model: str) -> list[VersionStatus]:
        """Returns the status of each version of a model that the server knows.

        Args:
            model: Its name on the server, such as "query_tower" or "search".

        Raises:
            InputError: The request failed; names the server, the model, the cause and a remedy.
        """
        selected = ModelSelection(model, **self._selection)
        return self._asked(selected, self._transport.status)

    def pair_id(self, role: str) -> str:
        """Returns the `pair_id` of a tower, which it shares with what belongs to it.

        Args:
            role: "query" or "document".

        Raises:
            InputError: There is no such role, or the request failed; then the message names the
                server, the model, the cause and a remedy.
        """
        (answer,) = self._batches(_tower(role), "pair_id", {"text": [b""]})
        return _only(answer)[0].decode()

    def close(self) -> None:
        """Closes the connections."""
        self._transport.close()

    def __enter__(self) -> ServingClient:
        return self

    def __exit__(self, *error) -> None:
        self.close()

    def _batches(
        self, model: str, signature: str, columns: Mapping[str, Sequence]
    ) -> Iterator[dict[str, np.ndarray]]:
        selected = ModelSelection(model, **self._selection)
        columns = {name: _as_bytes(name, texts) for name, texts in columns.items()}
        (rows,) = {len(texts) for texts in columns.values()}
        for begin in range(0, rows, self._batch_size):
            end = begin + self._batch_size
            batch = {name: texts[begin:end] for name, texts in columns.items()}
            output = self._asked(selected, self._transport.predict, signature, batch)
            size = min(end, rows) - begin
            if any(values.shape[:1] != (size,) for values in output.values()):
                shapes = {name: values.shape for name, values in output.items()}
                raise self._error(selected, f"the answer to {size} rows has the shapes {shapes}")
            yield output

    def _asked(self, model: ModelSelection, request: Callable, *arguments):
        try:
            return request(model, *arguments)
        except RequestFailure as failure:
            reason = f"{failure.code}: {failure.message.rstrip('. ')}"
            raise self._error(model, reason, failure.code) from None

    def _error(self, model: ModelSelection, reason: str, code: str = "") -> InputError:
        version = f" version {model.version}" if model.version else ""
        label = f" label {model.label!r}" if model.label else ""
        place = f"server {self._address}, model {model.name!r}{version}{label}"
        return input_error(place, reason, _REMEDIES.get(code, _REMEDY))

    def _named(self, output: dict[str, np.ndarray], name: str) -> np.ndarray:
        if name not in output:
            raise self._error(
                ModelSelection(SEARCH_MODEL, **self._selection),
                f"the answer has no {name!r}, only {sorted(output)}",
                "INVALID_ARGUMENT",
            )
        return output[name]


def _transport(address: str, timeout: float, retries: int) -> RestTransport | GrpcTransport:
    if re.fullmatch(r"https?://[^/\s]+(/\S*)?", address):
        from tf_smoothclir.client.rest_transport import RestTransport

        return RestTransport(address, timeout)
    if re.fullmatch(r"[^/\s]+:\d{1,5}", address):
        from tf_smoothclir.client.grpc_transport import GrpcTransport

        return GrpcTransport(address, timeout, retries)
    raise input_error(
        f"--server={address}",
        "this is not the address of a server",
        "Give host:port for gRPC (TensorFlow Serving: 8500), or http://host:port for REST (8501)",
    )


def _only(output: Mapping[str, np.ndarray]) -> np.ndarray:
    """The only output of a tower, which has no name in an answer by REST."""
    (values,) = output.values()
    return values


def _tower(role: str) -> str:
    if role not in ROLES:
        raise input_error(f"role={role!r}", "there is no such role", f"Give {' or '.join(ROLES)}")
    return f"{role}_tower"


def _as_bytes(argument: str, texts: Sequence[str | bytes]) -> list[bytes]:
    if isinstance(texts, (str, bytes)):
        raise input_error(argument, f"it is a single text, {texts!r}", "Give a list of texts")
    found = []
    for text in texts:
        if not isinstance(text, (str, bytes)):
            raise input_error(argument, f"{text!r} is no text", "Give strings or bytes")
        if isinstance(text, str):
            try:
                text = text.encode("utf-8", "surrogateescape")  # arguments that are not UTF-8
            except UnicodeEncodeError:
                text = text.encode("utf-8", "replace")
        found.append(text)
    return found
