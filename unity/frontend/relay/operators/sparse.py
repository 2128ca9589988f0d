"""Sparse weights that are known, as dense ones; arithmetic on the indices of sparse tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from unity.errors import UnityError
from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.ir.dims import Dim
from unity.ir.graph import Constant, Expr, Tuple

from .linear import product, turned


def _matrix(c: RelayCall, first: int, columns: Dim | None = None) -> npt.NDArray[Any]:
    """The matrix of operands that are its data (numbers, or blocks), columns and rows' ends."""
    data, *places = (c.known(first + i, "sparse weights") for i in range(3))
    indices, ends = (np.asarray(p, np.int64).reshape(-1) for p in places)
    rows, blocks = len(ends) - 1, data.reshape(len(data), *(data.shape[1:] or (1, 1)))
    ordered = rows >= 0 and not np.any(ends[1:] < ends[:-1])
    if not ordered or len(indices) != len(data) or ends[-1] > len(data):
        raise UnityError("the rows' ends don't fit the data")
    _, height, width = blocks.shape
    count = columns if isinstance(columns, int) else (int(indices.max(initial=-1)) + 1) * width
    if np.any(indices < 0) or np.any(indices >= -(-count // width)):
        raise UnityError(f"a column outside of {count}")
    found = np.zeros((rows, height, -(-count // width), width), data.dtype)
    for row in range(rows):
        for at in range(int(ends[row]), int(ends[row + 1])):
            found[row, :, int(indices[at])] += blocks[at]
    return np.ascontiguousarray(found.reshape(rows * height, -1)[:, :count])


def _sparse_dense(c: RelayCall) -> Expr:
    """A product with the transposed sparse matrix; of it with a transposed one, if it is left."""
    x, from_left = c.tensor(0), c.flag("sparse_lhs")
    dense = Constant(_matrix(c, 1, c.shape_of(x)[-1]))
    left, right = (dense, turned(c, x)) if from_left else (x, turned(c, dense))
    return product(c, left, right, c.dtype_of(x))


def _sparse_add(c: RelayCall) -> Expr:
    x = c.tensor(0)
    return c.op("add", x, Constant(_matrix(c, 1, c.shape_of(x)[-1])))


def _sparse_transpose(c: RelayCall) -> Expr:
    """A square matrix's data, columns and rows' ends, of those of its transpose."""
    c.drop("layout", "kernel_size")
    data, columns, ends = (c.known(i, "a sparse matrix") for i in range(3))
    if data.ndim != 1 or len(ends) < 1 or len(columns) != len(data):
        raise c.gap("a matrix of blocks")
    rows = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    order = np.lexsort((rows, columns))
    counts = np.bincount(columns, minlength=len(ends) - 1)
    if len(counts) > len(ends) - 1:
        raise UnityError("the matrix has more columns than rows")
    after = np.concatenate([[0], np.cumsum(counts)]).astype(ends.dtype)
    parts = data[order], rows[order].astype(columns.dtype), after
    return Tuple(tuple(Constant(np.ascontiguousarray(p)) for p in parts))


def _sparse_reshape(c: RelayCall) -> Expr:
    """Coordinates in a tensor of one shape as those in one of another; and that shape."""
    at = c.tensor(0)
    old = [int(d) for d in c.known(1, "a shape").reshape(-1)]
    new = [int(d) for d in c.known(2, "a shape").reshape(-1)]
    total = int(np.prod(old))
    if new.count(-1) == 1:
        rest = int(np.prod([d for d in new if d != -1]))
        new = [total // rest if d == -1 and rest else d for d in new]
    if int(np.prod(new)) != total:
        raise UnityError(f"{tuple(old)} is not to be reshaped to {tuple(new)}")
    kind = c.dtype_of(at)
    weights = np.cumprod([1, *reversed(old[1:])])[::-1].astype(kind.numpy)
    flat = c.op("sum", c.op("multiply", at, Constant(np.ascontiguousarray(weights))), axis=(1,))
    columns: list[Expr] = []
    for extent in reversed(new):
        size = c.number(extent, at)
        columns.insert(0, c.op("floor_mod", flat, size))
        flat = c.op("floor_divide", flat, size)
    shape = Constant(np.array(new, c.dtype_of(c.tensor(2)).numpy))
    return Tuple((c.cast(c.op("stack", columns, axis=1), kind), shape))


def _sparse_conv2d(c: RelayCall) -> Expr:
    """A convolution of single pixels: a product with the transposed sparse matrix."""
    layout, kernel = c.text("layout"), c.integers("kernel_size")
    if set(kernel) != {1}:
        raise c.gap(f"kernel_size={kernel}")
    if layout not in ("NHWC", "NCHW"):
        raise c.gap(f"layout={layout!r}")
    x = c.tensor(0)
    last = c.transposed(x, (0, 2, 3, 1)) if layout == "NCHW" else x
    dense = Constant(_matrix(c, 1, c.shape_of(last)[-1]))
    found = product(c, last, turned(c, dense), c.dtype_of(x))
    return c.transposed(found, (0, 3, 1, 2)) if layout == "NCHW" else found


def _fill_empty_rows(c: RelayCall) -> Expr:
    """A sparse tensor with an element in each row, and which rows had none."""
    at, values = c.tensor(0), c.tensor(1)
    rows = int(c.known(2, "a shape").reshape(-1)[0])
    (count, rank), kind = c.shape_of(at), c.dtype_of(at)
    default = c.reshaped(c.tensor(3), ()) if len(c.operands) > 3 else c.number(0, values)
    row = c.op("take", at, Constant(np.array(0, np.int64)), axis=1)
    nothing = c.op("zeros", (rows,), dtype=kind)
    ones = c.op("ones", (count,), dtype=kind)
    held = c.op("scatter_elements", nothing, row, ones, axis=0, reduction="add")
    empty = c.op("equal", held, c.number(0, held))
    places = c.op("permute_dims", c.op("nonzero", empty), axes=(1, 0))
    (lacking, _) = c.shape_of(places)
    first = Constant(np.eye(1, int(rank), dtype=kind.numpy)) if isinstance(rank, int) else None
    if first is None:
        raise c.gap("coordinates of an unknown rank")
    more = c.op("multiply", c.cast(places, kind), first)
    whole = c.op("concat", [at, more], axis=0)
    filled = c.op("concat", [values, c.op("full", (lacking,), default)], axis=0)
    order = c.op("argsort", c.op("take", whole, Constant(np.array(0, np.int64)), axis=1), axis=0)
    return Tuple((c.op("take", whole, order, axis=0), c.op("take", filled, order, axis=0), empty))


CONVERTERS: dict[str, Converter] = {
    "nn.sparse_conv2d": _sparse_conv2d,
    "sparse_fill_empty_rows": _fill_empty_rows,
    "nn.sparse_dense": _sparse_dense,
    "nn.sparse_add": _sparse_add,
    "nn.sparse_transpose": _sparse_transpose,
    "sparse_reshape": _sparse_reshape,
}
