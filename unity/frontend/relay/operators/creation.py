"""Operators that make tensors of numbers, of shapes and of positions."""

from __future__ import annotations

import numpy as np

from unity.errors import UnityError
from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.frontend.run_time.slicing import counted, scalar
from unity.frontend.sizes import sizes_of
from unity.ir.dims import Dim, product
from unity.ir.dtype import INT32, DType
from unity.ir.graph import Constant, Expr


def _filled(value: int) -> Converter:
    def convert(c: RelayCall) -> Expr:
        kind = c.dtype_or("dtype", INT32)
        return c.op("full", c.integers("shape"), Constant(np.asarray(value, kind.numpy)))

    return convert


def _full(c: RelayCall) -> Expr:
    value = c.tensor(0)
    kind = c.dtype_or("dtype", c.dtype_of(value))
    return c.op("full", c.integers("shape"), c.cast(value, kind))


def _like(name: str) -> Converter:
    return lambda c: c.op(name, c.tensor(0))


def _full_like(c: RelayCall) -> Expr:
    x = c.tensor(0)
    return c.op("full_like", x, c.cast(c.tensor(1), c.dtype_of(x)))


def _arange(c: RelayCall) -> Expr:
    c.drop("start", "stop", "step")  # the operands say the same
    kind = c.dtype_or("dtype", c.dtype_of(c.tensor(0)))
    if any(c.constant(i) is None for i in range(3)):
        first, limit, each = (scalar(c, c.tensor(i)) for i in range(3))
        return c.cast(counted(c, first, limit, each), kind)
    start, stop, step = (c.scalar(i, "a bound of a range") for i in range(3))
    if step == 0:
        raise UnityError("the step is 0")
    count = max(0, int(np.ceil((stop - start) / step)))
    if count > 1 << 24:
        raise c.gap(f"a range of {count} elements")
    places = np.arange(count)
    return Constant((start + places * step).astype(kind.numpy))


def _shape_of(c: RelayCall) -> Expr:
    kind = c.dtype_or("dtype", INT32)
    return c.materialize(sizes_of(c.shape_of(c.tensor(0)), kind))


def _size(c: RelayCall) -> Expr:
    kind = c.dtype_or("dtype", INT32)
    return c.materialize(sizes_of(product(c.shape_of(c.tensor(0))), kind))


def _one_hot(c: RelayCall) -> Expr:
    kind = c.dtype_or("dtype", c.dtype_of(c.tensor(1)))
    return one_hot(c, c.integer("depth"), c.integer("axis"), kind)


def one_hot(c: RelayCall, depth: Dim, axis: int, kind: DType) -> Expr:
    """The first operand's indices as vectors of off with one on."""
    on, off = c.cast(c.tensor(1), kind), c.cast(c.tensor(2), kind)
    at = c.axis(axis, c.rank() + 1)
    # An index outside is none of the vector's; ours counts negative ones from the end.
    places = c.op("reshape", c.op("arange", depth), (depth, *(1,) * (c.rank() - at)))
    indices = c.tensor(0)
    shape = c.shape_of(indices)
    spread = c.op("reshape", indices, (*shape[:at], 1, *shape[at:]))
    equal = c.op("equal", spread, c.cast(places, c.dtype_of(indices)))
    return c.op("where", equal, on, off)


CONVERTERS: dict[str, Converter] = {
    "zeros": _filled(0),
    "ones": _filled(1),
    "full": _full,
    "zeros_like": _like("zeros_like"),
    "ones_like": _like("ones_like"),
    "full_like": _full_like,
    "arange": _arange,
    "shape_of": _shape_of,
    "vm.shape_of": _shape_of,
    "ndarray_size": _size,
    "one_hot": _one_hot,
}
