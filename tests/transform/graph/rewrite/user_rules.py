"""Rewrite rules as users write them: some that hold, some that do not."""

from __future__ import annotations

from typing import TypeAlias

from unity import script
from unity.script import R, Tensor, dim, f32

n, m, k = dim("n"), dim("m"), dim("k")


@script.function
def exp_times_exp(x: f32[Tensor, ...], y: f32[Tensor, ...]) -> f32[Tensor, ...]:
    return R.multiply(R.exp(x), R.exp(y))


@script.function
def exp_of_sum(x: f32[Tensor, ...], y: f32[Tensor, ...]) -> f32[Tensor, ...]:
    return R.exp(R.add(x, y))


@script.function
def times_one(x: R.any_dtype[Tensor, ...]) -> R.any_dtype[Tensor, ...]:
    return R.multiply(x, 1)


@script.function
def itself(x: R.any_dtype[Tensor, ...]) -> R.any_dtype[Tensor, ...]:
    return x


@script.function
def turned_twice(x: R.any_dtype[Tensor, n, m]) -> R.any_dtype[Tensor, n, m]:
    return R.permute_dims(R.permute_dims(x, (1, 0)), (1, 0))


@script.function
def not_turned(x: R.any_dtype[Tensor, n, m]) -> R.any_dtype[Tensor, n, m]:
    return x


@script.function
def two_products(
    x: f32[Tensor, n, k], v: f32[Tensor, k, m], w: f32[Tensor, k, m]
) -> f32[Tensor, n, m]:
    return R.add(R.matmul(x, v), R.matmul(x, w))


@script.function
def one_product(
    x: f32[Tensor, n, k], v: f32[Tensor, k, m], w: f32[Tensor, k, m]
) -> f32[Tensor, n, m]:
    return R.matmul(x, R.add(v, w))


@script.function
def rows_apart(x: f32[Tensor, n, m, 4]) -> f32[Tensor, n * m, 4]:
    return R.exp(R.reshape(x, (n * m, 4)))


@script.function
def rows_after(x: f32[Tensor, n, m, 4]) -> f32[Tensor, n * m, 4]:
    return R.reshape(R.exp(x), (n * m, 4))


@script.function
def by_sigmoid(x: f32[Tensor, ...]) -> f32[Tensor, ...]:
    return R.multiply(x, R.sigmoid(x))


@script.function
def by_silu(x: f32[Tensor, ...]) -> f32[Tensor, ...]:
    return R.nn.silu(x)


@script.function
def norm_by_hand(x: f32[Tensor, n, m]) -> f32[Tensor, n, m]:
    centred = R.subtract(x, R.mean(x, axis=-1, keepdims=True))
    variance = R.mean(R.multiply(centred, centred), axis=-1, keepdims=True)
    return R.divide(centred, R.sqrt(R.add(variance, 1e-5)))


@script.function
def norm_by_rsqrt(x: f32[Tensor, n, m]) -> f32[Tensor, n, m]:
    centred = R.subtract(x, R.mean(x, axis=-1, keepdims=True))
    variance = R.mean(R.multiply(centred, centred), axis=-1, keepdims=True)
    return R.multiply(centred, R.rsqrt(R.add(variance, 1e-5)))


@script.function
def first_half(x: f32[Tensor, n, 8]) -> f32[Tensor, n, 4]:
    parts = R.split(x, 2, axis=1)
    return R.exp(parts[0])


@script.function
def first_slice(x: f32[Tensor, n, 8]) -> f32[Tensor, n, 4]:
    return R.exp(R.strided_slice(x, axes=(1,), begin=(0,), end=(4,)))


@script.function
def side_by_side(x: f32[Tensor, n, k], y: f32[Tensor, n, m]) -> f32[Tensor, n, k + m]:
    return R.nn.relu(R.concat((x, y), axis=1))


@script.function
def each_by_itself(x: f32[Tensor, n, k], y: f32[Tensor, n, m]) -> f32[Tensor, n, k + m]:
    return R.concat((R.nn.relu(x), R.nn.relu(y)), axis=1)


Pair: TypeAlias = "tuple[script.ScriptFunction[..., object], script.ScriptFunction[..., object]]"
TRUE: dict[str, Pair] = {
    "exponents": (exp_times_exp, exp_of_sum),
    "times one": (times_one, itself),
    "transposes": (turned_twice, not_turned),
    "products": (two_products, one_product),
    "reshape": (rows_apart, rows_after),
    "silu": (by_sigmoid, by_silu),
    "norm": (norm_by_hand, norm_by_rsqrt),
    "half": (first_half, first_slice),
    "concat": (side_by_side, each_by_itself),
}


@script.function
def difference(x: f32[Tensor, ...], y: f32[Tensor, ...]) -> f32[Tensor, ...]:
    return R.subtract(x, y)


@script.function
def other_way(x: f32[Tensor, ...], y: f32[Tensor, ...]) -> f32[Tensor, ...]:
    return R.subtract(y, x)


@script.function
def quotient(x: f32[Tensor, ...]) -> f32[Tensor, ...]:
    return R.divide(x, x)


@script.function
def ones(x: f32[Tensor, ...]) -> f32[Tensor, ...]:
    return R.ones_like(x)


@script.function
def last_axis(x: f32[Tensor, n, m]) -> f32[Tensor, n, m]:
    return R.nn.softmax(x, axis=-1)


@script.function
def first_axis(x: f32[Tensor, n, m]) -> f32[Tensor, n, m]:
    return R.nn.softmax(x, axis=0)


@script.function
def halved_and_doubled(x: R.any_dtype[Tensor, ...]) -> R.any_dtype[Tensor, ...]:
    return R.multiply(R.floor_divide(x, 2), 2)


@script.function
def product(x: f32[Tensor, ...], y: f32[Tensor, ...]) -> f32[Tensor, ...]:
    return R.multiply(x, y)


@script.function
def square(x: f32[Tensor, ...], y: f32[Tensor, ...]) -> f32[Tensor, ...]:
    return R.multiply(x, x)


@script.function
def doubled(x: f32[Tensor, n]) -> f32[Tensor, n]:
    return R.multiply(x, 2.0)


@script.function
def nearly_doubled(x: f32[Tensor, n]) -> f32[Tensor, n]:
    return R.multiply(x, 2.001)


@script.function
def summed(x: f32[Tensor, n]) -> f32[Tensor, ...]:
    return R.sum(x, axis=0)


@script.function
def summed_kept(x: f32[Tensor, n]) -> f32[Tensor, ...]:
    return R.sum(x, axis=0, keepdims=True)


@script.function
def clipped(x: f32[Tensor, ...]) -> f32[Tensor, ...]:
    return R.maximum(R.minimum(x, 50.0), -50.0)


@script.function
def unclipped(x: f32[Tensor, ...]) -> f32[Tensor, ...]:
    return x


@script.function
def softmax_by_hand(x: f32[Tensor, n, m]) -> f32[Tensor, n, m]:
    return R.divide(R.exp(x), R.sum(R.exp(x), axis=1, keepdims=True))


@script.function
def held_away_from_zero(x: f32[Tensor, n]) -> f32[Tensor, n]:
    return R.divide(x, R.maximum(R.abs(x), 1e-12))


@script.function
def sign(x: f32[Tensor, n]) -> f32[Tensor, n]:
    return R.divide(x, R.abs(x))


@script.function
def root_of_square(x: f32[Tensor, ...]) -> f32[Tensor, ...]:
    return R.sqrt(R.multiply(x, x))


@script.function
def magnitude(x: f32[Tensor, ...]) -> f32[Tensor, ...]:
    return R.abs(x)


FALSE: dict[str, Pair] = {
    "clip": (clipped, unclipped),
    "overflow": (last_axis, softmax_by_hand),
    "tiny": (held_away_from_zero, sign),
    "order": (difference, other_way),
    "zero": (quotient, ones),
    "axis": (last_axis, first_axis),
    "rounding": (halved_and_doubled, itself),
    "operand": (product, square),
    "constant": (doubled, nearly_doubled),
    "shape": (summed, summed_kept),
}
