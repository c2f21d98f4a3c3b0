"""Inputs of a two-tower model, besides grades; one type for each way of batching."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf


class SeparateTexts(NamedTuple):
    """Queries and documents, each in a form that its tower takes, such as `Tokens`."""

    query: Any
    document: Any


class JoinedTexts(NamedTuple):
    """All queries, then all documents, in one: for a tower that both share."""

    tokens: Any


Texts = SeparateTexts | JoinedTexts


class PairInputs(NamedTuple):
    """Pairs: each query has the document of the same position."""

    texts: Texts


class ListInputs(NamedTuple):
    """Candidate lists: each query has several documents, one list after the other."""

    texts: Texts  # each query once, and the documents of all lists
    list_lengths: tf.Tensor  # `[queries]` int, the number of documents in each list
    lists: tf.Tensor  # `[documents]` int, ascending, the list of each document


class InBatchInputs(NamedTuple):
    """Candidate lists for in-batch negatives: each query has all documents of the batch."""

    texts: Texts
    list_lengths: tf.Tensor  # `[queries]` int, the number of documents in the list of each query


ModelInputs = PairInputs | ListInputs | InBatchInputs


def model_inputs(given: ModelInputs | Mapping, *, in_batch: bool) -> ModelInputs:
    """Inputs as one of the types above."""
    if not isinstance(given, Mapping):
        return given
    keys = set(given)
    if not {"query", "document"} <= keys <= {"query", "document", "list_lengths"}:
        raise ValueError(
            "inputs: a dictionary must have the keys 'query' and 'document', and 'list_lengths' for"
            f" candidate lists, but has {sorted(keys)}. Rename or remove the others."
        )
    texts = SeparateTexts(given["query"], given["document"])
    if "list_lengths" not in keys:
        return PairInputs(texts)
    lengths = tf.convert_to_tensor(given["list_lengths"])
    if in_batch:
        return InBatchInputs(texts, lengths)
    return ListInputs(texts, lengths, tf.repeat(tf.range(tf.size(lengths)), lengths))
