"""Slow plain-NumPy towers that read word order: one text, one word at a time."""

import numpy as np


def cnn(words, filters, biases, kernel, bias, as_published=False) -> np.ndarray:
    """DSSM-CNN of one text; as published, windows lie inside it and there is no tanh at the end.

    Words `[tokens, dim]`, filters `[3 * dim, filters]` of windows, kernel `[filters, dim]`.
    """
    words = np.asarray(words, "f8")
    if not len(words):
        return np.zeros(len(bias))
    edge = np.zeros(words.shape[1])
    words = [*words, *([edge] * (3 - len(words)))] if as_published else [edge, *words, edge]
    windows = [np.concatenate(words[start : start + 3]) for start in range(len(words) - 2)]
    responses = [np.tanh(window @ np.asarray(filters, "f8") + biases) for window in windows]
    vector = np.max(responses, axis=0) @ np.asarray(kernel, "f8") + bias
    return vector if as_published else np.tanh(vector)


def bidirectional_lstm(words, forward, backward, kernel, bias, as_published=False) -> np.ndarray:
    """DSSM-LSTM of one text; `forward` and `backward` are the weights that `lstm` takes.

    As published, both states are read at the first word.
    """
    if not len(words):
        return np.zeros(len(bias))
    read = words[:1] if as_published else words
    states = [lstm(read, *forward), lstm(words[::-1], *backward)]
    return np.tanh(np.concatenate(states) @ np.asarray(kernel, "f8") + bias)


def lstm(words, kernel, recurrent_kernel, bias) -> np.ndarray:
    """Last state of an LSTM (Hochreiter and Schmidhuber 1997, with forget gates), gates i f c o."""
    units = len(bias) // 4
    state, cell = np.zeros(units), np.zeros(units)
    for word in np.asarray(words, "f8"):
        gates = word @ np.asarray(kernel, "f8") + state @ np.asarray(recurrent_kernel, "f8") + bias
        entrance, forget, candidate, exit_ = np.split(gates, 4)
        cell = sigmoid(forget) * cell + sigmoid(entrance) * np.tanh(candidate)
        state = sigmoid(exit_) * np.tanh(cell)
    return state


def sigmoid(x):
    """1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))
