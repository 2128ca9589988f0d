"""Operators that pick, place or surround elements: slices, takes, gathers, scatters, masks."""

from __future__ import annotations

import numpy as np

from unity.errors import UnityError
from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.frontend.run_time.slicing import diagonal
from unity.ir.dims import Dim
from unity.ir.dtype import INT32, INT64
from unity.ir.graph import Constant, Expr

_WHOLE = (1 << 62) - 1


def plain_slice(c: RelayCall) -> Expr:
    """A slice whose bounds are attributes."""
    begin, end = c.integers("begin"), c.integers("end")
    strides = c.optional_integers("strides") or ()
    axes = c.optional_integers("axes")
    rank = c.rank()
    over = tuple(range(len(begin))) if axes is None else tuple(c.axis(a, rank) for a in axes)
    return sliced(c, c.tensor(0), over, begin, end, strides, c.text("slice_mode"))


def sliced(
    c: RelayCall,
    x: Expr,
    over: tuple[int, ...],
    begin: tuple[int, ...],
    end: tuple[int, ...],
    strides: tuple[int, ...],
    mode: str,
) -> Expr:
    """A slice; in the mode "size" `end` holds extents, -1 for all that is left."""
    if len(begin) < len(over) or len(over) > len(c.shape_of(x)):
        raise UnityError(f"begin {begin} does not fit {len(over)} axes")
    ends: tuple[Dim, ...]
    if mode == "size":
        extents = c.shape_of(x)
        firsts = [b + extents[a] if b < 0 else b for a, b in zip(over, begin, strict=False)]
        sizes = (*end, *(-1,) * (len(over) - len(end)))
        ends = tuple(
            extents[a] if s < 0 else f + s for a, f, s in zip(over, firsts, sizes, strict=False)
        )
        steps = (1,) * len(over)
    elif mode == "end":
        given = (*strides, *strides * (len(over) - 1 if len(strides) == 1 else 0))
        steps = (*given[: len(over)], *(1,) * (len(over) - len(given)))
        missing = (-_WHOLE if s < 0 else _WHOLE for s in steps[len(end) :])
        ends = (*end[: len(over)], *missing)
    else:
        raise UnityError(f"slice_mode must be 'end' or 'size', got {mode!r}")
    if 0 in steps:
        raise UnityError("a stride is 0")
    if not over:
        return x
    plain = None if set(steps) == {1} else steps
    return c.op("strided_slice", x, axes=over, begin=begin[: len(over)], end=ends, strides=plain)


def _strided_set(c: RelayCall) -> Expr:
    """A tensor with a slice of it replaced."""
    x, value = c.tensor(0), c.tensor(1)
    extents = c.extents(x, "a tensor with a slice replaced")
    given = [[int(v) for v in c.known(i, "a slice").reshape(-1)] for i in (2, 3, 4)]
    begin, end, strides = given
    if len(begin) > len(extents) or len(end) > len(extents) or 0 in strides:
        raise UnityError(f"begin {begin}, end {end}, strides {strides} of {len(extents)} axes")
    axes: list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]] = []
    for axis, extent in enumerate(extents):
        first = begin[axis] if axis < len(begin) else None
        last = end[axis] if axis < len(end) else None
        step = strides[axis] if axis < len(strides) else 1
        axes.append(np.arange(extent, dtype=np.int64)[slice(first, last, step)])
    places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    wide = c.op("broadcast_to", value, tuple(len(a) for a in axes))
    return c.op("scatter_nd", x, Constant(np.ascontiguousarray(places)), wide)


def _slice_like(c: RelayCall) -> Expr:
    x, like, rank = c.tensor(0), c.shape_of(c.tensor(1)), c.rank()
    axes = c.optional_integers("axes") or tuple(range(len(like)))
    over = tuple(c.axis(a, rank) for a in axes)
    ends = tuple(like[a] for a in over)
    return c.op("strided_slice", x, axes=over, begin=(0,) * len(over), end=ends)


def _take(c: RelayCall) -> Expr:
    x, axis, batch = c.tensor(0), c.optional_integer("axis"), c.integer("batch_dims")
    if axis is None:
        x = c.op("reshape", x, (-1,))
    at = 0 if axis is None else c.axis(axis, c.rank())
    indices = _within(c, c.tensor(1), c.shape_of(x)[at], c.text("mode"))
    if not batch:
        return c.op("take", x, indices, axis=at)
    if at != batch % len(c.shape_of(indices)):
        raise c.gap(f"batch_dims={batch} beside axis={axis}")
    places = c.op("reshape", indices, (*c.shape_of(indices), 1))
    return c.op("gather_nd", x, places, batch_dims=at)


def _within(c: RelayCall, indices: Expr, extent: Dim, mode: str) -> Expr:
    """Indices as a mode has them where they lie outside; ours count negative ones from the end."""
    kind = c.dtype_of(indices)
    if not kind.is_int:
        raise c.gap(f"indices of {kind}")
    if kind not in (INT32, INT64):
        indices = c.cast(indices, INT64)
    match mode:
        case "clip":
            if isinstance(indices, Constant) and not np.any(indices.data.astype(np.int64) < 0):
                return indices
            return c.op("maximum", indices, 0)  # `take` clamps those that are too large
        case "wrap":
            size = c.cast(c.op("dims", extent), c.dtype_of(indices))
            return c.op("floor_mod", indices, size)
        case "fast":
            return indices
        case _:
            raise UnityError(f"mode must be 'clip', 'wrap' or 'fast', got {mode!r}")


def _gather(c: RelayCall) -> Expr:
    axis = c.axis(c.optional_integer("axis") or 0, c.rank())
    return c.op("gather_elements", c.tensor(0), c.tensor(1), axis=axis)


def index_vectors(c: RelayCall, indices: Expr) -> Expr:
    """Indices whose first axis lists coordinates, as ours have them: on the last one."""
    rank = len(c.shape_of(indices))
    return c.transposed(indices, (*range(1, rank), 0))


def _gather_nd(c: RelayCall) -> Expr:
    c.drop("index_rank")
    indices = index_vectors(c, c.tensor(1))
    return c.op("gather_nd", c.tensor(0), indices, batch_dims=c.integer("batch_dims"))


_REDUCTIONS = ("update", "add", "mul", "min", "max")


def _scatter_elements(c: RelayCall) -> Expr:
    c.only("reduction", *_REDUCTIONS)
    x, indices, updates = (c.tensor(i) for i in range(3))
    axis = c.axis(c.integer("axis"), c.rank())
    how = c.text("reduction")
    return c.op("scatter_elements", x, indices, updates, axis=axis, reduction=how)


def _scatter_nd(c: RelayCall) -> Expr:
    c.only("mode", *_REDUCTIONS)
    indices = index_vectors(c, c.tensor(1))
    return c.op("scatter_nd", c.tensor(0), indices, c.tensor(2), reduction=c.text("mode"))


def _adv_index(c: RelayCall) -> Expr:
    """Numpy's ``x[i, j]``: index tensors, broadcast, for the first axes."""
    x, *given = c.fields(0)
    indices = c.of(*given)
    rank = max(len(c.shape_of(i)) for i in indices)
    full = next((c.shape_of(i) for i in indices if len(c.shape_of(i)) == rank), ())
    for i in indices:
        shape = c.shape_of(i)
        full = tuple(
            s if f == 1 else f
            for f, s in zip(full, (*(1,) * (rank - len(shape)), *shape), strict=True)
        )
    wide = [c.cast(c.op("broadcast_to", i, full), INT64) for i in indices]
    return c.op("gather_nd", x, c.op("stack", wide, axis=rank))


def _reverse_sequence(c: RelayCall) -> Expr:
    x, shape = c.tensor(0), c.shape_of(c.tensor(0))
    axis, batch = (c.axis(c.integer(n), len(shape)) for n in ("seq_axis", "batch_axis"))
    places = positions(c, shape, axis)
    lengths = c.along(c.cast(c.tensor(1), INT64), batch, len(shape))
    last = c.op("subtract", lengths, 1)
    turned = c.op("where", c.op("less", places, lengths), c.op("subtract", last, places), places)
    indices = c.op("broadcast_to", turned, shape)
    return c.op("gather_elements", x, indices, axis=axis)


def positions(c: RelayCall, shape: tuple[Dim, ...], axis: int) -> Expr:
    """The numbers of the elements along an axis, of a rank to be broadcast."""
    return c.along(c.op("arange", shape[axis]), axis, len(shape))


def _sequence_mask(c: RelayCall) -> Expr:
    """Elements behind each sequence's length replaced; time and batch are the first two axes."""
    x, shape, value = c.tensor(0), c.shape_of(c.tensor(0)), c.real("mask_value")
    axis = c.axis(c.integer("axis"), len(shape))
    if axis > 1:
        raise UnityError(f"axis must be 0 or 1, got {axis}")
    lengths = c.along(c.cast(c.tensor(1), INT64), 1 - axis, len(shape))
    inside = c.op("less", positions(c, shape, axis), lengths)
    return c.op("where", inside, x, c.number(value, x))


def _trilu(c: RelayCall) -> Expr:
    upper = c.flag("upper")
    if c.constant(1) is None:
        return diagonal(c, c.tensor(0), c.op("reshape", c.tensor(1), ()), upper=upper)
    k = int(c.scalar(1, "k"))
    return c.op("triu" if upper else "tril", c.tensor(0), k=k)


def _matrix_set_diag(c: RelayCall) -> Expr:
    """One diagonal of each matrix replaced."""
    x, shape, k = c.tensor(0), c.shape_of(c.tensor(0)), c.integer("k1")
    if c.integer("k2") != k:
        raise c.gap("several diagonals")
    c.drop("super_diag_right_align", "sub_diag_right_align")
    rows, columns = positions(c, shape, len(shape) - 2), positions(c, shape, len(shape) - 1)
    on = c.op("equal", c.op("subtract", columns, rows), k)
    place = c.op("maximum", c.op("add", c.op("arange", shape[-2]), min(k, 0)), 0)
    values = c.op("take", c.tensor(1), place, axis=len(shape) - 2)
    return c.op("where", on, c.op("reshape", values, (*shape[:-1], 1)), x)


def _fifo_buffer(c: RelayCall) -> Expr:
    """What comes in behind what a buffer holds, of which as much as it holds is kept."""
    x, buffer = c.tensor(0), c.tensor(1)
    axis = c.axis(c.integer("axis"), c.rank())
    new, size = (c.extents(v, "a buffer")[axis] for v in (x, buffer))
    both = c.op("concat", [buffer, x], axis=axis)
    return c.op("strided_slice", both, axes=(axis,), begin=(new,), end=(new + size,))


CONVERTERS: dict[str, Converter] = {
    "strided_set": _strided_set,
    "slice_like": _slice_like,
    "take": _take,
    "gather": _gather,
    "gather_nd": _gather_nd,
    "scatter_elements": _scatter_elements,
    "scatter_nd": _scatter_nd,
    "adv_index": _adv_index,
    "reverse_sequence": _reverse_sequence,
    "sequence_mask": _sequence_mask,
    "trilu": _trilu,
    "nn.fifo_buffer": _fifo_buffer,
    "matrix_set_diag": _matrix_set_diag,
}
