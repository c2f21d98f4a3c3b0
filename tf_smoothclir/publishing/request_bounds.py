"""Bounds on what a request makes an exported model compute, in the graph: for any model server."""

from collections.abc import Callable

import tensorflow as tf

MAX_ANSWER = 1 << 22  # numbers in an answer
MAX_TOKENS = 1 << 16  # of a request that gives ids of tokens, padded to the longest text
TEXTS_AT_ONCE = 1024
_BYTES_AT_ONCE = 1 << 21  # of their texts; a longer one is read alone
_TEXT = tf.TensorSpec([None], tf.string)


def checked(tensor: tf.Tensor, *conditions: tuple[tf.Tensor, str]) -> tf.Tensor:
    """The tensor once all conditions hold; else `InvalidArgumentError` with the message of one."""
    checks = [tf.debugging.Assert(holds, [message]) for holds, message in conditions]
    with tf.control_dependencies(checks):
        return tf.identity(tensor)


def bounded(rows: tf.Tensor, width: int) -> tf.Tensor:
    """The rows of a request whose answer has `width` numbers for each, if these are few enough."""
    most = MAX_ANSWER // max(width, 16)  # even a row that answers little takes some memory
    message = f"a request may have {most} rows; send several requests."
    return checked(rows, (tf.size(rows) <= most, message))


def in_pieces(
    compute: Callable[..., dict[str, tf.Tensor]], *texts: tf.Tensor, at_once: int = TEXTS_AT_ONCE
) -> dict[str, tf.Tensor]:
    """What `compute` makes of texts, some rows at a time: memory does not grow with the request."""
    # Texts are `[rows]` string each, or `[1]` for all; the last one is `[rows]`.
    rows = tf.size(texts[-1])
    for_all = [tf.size(text) != rows for text in texts]
    sizes = sum(
        tf.where(is_shared, 0, tf.strings.length(text)) for is_shared, text in zip(for_all, texts)
    )
    ends = tf.concat([[0], tf.cumsum(tf.cast(sizes, tf.int64))], axis=0)
    traced = tf.function(compute, autograph=False).get_concrete_function(*[_TEXT for _ in texts])
    made = traced.structured_outputs

    def compute_some(begin, piece, arrays):
        end = tf.searchsorted(ends, [ends[begin] + _BYTES_AT_ONCE], side="right")[0] - 1
        end = tf.minimum(tf.clip_by_value(end, begin + 1, begin + at_once), rows)
        computed = traced(
            *(
                text[tf.where(is_shared, 0, begin) : tf.where(is_shared, 1, end)]
                for is_shared, text in zip(for_all, texts)
            )
        )
        return end, piece + 1, {name: arrays[name].write(piece, computed[name]) for name in arrays}

    arrays = {
        name: tf.TensorArray(
            output.dtype, 0, dynamic_size=True, infer_shape=False, element_shape=output.shape
        )
        for name, output in made.items()
    }
    _, _, arrays = tf.while_loop(
        lambda begin, piece, _: (begin < rows) | (piece == 0),
        compute_some,
        (0, 0, arrays),
        parallel_iterations=1,
    )
    return {name: tf.ensure_shape(arrays[name].concat(), made[name].shape) for name in made}
