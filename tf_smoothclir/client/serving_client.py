"""A client that asks a model server for vectors, documents and scores, by REST.

It needs no TensorFlow.
"""

import base64
import dataclasses
import http.client
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from urllib.parse import quote, urlsplit

import numpy as np

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.utils.errors import InputError, input_error

SEARCH_MODEL, RERANKER = "search", "reranker"
_REMEDIES = {
    "UNAVAILABLE": "Start the server, or check the host, the port and the network",
    "DEADLINE_EXCEEDED": "Raise the timeout, or send fewer texts per request by batch_size",
    "NOT_FOUND": "Serve this model; a model server says at /v1/models/NAME what it has",
    "RESOURCE_EXHAUSTED": "Send less per request by batch_size, or raise the server's limit",
    "INVALID_ARGUMENT": "Check version and label, and that smoothclir-export wrote the model",
    "UNIMPLEMENTED": "Check that TensorFlow Serving or smoothclir-serve listens at this address",
}
_REMEDY = "See the log of the server"
_CODES = {
    400: "INVALID_ARGUMENT",
    404: "NOT_FOUND",
    413: "RESOURCE_EXHAUSTED",
    429: "RESOURCE_EXHAUSTED",
    501: "UNIMPLEMENTED",
    502: "UNAVAILABLE",  # from a proxy that cannot reach its server
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


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

    Each request has a connection of its own and is sent once. Several threads may share a client.
    """

    def __init__(
        self,
        address: str,
        *,
        timeout: float = 10.0,
        batch_size: int = 256,
        version: int = 0,
        label: str = "",
    ):
        """Checks the address; connects with the first request.

        Args:
            address: "http://host:8501", or https.
            timeout: Seconds per request.
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
        if batch_size < 1:
            raise input_error(f"batch_size={batch_size}", "it is too small", "Give 1 or more")
        if not re.fullmatch(r"https?://[^/\s]+(/\S*)?", address):
            reason, remedy = "this is no address of REST", "Give http://host:port (8501)"
            raise input_error(f"address={address}", reason, remedy)
        parts = urlsplit(address)
        secure = parts.scheme == "https"
        self._connection = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        self._host, self._prefix = parts.netloc, parts.path.rstrip("/")
        self._address, self._timeout, self._batch_size = address, timeout, batch_size
        self._selected, self._named = "", ""  # for the path, and for people
        if version:
            self._selected, self._named = f"/versions/{version}", f" version {version}"
        elif label:
            self._selected, self._named = f"/labels/{quote(label, safe='')}", f" label {label!r}"

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
        hits = []
        for output in self._batches(SEARCH_MODEL, "serving_default", {"text": texts}):
            names = ("ids", "scores", "grades", "evidence")
            hits += [
                [
                    FoundDocument(id.decode("utf-8", "replace"), float(s), int(g), known.decode())
                    for id, s, g in zip(ids, scores, grades)
                    if id
                ]
                for ids, scores, grades, known in zip(*(self._output(output, n) for n in names))
            ]
        return hits

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

    def _batches(
        self, model: str, signature: str, columns: Mapping[str, Sequence]
    ) -> Iterator[dict[str, np.ndarray]]:
        """Yields the outputs of a signature for some rows at a time; one alone has no name."""
        columns = {name: _as_bytes(name, texts) for name, texts in columns.items()}
        (rows,) = {len(texts) for texts in columns.values()}
        for begin in range(0, rows, self._batch_size):
            end = min(begin + self._batch_size, rows)
            batch = {name: list(map(_json, texts[begin:end])) for name, texts in columns.items()}
            body = json.dumps({"signature_name": signature, "inputs": batch}).encode()
            outputs = self._answer(model, body).get("outputs")
            if not isinstance(outputs, dict):
                outputs = {"": outputs}
            try:
                outputs = {name: _array(values) for name, values in outputs.items()}
            except (TypeError, ValueError):
                reason = "the answer is not a table of numbers or strings"
                raise self._error(model, reason, "INTERNAL") from None
            if any(values.shape[:1] != (end - begin,) for values in outputs.values()):
                shapes = {name: values.shape for name, values in outputs.items()}
                reason = f"the answer to {end - begin} rows has the shapes {shapes}"
                raise self._error(model, reason)
            yield outputs

    def _answer(self, model: str, body: bytes) -> dict:
        """The answer of a model to a request, which must be an object."""
        path = f"{self._prefix}/v1/models/{quote(model, safe='')}{self._selected}:predict"
        headers = {"Content-Type": "application/json"}
        try:
            with closing(self._connection(self._host, timeout=self._timeout)) as connection:
                connection.request("POST", path, body, headers)
                response = connection.getresponse()
                content = response.read()
        except TimeoutError:
            reason = f"no answer in {self._timeout:g} s"
            raise self._error(model, reason, "DEADLINE_EXCEEDED") from None
        except (OSError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
            raise self._error(model, reason, "UNAVAILABLE") from None
        try:
            answer = json.loads(content)
        except ValueError:
            answer = None
        if response.status == 200 and isinstance(answer, dict):
            return answer
        said = answer.get("error") if isinstance(answer, dict) else None
        missing = f"HTTP status {response.status}, and the answer is not one of a model server"
        raise self._error(model, str(said or missing), _CODES.get(response.status, "UNKNOWN"))

    def _error(self, model: str, reason: str, code: str = "") -> InputError:
        place = f"server {self._address}, model {model!r}{self._named}"
        reason = f"{code}: {reason.rstrip('. ')}" if code else reason
        return input_error(place, reason, _REMEDIES.get(code, _REMEDY))

    def _output(self, outputs: dict[str, np.ndarray], name: str) -> np.ndarray:
        if name not in outputs:
            raise self._error(SEARCH_MODEL, f"the answer has no {name!r}, only {sorted(outputs)}")
        return outputs[name]


def _only(output: Mapping[str, np.ndarray]) -> np.ndarray:
    """The only output of a tower, which has no name in an answer by REST."""
    (values,) = output.values()
    return values


def _json(text: bytes) -> str | dict[str, str]:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(text).decode("ascii")}


def _array(values) -> np.ndarray:
    array = np.array(values)
    if array.dtype.kind == "U":  # which drops NUL at an end
        return np.array(np.frompyfunc(str.encode, 1, 1)(np.array(values, object)), object)
    return array.astype(np.int32 if array.dtype.kind == "i" else np.float32)


def _tower(role: str) -> str:
    if role not in ROLES:
        raise input_error(f"role={role!r}", "there is no such role", f"Give {' or '.join(ROLES)}")
    return f"{role}_tower"


def _as_bytes(argument: str, texts: Sequence[str | bytes]) -> list[bytes]:
    if isinstance(texts, (str, bytes)):
        raise input_error(argument, f"it is a single text, {texts!r}", "Give a list of texts")
    encoded = []
    for text in texts:
        if not isinstance(text, (str, bytes)):
            raise input_error(argument, f"{text!r} is no text", "Give strings or bytes")
        if isinstance(text, str):
            try:
                text = text.encode("utf-8", "surrogateescape")  # arguments that are not UTF-8
            except UnicodeEncodeError:
                text = text.encode("utf-8", "replace")
        encoded.append(text)
    return encoded
