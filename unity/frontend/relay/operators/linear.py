"""Matrix products. A weight of ``nn.dense`` has its outputs first; none is transposed unasked."""

from __future__ import annotations

from functools import partial

from unity.errors import UnityError
from unity.frontend.products import matmul
from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.ir.dtype import DType
from unity.ir.graph import Expr
from unity.op.contraction.einsum_product import einsum

from .convolutions import one_dtype


def product(c: RelayCall, a: Expr, b: Expr, out: DType) -> Expr:
    """A matrix product whose sums are of a dtype."""
    a, b = one_dtype(c, a, b, out)
    return matmul(c, a, b, None if out == c.dtype_of(a) else out)


def turned(c: RelayCall, x: Expr) -> Expr:
    """A tensor with its last two axes exchanged."""
    rank = len(c.shape_of(x))
    if rank < 2:
        raise UnityError(f"a tensor of rank {rank} can't be transposed")
    return c.transposed(x, (*range(rank - 2), rank - 1, rank - 2))


def _dense(c: RelayCall) -> Expr:
    x, weight = c.tensor(0), c.tensor(1)
    _check_units(c, weight, 0)
    return product(c, x, turned(c, weight), c.dtype_or("out_dtype", c.dtype_of(x)))


def _check_units(c: RelayCall, weight: Expr, axis: int) -> None:
    units = c.optional_integer("units")
    if units is not None and c.shape_of(weight)[axis] != units:
        raise UnityError(f"units is {units}, but the weight has {c.shape_of(weight)[axis]}")


def _matmul(c: RelayCall) -> Expr:
    a, b = c.tensor(0), c.tensor(1)
    flipped = c.flag("transpose_b")
    _check_units(c, b, -2 if flipped else -1)
    left = turned(c, a) if c.flag("transpose_a") else a
    return product(c, left, turned(c, b) if flipped else b, c.dtype_or("out_dtype", c.dtype_of(a)))


def _batch_matmul(c: RelayCall) -> Expr:
    a, b = c.tensor(0), c.tensor(1)
    left = turned(c, a) if c.flag("transpose_a") else a
    right = turned(c, b) if c.flag("transpose_b") else b
    return product(c, left, right, c.dtype_or("out_dtype", c.dtype_of(a)))


def _packed_dense(c: RelayCall) -> Expr:
    """A product with a weight in blocks of columns, ``NC8n``: (units / 8, inputs, 8)."""
    x, weight = c.tensor(0), c.tensor(1)
    c.drop("units")
    shape = c.shape_of(weight)
    layout = c.text("weight_layout")
    if len(shape) != 3:
        raise UnityError(f"takes a weight of three axes, as NC8n, got {shape}")
    outer, taken, inner = shape
    if layout not in ("NC", f"NC{inner}n"):  # NC is the default, whatever the weight is in
        raise c.gap(f"weight_layout={layout!r} of a weight of the shape {shape}")
    columns = c.op("reshape", c.transposed(weight, (1, 0, 2)), (taken, outer * inner))
    return product(c, x, columns, c.dtype_or("out_dtype", c.dtype_of(x)))


def _einsum(c: RelayCall) -> Expr:
    return einsum(c, c.text("equation"), c.fields(0), partial(matmul, c))


CONVERTERS: dict[str, Converter] = {
    "nn.dense": _dense,
    "nn.matmul": _matmul,
    "nn.batch_matmul": _batch_matmul,
    "nn.contrib_dense_pack": _packed_dense,
    "einsum": _einsum,
}
