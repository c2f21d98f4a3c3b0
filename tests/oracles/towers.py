"""Slow plain-NumPy towers that read word order: one text, one word at a time."""

from __future__ import annotations

import numpy as np


def cnn(words, filters, biases, kernel, bias) -> np.ndarray:
    """DSSM-CNN of one text.

    Args:
        words: Word vectors, `[tokens, dim]`.
        filters: `[3 * dim, filters]`; the word before, the word, the word after.
        biases: `[filters]`.
        kernel: Of the fully connected layer, `[filters, dim]`.
        bias: `[dim]`.
    """
    words = np.asarray(words, "f8")
    if not len(words):
        return np.zeros(len(bias))
    edge = np.zeros(words.shape[1])
    responses = []
    for place, word in enumerate(words):
        before = words[place - 1] if place > 0 else edge
        after = words[place + 1] if place + 1 < len(words) else edge
        window = np.concatenate([before, word, after])
        responses.append(np.tanh(window @ np.asarray(filters, "f8") + biases))
    return np.tanh(np.max(responses, axis=0) @ np.asarray(kernel, "f8") + bias)


def bidirectional_lstm(words, forward, backward, kernel, bias) -> np.ndarray:
    """DSSM-LSTM of one text; `forward` and `backward` are the weights that `lstm` takes."""
    if not len(words):
        return np.zeros(len(bias))
    states = [lstm(words, *forward), lstm(words[::-1], *backward)]
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
