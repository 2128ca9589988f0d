"""Sorting, searching, running sums, and what is said of positions."""

from __future__ import annotations

import numpy as np

from unity.errors import UnityError
from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.frontend.run_time.slicing import long_enough
from unity.frontend.sizes import sizes_of
from unity.ir.dims import Dim, as_dim, product
from unity.ir.dtype import BOOL, INT32, INT64
from unity.ir.graph import Constant, Expr, Tuple
from unity.ir.types import Shape

from .elementwise import as_bool


def _sort(c: RelayCall) -> Expr:
    c.drop("dtype")
    axis = c.axis(c.integer("axis"), c.rank())
    return c.op("sort", c.tensor(0), axis=axis, descending=not c.flag("is_ascend"))


def _argsort(c: RelayCall) -> Expr:
    kind = c.dtype_or("dtype", INT32)
    axis = c.axis(c.integer("axis"), c.rank())
    found = c.op("argsort", c.tensor(0), axis=axis, descending=not c.flag("is_ascend"))
    return c.cast(found, kind)


def _topk(c: RelayCall) -> Expr:
    return topk(c, c.integer("k"))


def topk(c: RelayCall, k: Dim) -> Expr:
    """The largest or smallest, sorted; fewer than 1 means all."""
    x, axis = c.tensor(0), c.axis(c.integer("axis"), c.rank())
    extent = c.shape_of(x)[axis]
    kind, largest, which = c.dtype_or("dtype", INT32), not c.flag("is_ascend"), c.text("ret_type")
    count = extent if isinstance(k, int) and k < 1 else k
    if isinstance(count, int) and isinstance(extent, int) and count > extent:
        raise UnityError(f"k is {count}, the axis has {extent} elements")
    both = c.op("topk", long_enough(c, x, axis, count), k=count, axis=axis, largest=largest)
    values, places = c.field(both, 0), c.cast(c.field(both, 1), kind)
    match which:
        case "values":
            return values
        case "indices":
            return places
        case _:
            return Tuple((values, places))


def _searchsorted(c: RelayCall) -> Expr:
    """How many of the sorted elements are less than each value (with ``right``, not greater)."""
    rows, values = c.tensor(0), c.tensor(1)
    kind, right = c.dtype_or("dtype", INT32), c.flag("right")
    shape, rank = c.shape_of(values), c.rank(0)
    many = c.op("reshape", values, (*shape, 1))
    if rank > 1:
        sorted_shape = c.shape_of(rows)
        rows = c.op("reshape", rows, (*sorted_shape[:-1], 1, sorted_shape[-1]))
    passed = c.op("less_equal" if right else "less", rows, many)
    return c.op("sum", c.cast(passed, kind), axis=(-1,))


def _cumsum(c: RelayCall) -> Expr:
    x, axis, exclusive = c.tensor(0), c.optional_integer("axis"), c.flag("exclusive")
    kind = c.dtype_or("dtype", c.dtype_of(x))
    if axis is None:
        x = c.op("reshape", x, (product(c.shape_of(x)),))
    at = 0 if axis is None else c.axis(axis, c.rank())
    if c.dtype_of(x) == BOOL and kind == BOOL:
        raise c.gap("elements of bool")
    return c.op("cumsum", c.cast(x, kind), axis=at, exclusive=exclusive)


def _cumprod(c: RelayCall) -> Expr:
    """Running products: each step multiplies by those twice as far away."""
    x, axis, exclusive = c.tensor(0), c.optional_integer("axis"), c.flag("exclusive")
    kind = c.dtype_or("dtype", c.dtype_of(x))
    if axis is None:
        x = c.op("reshape", x, (product(c.shape_of(x)),))
    at = 0 if axis is None else c.axis(axis, c.rank())
    x, count = c.cast(x, kind), c.extents(x, "running products")[at]
    if exclusive:
        x = _shifted(c, x, at, 1, count)
    distance = 1
    while distance < count:
        x = c.op("multiply", x, _shifted(c, x, at, distance, count))
        distance *= 2
    return x


def _shifted(c: RelayCall, x: Expr, axis: int, by: int, count: int) -> Expr:
    """Elements moved along an axis, behind as many ones."""
    shape = list(c.shape_of(x))
    shape[axis] = min(by, count)
    ones = c.op("ones", tuple(shape), dtype=c.dtype_of(x))
    rest = c.op("strided_slice", x, axes=(axis,), begin=(0,), end=(max(count - by, 0),))
    return c.op("concat", [ones, rest], axis=axis)


def _unique(c: RelayCall) -> Expr:
    """Elements of a vector once each, the first places of each, what each is, their number.

    All are as long as the input; behind as many as there are they hold zeros.
    """
    x, counted, ordered = c.tensor(0), c.flag("return_counts"), c.flag("sorted")
    (count,) = c.shape_of(x)
    if count == 0:
        raise c.gap("no elements")
    found = c.op(
        "unique", x, sorted=ordered, return_index=True, return_inverse=True, return_counts=True
    )
    values, first, inverse, counts = (c.field(found, k) for k in range(4))
    (number,) = c.shape_of(first)

    def whole(v: Expr) -> Expr:
        return c.op("nn.pad", v, pad_width=(0, as_dim(count - number)))

    total = c.op("reshape", c.materialize(sizes_of(number)), (1,))
    results = [
        whole(values),
        c.cast(whole(first), INT32),
        c.cast(inverse, INT32),
        c.cast(total, INT32),
    ]
    if counted:
        results.append(c.cast(whole(counts), INT32))
    return Tuple(tuple(results))


def _argwhere(c: RelayCall) -> Expr:
    found = c.op("nonzero", as_bool(c, c.tensor(0)))
    return c.cast(c.op("permute_dims", found, axes=(1, 0)), INT32)


def _invert_permutation(c: RelayCall) -> Expr:
    x = c.tensor(0)
    return c.cast(c.op("argsort", x, axis=0), c.dtype_of(x))


def _unravel_index(c: RelayCall) -> Expr:
    """The coordinates of places in a tensor of a shape, a row for each of its axes."""
    at, kind = c.tensor(0), c.dtype_of(c.tensor(0))
    extents = [int(d) for d in c.known(1, "a shape").reshape(-1)]
    rows: list[Expr] = []
    for extent in reversed(extents):
        size = c.number(extent, at)
        rows.insert(0, c.op("floor_mod", at, size))
        at = c.op("floor_divide", at, size)
    return c.cast(c.op("stack", rows, axis=0), kind)


def _sparse_to_dense(c: RelayCall) -> Expr:
    return sparse_to_dense(c, c.integers("output_shape"))


def sparse_to_dense(c: RelayCall, shape: Shape) -> Expr:
    """Values at coordinates of a tensor of a default elsewhere."""
    indices, values = c.cast(c.tensor(0), INT64), c.tensor(1)
    default = c.tensor(2) if len(c.operands) > 2 else c.number(0, values)
    x = c.op("full", shape, c.op("reshape", default, ()))
    if len(c.shape_of(indices)) < 2:
        indices = c.op("reshape", indices, (-1, 1))
    count = c.shape_of(indices)[0]
    updates = c.op("broadcast_to", values, (count,))
    return c.op("scatter_nd", x, indices, updates)


def _stft(c: RelayCall) -> Expr:
    """The Fourier transforms of windows of signals: (signals, frequencies, windows, 2)."""
    x, window = c.tensor(0), c.tensor(1)
    size, hop, length = (c.integer(n) for n in ("n_fft", "hop_length", "win_length"))
    normalized, onesided = c.flag("normalized"), c.flag("onesided")
    if length != size:
        raise c.gap(f"win_length={length} beside n_fft={size}")
    if hop < 1 or not 0 < size <= 4096:
        raise c.gap(f"hop_length={hop}, n_fft={size}")
    count = c.extents(x, "a signal")[-1]
    starts = np.arange((count - size) // hop + 1) * hop
    frames = c.op("take", x, Constant(starts[:, None] + np.arange(size)), axis=1)
    framed = c.op("multiply", frames, window)
    rows = size // 2 + 1 if onesided else size
    kind = c.dtype_of(x).numpy
    scale = size**-0.5 if normalized else 1.0
    angles = 2 * np.pi * (np.outer(np.arange(size), np.arange(rows)) % size) / size
    waves = (np.cos(angles) * scale, -np.sin(angles) * scale)
    parts = [c.op("matmul", framed, Constant(w.astype(kind, order="C"))) for w in waves]
    return c.op("permute_dims", c.op("stack", parts, axis=3), axes=(0, 2, 1, 3))


def _dft_matrix(count: int) -> tuple[Constant, Constant]:
    angles = 2 * np.pi * np.outer(np.arange(count), np.arange(count)) / count
    return Constant(np.cos(angles).astype(np.float32)), Constant(np.sin(angles).astype(np.float32))


def _dft(c: RelayCall) -> Expr:
    """The discrete Fourier transform of the last axis, a product with its matrix."""
    re, im, inverse = c.tensor(0), c.tensor(1), c.flag("inverse")
    count = c.extents(re, "a Fourier transform")[-1]
    if count > 1024:
        raise c.gap(f"{count} elements, which a product with a matrix is no way for")
    cos, sin = _dft_matrix(count)
    cos, sin = (Constant(m.data.astype(c.dtype_of(re).numpy)) for m in (cos, sin))
    first, second = ("subtract", "add") if inverse else ("add", "subtract")
    real = c.op(first, c.op("matmul", re, cos), c.op("matmul", im, sin))
    imaginary = c.op(second, c.op("matmul", im, cos), c.op("matmul", re, sin))
    if inverse:
        real, imaginary = (c.op("divide", v, float(count)) for v in (real, imaginary))
    return Tuple((real, imaginary))


CONVERTERS: dict[str, Converter] = {
    "sort": _sort,
    "argsort": _argsort,
    "topk": _topk,
    "searchsorted": _searchsorted,
    "cumsum": _cumsum,
    "cumprod": _cumprod,
    "unique": _unique,
    "argwhere": _argwhere,
    "invert_permutation": _invert_permutation,
    "unravel_index": _unravel_index,
    "sparse_to_dense": _sparse_to_dense,
    "dft": _dft,
    "stft": _stft,
}
