"""Slices, paddings and ranges whose bounds are known only at run time."""

from __future__ import annotations

from collections.abc import Sequence

from unity.frontend.emission import Emission
from unity.frontend.sizes import is_symbolic
from unity.ir.dims import Dim, always_ge, as_dim, dim
from unity.ir.dtype import FLOAT32, FLOAT64, INT64, DType
from unity.ir.graph import Constant, Expr

from .axes import checked
from .vectors import Ints, bound, ints_of, places, vector_of


def placed(node: Emission, axes: Ints, values: Ints, rank: int, otherwise: Ints | int) -> Ints:
    """For each of `rank` axes its value, where axes are listed with values; else another."""
    listed = checked(node, axes, rank).row(0).equals(places(node, rank).row(1))
    given = listed.choose(values.row(0), 0).op("sum", axis=1)
    return listed.op("any", axis=1).choose(given, otherwise)


def sliced(
    node: Emission, x: Expr, over: Sequence[int], starts: Ints, ends: Ints, steps: Ints
) -> Expr:
    """A slice by Python's rules.

    Args:
        node: What this is emitted for.
        x: The tensor.
        over: The axes that are sliced, one for each element of the vectors.
        starts: Where slices begin; negative ones count from the end.
        ends: Where they end.
        steps: Their steps, which are checked not to be 0.
    """
    extents = vector_of(node, [node.shape_of(x)[a] for a in over])
    forward = steps > 0
    low = forward.choose(0, -1)
    high = extents + low
    start = (starts < 0).choose(starts + extents, starts).most(low).least(high)
    end = (ends < 0).choose(ends + extents, ends).most(low).least(high)
    still = steps.equals(0)
    length = (-((start - end) // still.choose(1, steps))).most(0)
    lengths = bound(node, still.choose(-1, length), "length")
    begin = start.most(0)
    if isinstance(steps.value, Constant) and (steps.value.data == 1).all():
        return run_of(node, x, over, bound(node, begin, "start"), lengths)
    for k, axis in enumerate(over):
        nth = ints_of(node, node.op("arange", 0, lengths[k], 1, dtype=INT64))
        at = nth * steps.element(k) + begin.element(k)
        x = node.op("take", x, at.value, axis=axis)
    return x


def run_of(
    node: Emission, x: Expr, over: Sequence[int], begins: Sequence[Dim], lengths: Sequence[Dim]
) -> Expr:
    """So many elements in a row along some axes, each from a place on."""
    ends = tuple(as_dim(b + n) for b, n in zip(begins, lengths, strict=True))
    part = node.op(
        "strided_slice", x, axes=tuple(over), begin=tuple(begins), end=ends, strides=None
    )
    shape = list(node.shape_of(x))
    for axis, length in zip(over, lengths, strict=True):
        shape[axis] = length
    return node.assert_shape(part, tuple(shape))


def counted(
    node: Emission, start: Expr, limit: Expr, delta: Expr, length: Dim | None = None
) -> Expr:
    """The numbers from a start up to a limit, each by a step more; scalars of one dtype.

    How many there are is exact for integers; of floats it is the quotient in float64, of the
    difference in their own dtype, as onnxruntime counts.

    Args:
        node: What this is emitted for.
        start: The first one.
        limit: What they end before.
        delta: The step.
        length: How many there are, where sizes tell: steps of 0 are then none to refuse.
    """
    kind = node.dtype_of(start)
    if length is not None:
        return _numbers(node, start, delta, length, INT64 if kind.is_int else FLOAT64)
    distance = node.op("subtract", limit, start)
    if kind.is_int:
        span, step = ints_of(node, distance), ints_of(node, delta)
        still = step.equals(0)
        count = -(-span // still.choose(1, step))
        wide = INT64
    else:
        quotient = node.op("divide", node.cast(distance, FLOAT64), node.cast(delta, FLOAT64))
        still = Ints(node, node.op("logical_not", node.op("isfinite", quotient)))
        whole = node.op("where", still.value, node.number(0.0, quotient), quotient)
        count = ints_of(node, node.op("ceil", whole))
        wide = kind if kind.bits >= 32 else FLOAT32
    (length,) = bound(node, still.choose(-1, count.most(0)), "length")
    return _numbers(node, start, delta, length, wide)


def _numbers(node: Emission, start: Expr, delta: Expr, length: Dim, wide: DType) -> Expr:
    """So many numbers from a start on, reckoned in a wide dtype."""
    nth = node.cast(node.op("arange", 0, length, 1, dtype=INT64), wide)
    steps = node.op("multiply", nth, node.cast(delta, wide))
    return node.cast(node.op("add", node.cast(start, wide), steps), node.dtype_of(start))


def diagonal(node: Emission, x: Expr, k: Expr, *, upper: bool) -> Expr:
    """The triangle of each matrix from the k-th diagonal on, `k` a scalar; else 0."""
    rows, columns = node.shape_of(x)[-2:]
    row = node.op("expand_dims", node.op("arange", 0, rows, 1, dtype=INT64), axis=1)
    edge = node.op("add", row, node.cast(k, INT64))
    column = node.op("arange", 0, columns, 1, dtype=INT64)
    keep = node.op("greater_equal" if upper else "less_equal", column, edge)
    return node.op("where", keep, x, node.number(0, x))


def scalar(node: Emission, value: Expr) -> Expr:
    """A tensor of one element as a scalar; that it has one is checked where only running tells."""
    shape = node.shape_of(value)
    if not shape:
        return value
    if any(is_symbolic(d) for d in shape):
        value = node.assert_shape(value, tuple(1 if is_symbolic(d) else d for d in shape))
    return node.op("reshape", value, ())


def long_enough(node: Emission, x: Expr, axis: int, least: Dim) -> Expr:
    """A tensor to be sorted, whose extent is checked at run time if it may be less than so much."""
    shape = node.shape_of(x)
    if always_ge(shape[axis], least):
        return x
    if not isinstance(least, int):
        others = node.sized(as_dim(shape[axis] - least), f"{node.label}_beyond")
        return node.assert_shape(x, (*shape[:axis], as_dim(least + others), *shape[axis + 1 :]))
    name = node.builder.fresh(f"{node.label}_axis_{axis}_sorted").name
    return node.assert_shape(x, (*shape[:axis], dim(name, min=least), *shape[axis + 1 :]))
