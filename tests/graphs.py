"""What is in a graph, for tests that look for operations."""

import tensorflow as tf


def operations_in(graph: tf.Graph) -> set[str]:
    """Returns the kinds of operations in a graph and its functions, calls by name left out."""
    definition = graph.as_graph_def()
    nodes = [*definition.node, *nodes_of_functions(graph)]
    functions = {function.signature.name for function in definition.library.function}
    return {node.op for node in nodes} - functions


def nodes_of_functions(graph: tf.Graph) -> list:
    """Returns the nodes, with `op` and `input`, of all functions that a graph has."""
    functions = graph.as_graph_def().library.function
    return [node for function in functions for node in function.node_def]
