"""What is in a graph, for tests that look for operations."""

from __future__ import annotations

import tensorflow as tf


def operations_in(graph: tf.Graph) -> set[str]:
    """Returns the kinds of operations in a graph and its functions, calls by name left out."""
    definition = graph.as_graph_def()
    functions = definition.library.function
    nodes = [*definition.node, *(node for function in functions for node in function.node_def)]
    return {node.op for node in nodes} - {function.signature.name for function in functions}
