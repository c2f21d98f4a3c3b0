"""Optimizers whose cost follows the rows of a batch, not the size of the vocabulary."""

from __future__ import annotations

import math

import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat.keras_api import Optimizer, RowOptimizer, tf_variable
from tf_smoothclir.ops.kernels import RowAdagrad, sums_at, take_off_rows

# The accumulators of `SparseRMSprop` grow by this factor before they are scaled down again: small
# enough that neither a large gradient overflows float32 nor a small one vanishes.
_LARGEST_SCALE = 1e12


class _UniqueRows(RowOptimizer):
    """What the optimizers here share: sparse gradients, each of whose rows counts once."""

    def __init__(self, *args, unique_rows: bool = False, **kwargs):
        super().__init__(*args, **kwargs)
        self.unique_rows = unique_rows

    def update(self, gradient, variable, rate):
        """Updates the rows that a sparse `gradient` names, or all by a dense one."""
        if not self.unique_rows:
            gradient = each_row_once(gradient)
        self.update_rows(gradient, variable, rate)

    def update_rows(self, gradient, variable: tf.Variable, rate: tf.Tensor) -> None:
        """Does so where a sparse gradient names no row twice."""
        raise NotImplementedError

    def slot(self, slots: list, variable: tf.Variable) -> tf.Variable:
        """Returns the one of the `slots`, one for each trained variable, of `variable`."""
        return tf_variable(slots[self.position(variable)])

    def get_config(self):
        """Returns the arguments of the constructor."""
        return {**super().get_config(), "unique_rows": self.unique_rows}


@keras.utils.register_keras_serializable(package="tf_smoothclir")
class LazyAdam(_UniqueRows, keras.optimizers.Adam):
    """Adam (Kingma and Ba 2015) that leaves alone what a gradient does not name.

    For a sparse gradient, the moments of a row decay, and the row moves, only in steps that name
    it; the bias correction counts all steps. A step in which every row is named is exactly Adam.
    The gradients of a `TwoTower` name all words of a batch then, those with a gradient of zero too.
    Dense gradients are Adam always. The arguments are those of `keras.optimizers.Adam`, and
    `unique_rows`: sparse gradients never name a row twice, which saves the search for such rows.
    """

    moves_named_rows = True

    def update_rows(self, gradient, variable, rate):
        if not isinstance(gradient, tf.IndexedSlices) or self.amsgrad:
            self.keras_update(gradient, variable, rate)
            return
        moment, velocity = (
            self.slot(slots, variable) for slots in (self._momentums, self._velocities)
        )
        step = tf.cast(self.iterations + 1, variable.dtype)
        # In Keras's order of operations, so that the results are equal to the last bit.
        rate = tf.cast(rate, variable.dtype) * tf.sqrt(1.0 - self.beta_2**step)
        rate /= 1.0 - self.beta_1**step

        rows, values = gradient.indices, gradient.values
        new_moment = _decayed(tf.gather(moment, rows), values, self.beta_1)
        new_velocity = _decayed(tf.gather(velocity, rows), tf.square(values), self.beta_2)
        change = rate * new_moment / (tf.sqrt(new_velocity) + self.epsilon)
        moment.scatter_update(tf.IndexedSlices(new_moment, rows))
        velocity.scatter_update(tf.IndexedSlices(new_velocity, rows))
        take_off_rows(variable, rows, change)


def _decayed(old: tf.Tensor, new: tf.Tensor, rate: float) -> tf.Tensor:
    return old + (new - old) * (1.0 - rate)


@keras.utils.register_keras_serializable(package="tf_smoothclir")
class SparseAdagrad(_UniqueRows, Optimizer):
    """Adagrad (Duchi et al. 2011) in one fused kernel: A <- A + g²,  w <- w - rate g / sqrt(A).

    The sums of squares begin at 0. Keras's begin at 0.1, beside which the gradients of a mean over
    thousands of words, of the order of 1e-6 or smaller, are nothing.

    Args:
        learning_rate: Step size, a number or a schedule.
        epsilon: Added to the root, against a division by 0.
        **kwargs: `unique_rows` as in `LazyAdam`, and those of the Keras optimizer.
    """

    def __init__(self, learning_rate=0.4, epsilon: float = 1e-7, name="SparseAdagrad", **kwargs):
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)
        self.epsilon = epsilon

    def build(self, var_list):
        """Creates an accumulator for each variable."""
        super().build(var_list)
        if not hasattr(self, "_accumulators"):
            self._accumulators = [
                self.add_variable_from_reference(variable, "accumulator") for variable in var_list
            ]
            self._row_updates = [
                RowAdagrad(tf_variable(variable), tf_variable(accumulator))
                for variable, accumulator in zip(var_list, self._accumulators)
            ]
            self._built = True

    def update_rows(self, gradient, variable, rate):
        self._apply(gradient, variable, tf.cast(rate, variable.dtype), self.epsilon)

    def _apply(self, gradient, variable, rate, epsilon) -> None:
        if isinstance(gradient, tf.IndexedSlices):
            self._row_updates[self.position(variable)](gradient, rate, epsilon)
        else:
            tf.raw_ops.ResourceApplyAdagradV2(
                var=variable.handle,
                accum=self.slot(self._accumulators, variable).handle,
                lr=rate,
                epsilon=epsilon,
                grad=gradient,
            )

    def get_config(self):
        """Returns the arguments of the constructor."""
        return {**super().get_config(), "epsilon": self.epsilon}


@keras.utils.register_keras_serializable(package="tf_smoothclir")
class SparseRMSprop(SparseAdagrad):
    """RMSprop with Adam's bias correction, which is exactly Adam without momentum (beta_1 = 0).

        v <- rho v + (1 - rho) g²,  w <- w - rate sqrt(1 - rho^step) g / (sqrt(v) + epsilon)

    Nothing about it is lazy: v decays in every row at every step, and rows without a gradient do
    not move in Adam without momentum either. Yet a step costs no more than one of Adagrad: kept is
    v / (1 - rho) / rho^step, which gains g² / rho^step and so is Adagrad's accumulator of a growing
    gradient. Once in many steps all of it is scaled down.

    Args:
        learning_rate: Step size, a number or a schedule.
        rho: Decay of the mean square in a step, inside (0, 1); Adam's beta_2.
        epsilon: Added to the root, as in Keras's Adam. It matters: the gradients of rare words are
            not much larger.
        scaled_gradients: Gradients come multiplied by `gradient_scale()`, as those of a loss are
            that was multiplied by it; that saves one pass over all of them.
        **kwargs: `unique_rows` as in `LazyAdam`, and those of the Keras optimizer.

    Raises:
        ValueError: `rho` is not inside (0, 1).
    """

    def __init__(
        self,
        learning_rate=0.01,
        rho: float = 0.999,
        epsilon=1e-7,
        scaled_gradients: bool = False,
        name="SparseRMSprop",
        **kwargs,
    ):
        super().__init__(learning_rate, epsilon, name=name, **kwargs)
        if not 0 < rho < 1:
            raise ValueError(f"rho must be inside (0, 1), got {rho!r}: 0.999 is the default")
        self.rho = rho
        self.scaled_gradients = scaled_gradients
        self._period = math.ceil(math.log(_LARGEST_SCALE) / -math.log(rho))

    def gradient_scale(self) -> tf.Tensor:
        """Returns rho^(-(step + 1) / 2), a float64 scalar; step counts from the last scaling."""
        step = self.iterations % self._period
        return self.rho ** (-0.5 * tf.cast(step + 1, tf.float64))

    def update_rows(self, gradient, variable, rate):
        accumulator = self.slot(self._accumulators, variable)
        tf.cond(
            self.iterations % self._period == 0,
            lambda: _scale_in_place(accumulator, self.rho**self._period),
            lambda: None,
        )
        wide, dtype = tf.float64, variable.dtype  # the powers need it
        scale = self.gradient_scale()
        if not self.scaled_gradients:
            gradient = _scaled(gradient, tf.cast(scale, dtype))
        correction = 1 - self.rho ** tf.cast(self.iterations + 1, wide)
        rate = tf.cast(rate, wide) * tf.sqrt(correction / (1 - self.rho))
        epsilon = self.epsilon * scale / math.sqrt(1 - self.rho)
        self._apply(gradient, variable, tf.cast(rate, dtype), tf.cast(epsilon, dtype))

    def get_config(self):
        """Returns the arguments of the constructor."""
        own = {"rho": self.rho, "scaled_gradients": self.scaled_gradients}
        return {**super().get_config(), **own}


def gradient_scale(optimizer: keras.optimizers.Optimizer) -> tf.Tensor | float:
    """Returns what an optimizer wants a loss to be multiplied by; 1 as a rule."""
    if getattr(optimizer, "scaled_gradients", False):
        return optimizer.gradient_scale()
    return 1.0


def _scale_in_place(variable: tf.Variable, factor: float) -> None:
    """Multiplies a variable where it lies: a new one would be another table in memory."""
    if variable.shape.rank == 0:  # it has no rows
        variable.assign(variable * factor)
        return
    rows = tf.range(tf.raw_ops.VariableShape(input=variable.handle)[0])
    tf.raw_ops.ResourceScatterMul(resource=variable.handle, indices=rows, updates=factor)


def _scaled(gradient, factor):
    return _with_values(gradient, _values(gradient) * factor)


def clipped(gradients: list, norm: tf.Tensor, limit: float) -> list:
    """Scales gradients down to a joint norm of `limit` where `norm`, theirs, is larger.

    Unlike `tf.clip_by_global_norm` it costs nothing where they are smaller, which is the rule. The
    None of what has no gradient stays.
    """
    found = [gradient for gradient in gradients if gradient is not None]
    scaled = tf.cond(
        norm > limit,
        lambda: [_values(_scaled(gradient, limit / norm)) for gradient in found],
        lambda: [_values(gradient) for gradient in found],
    )
    values = iter(scaled)
    return [g if g is None else _with_values(g, next(values)) for g in gradients]


def _with_values(gradient, values: tf.Tensor):
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    return values


def _values(gradient) -> tf.Tensor:
    return gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient


def each_row_once(gradient):
    """Adds up the values of equal rows of a sparse gradient; only then is its norm right."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    rows, positions = tf.unique(gradient.indices)
    values = sums_at(positions, gradient.values, tf.range(tf.size(positions)), tf.size(rows))
    return tf.IndexedSlices(values, rows, gradient.dense_shape)


OPTIMIZERS = {
    "lazy_adam": LazyAdam,
    "adam": keras.optimizers.Adam,
    "rmsprop": SparseRMSprop,
    "adagrad": SparseAdagrad,
}
LEARNING_RATES = {"lazy_adam": 0.01, "adam": 0.01, "rmsprop": 0.01, "adagrad": 0.4}


def make_optimizer(name: str, learning_rate: float = 0.0) -> keras.optimizers.Optimizer:
    """Returns an optimizer by name, for `TwoTower`: rows are unique, and losses are scaled.

    Args:
        name: One of `OPTIMIZERS`.
        learning_rate: Step size; 0 stands for that of `LEARNING_RATES`, the paper's for Adam.
    """
    kind = OPTIMIZERS[name]
    options = {"unique_rows": True} if issubclass(kind, _UniqueRows) else {}
    if kind is SparseRMSprop:
        options["scaled_gradients"] = True
    return kind(learning_rate=learning_rate or LEARNING_RATES[name], **options)
