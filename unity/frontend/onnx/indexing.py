"""Nodes that pick or move elements: Gather and its kin, Slice, Pad, Compress, NonZero, CumSum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity.errors import UnityError
from unity.frontend.reshaping import reshaped
from unity.frontend.run_time.axes import between
from unity.frontend.run_time.padding import padded, without_ends
from unity.frontend.run_time.slicing import placed, scalar, sliced
from unity.frontend.run_time.vectors import Ints, ints_of, length_of
from unity.frontend.sizes import Sizes, is_symbolic, sizes_of
from unity.ir.dims import Dim, always_ge, as_dim, dim, dim_max, floordiv
from unity.ir.dtype import INT64
from unity.ir.graph import Constant, Expr

from .node import Converter, Node, Value

FAR = 2**63 - 1
"""An end beyond all ends."""


def _gather(node: Node) -> Value:
    axis = node.int_of("axis", 0)
    value = node.value(0)
    if isinstance(value, Sizes):
        at = node.constant(1)
        if at is not None:
            try:
                taken = np.take(value.dims, at.astype(np.int64), axis)
            except (IndexError, ValueError) as error:
                raise UnityError(str(error)) from None
            return Sizes(np.asarray(taken, dtype=object), value.dtype)
    x, indices = node.tensor(0), node.tensor(1)
    _check_indices(node, (node.shape_of(x)[node.axis(axis, node.rank(0))],))
    return node.op("take", x, indices, axis=node.axis(axis, node.rank(0)))


def _check_indices(node: Node, extents: Sequence[Dim]) -> None:
    """Refuse a constant index that is out of range (one known at run time: `check_bounds`).

    Args:
        node: Whose second input the indices are.
        extents: What they must be below: one for all, or one for each place of their last axis.
    """
    known = node.constant(1)
    if known is None or known.size == 0 or (len(extents) > 1 and known.shape[-1] != len(extents)):
        return
    places = known.astype(np.int64).reshape(-1, len(extents))
    for of, extent in zip(places.T, extents, strict=True):
        if isinstance(extent, int) and (int(of.min()) < -extent or int(of.max()) >= extent):
            raise UnityError(f"an index is out of range for the extent {extent}")


def _index_vectors(node: Node, batch: int = 0) -> None:
    """Check constant indices that stand together in vectors."""
    shape, indices = node.shape_of(node.tensor(0)), node.shape_of(node.tensor(1))
    length = indices[-1] if indices else 0
    if isinstance(length, int) and 0 < length <= len(shape) - batch:
        _check_indices(node, shape[batch : batch + length])


def _gather_elements(node: Node) -> Value:
    x, indices = node.tensor(0), node.tensor(1)
    axis = node.axis(node.int_of("axis", 0), node.rank(0))
    shape = node.shape_of(x)
    _check_indices(node, (shape[axis],))
    # Beside that axis, there must be no more indices than elements.
    wanted = tuple(
        d if k == axis else _as_many(node, d, n)
        for k, (d, n) in enumerate(zip(shape, node.shape_of(indices), strict=False))
    )
    if len(wanted) == len(shape) and wanted != shape:
        x = node.assert_shape(x, wanted)
    return node.op("gather_elements", x, indices, axis=axis)


def _as_many(node: Node, extent: Dim, least: Dim) -> Dim:
    """An extent as a number that it must reach, and what is beyond that."""
    if always_ge(extent, least) or (isinstance(extent, int) and isinstance(least, int)):
        return extent
    return as_dim(least + node.sized(as_dim(extent - least), f"{node.label}_beyond"))


def _gather_nd(node: Node) -> Value:
    batch = node.int_of("batch_dims", 0)
    _index_vectors(node, batch)
    x, indices = node.tensor(0), node.tensor(1)
    batches = (*node.shape_of(x)[:batch], *(None,) * (node.rank(1) - batch))
    return node.op("gather_nd", x, node.agreed(indices, batches), batch_dims=batch)


_REDUCTIONS = {"none": "update", "add": "add", "mul": "mul", "max": "max", "min": "min"}


def _reduction(node: Node) -> str:
    given = node.text_of("reduction", "none")
    if given not in _REDUCTIONS:
        raise node.gap(f"reduction {given!r}")
    return _REDUCTIONS[given]


def _scatter_elements(node: Node) -> Value:
    axis = node.axis(node.int_of("axis", 0), node.rank(0))
    x, indices, updates = (node.tensor(i) for i in range(3))
    _check_indices(node, (node.shape_of(x)[axis],))
    both = node.shape_of(indices), node.shape_of(updates)
    if len(both[0]) == len(both[1]) == node.rank(0):  # else the operator says what is wrong
        pairs = zip(node.shape_of(x), *both, strict=True)
        shape = tuple(a if isinstance(a, int) or not _is_below(b, d) else b for d, a, b in pairs)
        indices, updates = (node.agreed(v, shape) for v in (indices, updates))
    return node.op("scatter_elements", x, indices, updates, axis=axis, reduction=_reduction(node))


def _is_below(size: Dim, extent: Dim) -> bool:
    """Whether a size is known better than another that it has to be equal to: not above extents."""
    return isinstance(size, int) or always_ge(extent, size)


def _scatter_nd(node: Node) -> Value:
    x, indices, updates = (node.tensor(i) for i in range(3))
    _index_vectors(node)
    *places, length = node.shape_of(indices)
    if isinstance(length, int):
        updates = node.agreed(updates, (*places, *node.shape_of(x)[length:]))
    return node.op("scatter_nd", x, indices, updates, reduction=_reduction(node))


def _tensor_scatter(node: Node) -> Value:
    """A cache with an update written along an axis, in each batch from its own place on."""
    past, update = node.tensor(0), node.tensor(1)
    shape = node.shape_of(past)
    axis = node.axis(node.int_of("axis", -2), len(shape))
    mode = node.text_of("mode", "linear")
    if mode not in ("linear", "circular") or axis == 0:
        raise UnityError(
            f"mode {mode!r} along axis {axis}; expected linear or circular, not axis 0"
        )
    if len(node.shape_of(update)) != len(shape):
        raise UnityError(f"an update of shape {node.shape_of(update)} for a cache of {shape}")
    extent, length = shape[axis], node.shape_of(update)[axis]
    update = node.assert_shape(update, (*shape[:axis], length, *shape[axis + 1 :]))
    place = node.op("arange", 0, extent, 1, dtype=INT64)
    since: Expr = node.op("broadcast_to", place, (shape[0], extent))
    if node.has(2):
        first = node.op("reshape", node.cast(node.tensor(2), INT64), (shape[0], 1))
        since = node.op("subtract", since, first)
    if mode == "circular":
        since = node.op("floor_mod", since, node.materialize(sizes_of(extent)))
    last = node.materialize(sizes_of(as_dim(length - 1)))
    written = node.op(
        "logical_and",
        node.op("greater_equal", since, node.number(0, since)),
        node.op("less_equal", since, last),
    )
    along = (shape[0], *(extent if k == axis else 1 for k in range(1, len(shape))))
    written = node.op("reshape", written, along)
    at = node.op("maximum", node.op("minimum", since, last), node.number(0, since))
    at = node.op("broadcast_to", node.op("reshape", at, along), shape)
    return node.op("where", written, node.op("gather_elements", update, at, axis=axis), past)


def _slice(node: Node) -> Value:
    if node.version >= 10 and not all(map(node.is_known, filter(node.has, range(1, 5)))):
        return _slice_at_run_time(node)
    starts, ends, axes, steps = _slice_arguments(node)
    value = node.value(0)
    rank = value.dims.ndim if isinstance(value, Sizes) else node.rank(0)
    over = tuple(node.axis(a, rank) for a in (axes or tuple(range(len(starts)))))
    if not len(over) == len(starts) == len(ends) == len(steps):
        raise UnityError("starts, ends, axes and steps differ in length")
    if 0 in steps:
        raise UnityError("a step is 0")
    if isinstance(value, Sizes):
        return _slice_sizes(node, value, over, starts, ends, steps)
    strides = None if set(steps) == {1} else steps
    return node.op("strided_slice", value, axes=over, begin=starts, end=ends, strides=strides)


def _slice_at_run_time(node: Node) -> Value:
    """A slice some of whose arguments are known only at run time."""
    x = node.tensor(0)
    rank = node.rank(0)
    starts, ends = (_of_some_length(node, i) for i in (1, 2))
    count = length_of(node, starts.value, "starts")
    ones = Ints(node, Constant(np.ones(count, np.int64)))
    steps = _of_some_length(node, 4) if node.has(4) else ones
    for what, operand in (("ends", ends), ("steps", steps)):
        if length_of(node, operand.value, what) != count:
            raise UnityError(f"starts and {what} differ in length")
    over: Sequence[int] = range(count)
    if node.has(3) and node.is_known(3):
        over = [node.axis(a, rank) for a in node.ints(3, "axes")]
    elif node.has(3):
        axes, over = _of_some_length(node, 3), range(rank)
        starts = placed(node, axes, starts, rank, 0)
        ends = placed(node, axes, ends, rank, FAR)
        steps = placed(node, axes, steps, rank, 1)
    if not isinstance(steps.value, Constant) and not node.has(4):
        steps = Ints(node, Constant(np.ones(rank, np.int64)))
    return sliced(node, x, over, starts, ends, steps)


def _of_some_length(node: Node, index: int) -> Ints:
    """One of a slice's vectors.

    Where only running tells how long it is, it is checked to be as long as the others are, or to
    have one element.
    """
    value = node.tensor(index)
    shapes = [node.shape_of(node.tensor(i)) for i in range(1, 5) if node.has(i)]
    lengths = [s[0] for s in shapes if len(s) == 1 and not is_symbolic(s[0])]
    shape = node.shape_of(value)
    if len(shape) == 1 and is_symbolic(shape[0]):
        value = node.assert_shape(value, (lengths[0] if lengths else 1,))
    return ints_of(node, value)


def _slice_arguments(
    node: Node,
) -> tuple[Sequence[Dim], Sequence[Dim], tuple[int, ...] | None, tuple[int, ...]]:
    if node.version < 10:
        starts, ends = node.ints_of("starts") or (), node.ints_of("ends") or ()
        return starts, ends, node.ints_of("axes"), (1,) * len(starts)
    first, last = node.dims(1, "starts"), node.dims(2, "ends")
    axes = node.ints(3, "axes") if node.has(3) else None
    steps = node.ints(4, "steps") if node.has(4) else (1,) * len(first)
    return first, last, axes, steps


def _slice_sizes(
    node: Node,
    value: Sizes,
    over: Sequence[int],
    starts: Sequence[Dim],
    ends: Sequence[Dim],
    steps: Sequence[int],
) -> Value:
    places = [slice(None)] * value.dims.ndim
    for axis, start, end, step in zip(over, starts, ends, steps, strict=True):
        if not isinstance(start, int) or not isinstance(end, int):
            raise node.gap("a symbolic slice of a shape")
        # Python's slices take INT64_MIN with a negative step for the end, as ONNX does.
        stop = None if step < 0 and end < -value.dims.shape[axis] else end
        places[axis] = slice(start, stop, step)
    return Sizes(np.asarray(value.dims[tuple(places)], dtype=object), value.dtype)


def _pad(node: Node) -> Value:
    x = node.tensor(0)
    rank = node.rank(0)
    if node.version < 11:
        pads: Sequence[Dim] = node.ints_of("pads") or ()
        fill = node.float_of("value", 0.0)
    else:
        late = [i for i in range(1, node.count) if node.has(i) and node.constant(i) is None]
        if any(i == 2 or not node.is_known(i) for i in late):
            return _pad_at_run_time(node)
        pads = node.dims(1, "paddings")
        fill = node.scalar(2, "the value of a padding") if node.has(2) else 0.0
    axes = tuple(range(rank))
    if node.has(3):
        axes = tuple(node.axis(a, rank) for a in node.ints(3, "axes"))
    if len(pads) != 2 * len(axes):
        raise UnityError(f"{len(axes)} axes take {2 * len(axes)} paddings, got {len(pads)}")
    widths: list[Dim] = [0] * (2 * rank)
    for i, axis in enumerate(axes):
        widths[2 * axis], widths[2 * axis + 1] = pads[i], pads[len(axes) + i]
    mode = node.text_of("mode", "constant")
    if mode not in ("constant", "reflect", "edge", "wrap"):
        raise node.gap(f"mode {mode!r}")
    kind = node.dtype_of(x)
    value: float = fill if kind.is_float else int(fill)
    if mode != "constant" and any(isinstance(w, int) and w < 0 for w in widths):
        cut = [-w if isinstance(w, int) and w < 0 else 0 for w in widths]
        x = without_ends(node, x, tuple(cut[::2]), tuple(cut[1::2]))
        widths = [as_dim(w + c) for w, c in zip(widths, cut, strict=True)]
    if mode != "constant":
        x = _long_enough(node, x, widths, mode)
    return node.op("nn.pad", x, tuple(widths), pad_mode=mode, pad_value=value)


def _center_crop_pad(node: Node) -> Value:
    """The middle of a tensor, or zeros around it; of an odd rest, what is behind it is larger."""
    x, rank = node.tensor(0), node.rank(0)
    given = node.ints_of("axes")
    axes = range(rank) if given is None else [node.axis(a, rank) for a in given]
    wanted = node.dims(1, "a shape")
    if len(wanted) != len(axes):
        raise UnityError(f"a shape of {len(wanted)} numbers for {len(axes)} axes")
    widths: list[Dim] = [0] * (2 * rank)
    for axis, extent in zip(axes, wanted, strict=True):
        more = as_dim(extent - node.shape_of(x)[axis])
        room, cut = dim_max(more, 0), dim_max(as_dim(-more), 0)
        widths[2 * axis] = before = as_dim(floordiv(room, 2) - floordiv(cut, 2))
        widths[2 * axis + 1] = as_dim(more - before)
    return node.op("nn.pad", x, tuple(widths))


def _pad_at_run_time(node: Node) -> Value:
    """Widths, axes or the value are known only at run time."""
    x, rank = node.tensor(0), node.rank(0)
    given = node.run_time(1)
    count = length_of(node, given.value, "paddings")
    before, after = (
        given.op("strided_slice", axes=(0,), begin=(b,), end=(b + count // 2,))
        for b in (0, count // 2)
    )
    if node.has(3):
        axes = node.run_time(3)
        if 2 * length_of(node, axes.value, "axes") != count:
            raise UnityError(f"{count} paddings do not fit the axes")
        before, after = (placed(node, axes, w, rank, 0) for w in (before, after))
    elif count != 2 * rank:
        raise UnityError(f"{rank} axes take {2 * rank} paddings, got {count}")
    fill = scalar(node, node.tensor(2)) if node.has(2) else None
    return padded(node, x, before, after, node.text_of("mode", "constant"), fill)


def _long_enough(node: Node, x: Expr, widths: Sequence[Dim], mode: str) -> Expr:
    """Extents unknown here are checked at run time to have what such a padding reads."""
    beyond = {"reflect": 1, "edge": 1, "wrap": 0}[mode]
    target: list[Dim] = []
    for axis, d in enumerate(node.shape_of(x)):
        before, after = (w if isinstance(w, int) else 0 for w in widths[2 * axis : 2 * axis + 2])
        most = max(before, after) if mode != "edge" else 0
        padded = before != 0 or after != 0
        short = padded and not isinstance(d, int) and not always_ge(d, most + beyond)
        if short:
            name = f"{node.label}_axis_{axis}_to_pad_by_{mode}"
            d = dim(node.graph.builder.fresh(name).name, min=most + beyond)
        target.append(d)
    return x if tuple(target) == node.shape_of(x) else node.assert_shape(x, tuple(target))


def _non_zero(node: Node) -> Value:
    return node.op("nonzero", node.tensor(0))


def _compress(node: Node) -> Value:
    """The places of an axis, or of all elements in a row, at which a mask holds."""
    x, mask = node.tensor(0), node.tensor(1)
    axis = node.axis(node.int_of("axis", 0), node.rank(0))
    if node.attribute("axis") is None:
        x, axis = node.op("reshape", x, (-1,)), 0
    (length,), extent = node.shape_of(mask), node.shape_of(x)[axis]
    if not always_ge(extent, length):
        raise node.symbolic_gap(f"a mask of {length} for {extent} places", length, extent)
    return node.op("take", x, node.op("reshape", node.op("nonzero", mask), (-1,)), axis=axis)


def _reverse_sequence(node: Node) -> Value:
    """The first places of each sequence of a batch the other way round, by its length."""
    x, lengths = node.tensor(0), node.tensor(1)
    shape = node.shape_of(x)
    over, batch = node.int_of("time_axis", 0), node.int_of("batch_axis", 1)
    if {over, batch} != {0, 1} or len(shape) < 2:
        raise UnityError(f"time_axis {over} and batch_axis {batch}; expected 0 and 1, or 1 and 0")
    lengths = node.agreed(lengths, (shape[batch],))
    steps = node.op("arange", 0, shape[over], 1, dtype=INT64)
    steps = node.op("reshape", steps, (-1, 1) if over == 0 else (1, -1))
    ends = node.op("reshape", node.cast(lengths, INT64), (1, -1) if over == 0 else (-1, 1))
    turned = node.op("subtract", node.op("subtract", ends, steps), node.number(1, ends))
    places = node.op("where", node.op("less", steps, ends), turned, steps)
    places = node.op("reshape", places, (*shape[:2], *(1,) * (len(shape) - 2)))
    return node.op("gather_elements", x, node.op("broadcast_to", places, shape), axis=over)


def _running(node: Node) -> Value:
    name = _RUNNING[node.proto.op_type]
    exclusive, reverse = bool(node.int_of("exclusive", 0)), bool(node.int_of("reverse", 0))
    x = node.tensor(0)
    if not node.is_known(1):
        axis = Ints(node, scalar(node, node.run_time(1).value))
        apart = between(node, x, axis)
        found = node.op(name, apart, axis=1, exclusive=exclusive, reverse=reverse)
        return reshaped(node, found, node.shape_of(x), copies=False)
    over = node.axis(node.ints(1, "the axis")[0], node.rank(0))
    return node.op(name, x, axis=over, exclusive=exclusive, reverse=reverse)


_RUNNING = {"CumSum": "cumsum", "CumProd": "cumprod"}

CONVERTERS: dict[str, Converter] = {
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "ScatterElements": _scatter_elements,
    "Scatter": _scatter_elements,
    "ScatterND": _scatter_nd,
    "TensorScatter": _tensor_scatter,
    "Slice": _slice,
    "CenterCropPad": _center_crop_pad,
    "Pad": _pad,
    "Compress": _compress,
    "NonZero": _non_zero,
    "ReverseSequence": _reverse_sequence,
    **dict.fromkeys(_RUNNING, _running),
}
