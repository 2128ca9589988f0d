"""DFT and STFT, of real and of complex signals, and the weights of Mel filters."""

from __future__ import annotations

from math import log

import numpy as np

from unity.errors import UnityError
from unity.frontend.fourier import Complex, each, mirrored, transformed
from unity.frontend.onnx.node import Converter, Node, Value
from unity.frontend.onnx.reading.tensors import dtype_of
from unity.frontend.reshaping import reshaped
from unity.frontend.run_time.axes import between
from unity.frontend.run_time.slicing import scalar
from unity.frontend.run_time.vectors import Ints, bound, places, vector_of
from unity.frontend.sizes import sizes_of
from unity.ir.dims import Dim, always_ge, as_dim, dim_max, dim_min, equal, floordiv
from unity.ir.dtype import FLOAT32, FLOAT64, INT64, DType
from unity.ir.graph import Constant, Expr

_FLOAT = 1


def _dft(node: Node) -> Value:
    """The transform of one axis; the last axis holds a real part, or a real and an imaginary."""
    x, rank = node.tensor(0), node.rank(0)
    if rank < 2:
        raise UnityError(f"a signal of rank {rank}; expected at least (length, 1 or 2)")
    kind, wide = node.dtype_of(x), _wide(node.dtype_of(x))
    given = node.cast(x, wide)
    if node.version >= 20 and node.has(2) and not node.is_known(2):
        return node.cast(_along_any(node, given), kind)
    axis = node.int_of("axis", 1) if node.version < 20 else -2
    if node.version >= 20 and node.has(2):
        axis = node.ints(2, "the axis")[0]
    at = node.axis(axis, rank)
    if at == rank - 1:
        raise UnityError(f"axis {axis} is that of real and imaginary parts")
    order = (*(k for k in range(rank - 1) if k != at), at)
    signal = each(_parts(node, given), lambda v: node.op("permute_dims", v, axes=order))
    back = [*range(rank - 2)]
    back.insert(at, rank - 2)
    found = [node.op("permute_dims", v, axes=tuple(back)) for v in _spectrum(node, signal)]
    return node.cast(node.op("stack", found, axis=rank - 1), kind)


def _along_any(node: Node, x: Expr) -> Expr:
    """The transform of an axis known only at run time."""
    rank = node.rank(0)
    said = Ints(node, scalar(node, node.run_time(2).value))
    axis = (said < 0).choose(said + rank, said)
    signal = _parts(node, x)
    extents = vector_of(node, node.shape_of(signal.real))

    def moved(v: Expr) -> Expr:
        return node.op("permute_dims", between(node, v, axis), axes=(0, 2, 1))

    together = each(signal, moved)
    if together.imaginary is not None:
        same = node.assert_shape(together.imaginary, node.shape_of(together.real))
        together = Complex(together.real, same)
    found = _spectrum(node, together)
    length = vector_of(node, node.shape_of(found[0])[-1:])
    chosen = places(node, rank - 1).equals(axis)
    shape = bound(node, chosen.choose(length, extents), "extent")
    outputs = [node.op("permute_dims", v, axes=(0, 2, 1)) for v in found]
    shaped = [reshaped(node, v, shape, copies=False) for v in outputs]
    return node.op("stack", shaped, axis=rank - 1)


def _spectrum(node: Node, signal: Complex) -> list[Expr]:
    """What a DFT gives along the last axis: a real part, or a real and an imaginary."""
    inverse, half = bool(node.int_of("inverse", 0)), bool(node.int_of("onesided", 0))
    if half and not inverse and signal.imaginary is not None:
        raise UnityError("onesided needs a signal of real numbers")
    if inverse and half and signal.imaginary is None:
        raise UnityError("a onesided inverse is of complex numbers: its last axis has 2, not 1")
    extent = node.shape_of(signal.real)[-1]
    usual = as_dim(2 * (extent - 1)) if inverse and half else extent
    length = node.dims(1, "the length of a DFT")[0] if node.has(1) else usual
    kept = as_dim(floordiv(length, 2) + 1) if half else length
    signal = _of_length(node, signal, kept if inverse and half else length)
    if inverse and half:
        signal = mirrored(node, signal, length)
    found = transformed(node, signal, length, inverse=inverse)
    assert found.imaginary is not None
    outputs = [found.real] if inverse and half else [found.real, found.imaginary]
    if not inverse:
        return [_first(node, v, kept) for v in outputs]
    count = node.cast(node.materialize(sizes_of(length)), node.dtype_of(found.real))
    return [node.op("divide", v, count) for v in outputs]


def _wide(kind: DType) -> DType:
    return FLOAT64 if kind == FLOAT64 else FLOAT32


def _parts(node: Node, x: Expr) -> Complex:
    """The parts of a complex tensor, which its last axis holds."""
    *others, count = node.shape_of(x)
    if count not in (1, 2):
        raise UnityError(f"a last axis of {count}; expected 1, a real part, or 2")

    def part(place: int) -> Expr:
        return node.op("take", x, Constant(np.array(place, np.int64)), axis=len(others))

    return Complex(part(0), part(1) if count == 2 else None)


def _first(node: Node, x: Expr, count: Dim) -> Expr:
    last = len(node.shape_of(x)) - 1
    if equal(node.shape_of(x)[last], count):
        return x
    return node.op("strided_slice", x, axes=(last,), begin=(0,), end=(count,), strides=None)


def _of_length(node: Node, x: Complex, length: Dim) -> Complex:
    """The last axis cut, or padded by 0."""

    def change(v: Expr) -> Expr:
        extent = node.shape_of(v)[-1]
        if equal(extent, length):
            return v
        kept = length if always_ge(extent, length) else dim_min(extent, length)
        v = _first(node, v, kept)
        more = as_dim(length - kept)
        widths = (0,) * (2 * len(node.shape_of(v)) - 1)
        return v if equal(more, 0) else node.op("nn.pad", v, (*widths, more))

    return each(x, change)


def _stft(node: Node) -> Value:
    """Transforms of frames of a signal, each multiplied by a window."""
    x = node.tensor(0)
    kind, wide = node.dtype_of(x), _wide(node.dtype_of(x))
    if node.rank(0) == 2:
        x = node.op("expand_dims", x, axis=2)
    if len(node.shape_of(x)) != 3:
        raise UnityError(f"a signal of rank {node.rank(0)}; expected (batch, length, 1 or 2)")
    (step,) = node.dims(1, "the step of frames")
    if step == 0:
        raise UnityError("the step of frames is 0")
    window = node.optional(2)
    if node.has(3):
        (length,) = node.dims(3, "the length of frames")
    elif window is not None:
        length = node.shape_of(window)[0]
    else:
        raise UnityError("has neither a window nor the length of frames")
    signal = _parts(node, node.cast(x, wide))
    half = bool(node.int_of("onesided", 1))
    if half and signal.imaginary is not None:
        raise UnityError("onesided needs a signal of real numbers")
    extent = node.shape_of(signal.real)[1]
    # A frame that begins within the signal and ends behind it is not one.
    count = dim_max(as_dim(floordiv(as_dim(extent - length), step) + 1), 0)
    starts = node.op("arange", 0, count, 1, dtype=INT64)
    starts = node.op("multiply", starts, node.materialize(sizes_of(step)))
    nth = node.op("arange", 0, length, 1, dtype=INT64)
    at = node.op("add", node.op("expand_dims", starts, axis=1), nth)
    if window is not None:
        window = node.assert_shape(node.cast(window, wide), (length,))

    def frames(v: Expr) -> Expr:
        found = node.op("take", v, at, axis=1)
        return found if window is None else node.op("multiply", found, window)

    found = transformed(node, each(signal, frames), length)
    assert found.imaginary is not None
    kept = as_dim(floordiv(length, 2) + 1) if half else length
    outputs = [_first(node, v, kept) for v in (found.real, found.imaginary)]
    return node.cast(node.op("stack", outputs, axis=3), kind)


def _mel_weight_matrix(node: Node) -> Value:
    """Triangles over the bins of a spectrum, (bins, filters): each rises to 1 and falls."""
    (filters,) = node.dims(0, "the number of Mel filters")
    (length,) = node.dims(1, "the length of a DFT")
    target = dtype_of(node.int_of("output_datatype", _FLOAT), "the attribute 'output_datatype'")
    rate, low, high = (node.cast(scalar(node, node.tensor(k)), FLOAT64) for k in (2, 3, 4))

    def mel(frequency: Expr) -> Expr:
        share = node.op("divide", frequency, node.number(700, frequency))
        return node.op("multiply", node.op("log1p", share), node.number(2595 / log(10), share))

    count = as_dim(filters + 2)
    nth = node.cast(node.op("arange", 0, count, 1, dtype=INT64), FLOAT64)
    span = node.op("subtract", mel(high), mel(low))
    step = node.op("divide", span, node.cast(node.materialize(sizes_of(count)), FLOAT64))
    edge = node.op("add", node.op("multiply", nth, step), mel(low))
    edge = node.op("expm1", node.op("multiply", edge, node.number(log(10) / 2595, edge)))
    edge = node.op("multiply", edge, node.number(700, edge))
    longer = node.cast(node.materialize(sizes_of(as_dim(length + 1))), FLOAT64)
    edge = node.op("floor", node.op("divide", node.op("multiply", longer, edge), rate))

    def edges(first: int) -> Expr:
        end = as_dim(filters + first)
        return node.op("strided_slice", edge, axes=(0,), begin=(first,), end=(end,), strides=None)

    left, center, right = (edges(k) for k in range(3))
    bins = as_dim(floordiv(length, 2) + 1)
    place = node.cast(node.op("arange", 0, bins, 1, dtype=INT64), FLOAT64)
    place = node.op("expand_dims", place, axis=1)
    one, zero = node.number(1, place), node.number(0, place)
    rise = node.op("maximum", node.op("subtract", center, left), one)
    up = node.op("divide", node.op("subtract", place, left), rise)
    up = node.op("where", node.op("equal", left, center), one, up)
    fall = node.op("maximum", node.op("subtract", right, center), one)
    down = node.op("divide", node.op("subtract", right, place), fall)

    def between(first: Expr, last: Expr, to_last: str) -> Expr:
        return node.op(
            "logical_and", node.op("greater_equal", place, first), node.op(to_last, place, last)
        )

    found = node.op("where", between(left, center, "less_equal"), up, zero)
    return node.cast(node.op("where", between(center, right, "less"), down, found), target)


CONVERTERS: dict[str, Converter] = {
    "DFT": _dft,
    "STFT": _stft,
    "MelWeightMatrix": _mel_weight_matrix,
}
