"""Convolution over blocked channels with the depth in groups, as dot instructions want."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from unity import te
from unity.ir.arrays.aligned import paged_copy
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim
from unity.ir.dtype import FLOAT32, INT32, Array, DType, dtype
from unity.ir.prim_expr import PrimExpr, imm
from unity.ir.types import TensorType, Type
from unity.op.accumulate import Summand, narrowed, summand, working_dtype
from unity.op.argument import factor_dtype, ranked, type_text
from unity.op.attribute import DTYPE, INT
from unity.op.reduction.reduce import known
from unity.op.registry import ComputeArg, Extents, OpCall, OpDef, Param, RefArg, Sample, attr
from unity.op.sampling import Sampler, sample
from unity.op.window import (
    Window,
    check_steps,
    dims_of,
    pad_spatial,
    position,
    spatial,
)

from .conv import out_dtype
from .window_sum import LANES, STEPS, operands, sum_of_taps

_PARAMS = (
    Param("x"),
    Param("weight"),
    *STEPS,
    attr("line", INT, None),
    attr("out_dtype", DTYPE, None),
)


def interleaved(weight: Array, group: int) -> Array:
    """Weights ``(o, c, kh, kw, b, d)`` as ``(o, c, kh, kw, b / group, d, group)``."""
    *taps, b, d = weight.shape
    parts = weight.reshape(*taps, b // group, group, d)
    return paged_copy(parts.swapaxes(-1, -2))


def interleaved_lines(weight: Array, group: int, step: int) -> Array:
    """The same with all taps of a line one after another: ``(o, c, kh, 1, j / group, d, group)``.

    `j` counts their channels, ``kw * b``, and zeros up to whole steps.
    """
    o, c, kh, kw, b, d = weight.shape
    lines = weight.reshape(o, c, kh, 1, kw * b, d)
    missing = -(kw * b) % step
    return interleaved(np.pad(lines, (*[(0, 0)] * 4, (0, missing), (0, 0))), group)


def _line(attrs: Attrs) -> int | None:
    given = attrs["line"]
    assert given is None or isinstance(given, int)
    return given


def _number(extent: Dim) -> int:
    """An extent that is known."""
    assert isinstance(extent, int)
    return extent


def _windows(attrs: Attrs, w: Sequence[Dim]) -> tuple[Window, Window]:
    """Those of the convolution."""
    line = _line(attrs)
    height, width = spatial(attrs, (w[2], w[3] if line is None else line))
    return height, width


def _infer(call: OpCall) -> Type:
    x, w = ranked(call, 0, 5), ranked(call, 1, 7)
    out = out_dtype(call.attrs, factor_dtype(call, (x, w)))
    if not isinstance(x.shape, tuple) or not isinstance(w.shape, tuple):
        return TensorType(5, out)
    if not all(isinstance(e, int) for e in (x.shape[1], x.shape[4], *w.shape)):
        message = f"channels and weights must be known, got {type_text(x)}, {type_text(w)}"
        raise call.error(message)
    line = _line(call.attrs)
    block, depth = _number(x.shape[4]), _number(w.shape[4]) * _number(w.shape[6])
    takes = depth == block if line is None else depth >= block * line and w.shape[3] == 1
    if w.shape[1] != x.shape[1] or not takes:
        message = f"the weight {type_text(w)} takes other channels than {type_text(x)} has"
        raise call.error(message)
    windows = _windows(call.attrs, w.shape)
    if line is not None and windows[1].dilation != 1:
        raise call.error("taps of a line that lie together are not dilated")
    check_steps(call, windows, x.shape[2:4])
    steps = [win.steps(e) for win, e in zip(windows, x.shape[2:4], strict=True)]
    return TensorType((x.shape[0], w.shape[0], *steps, w.shape[5]), out)


def _roomy(window: Window, extent: Dim, reach: int) -> Window:
    """A window's padding with as much more behind as lets the last one read `reach` elements."""
    room = extent + window.before + window.after
    missing = (window.steps(extent) - 1) * window.stride + reach - room
    if not isinstance(missing, int):  # the last window may end where the padding does
        missing = reach - _number(window.reach)
    return replace(window, after=window.after + max(0, missing))


def _compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    (x, w), (shape, out) = operands(args), known(result)
    wide = working_dtype(out)
    extents, weights = dims_of(x), dims_of(w)
    windows = _windows(attrs, weights)
    block, groups, group = extents[4], weights[4], weights[6]
    assert isinstance(block, int)
    assert isinstance(groups, int)
    assert isinstance(group, int)
    joined = _line(attrs) is not None
    roomy = _roomy(windows[1], extents[3], -(-groups * group // block)) if joined else windows[1]
    padded = pad_spatial(x, (windows[0], roomy, LANES), extents[2:], imm(0, x.dtype))
    names = ("ci", "kh", "kw", "k", "p")
    axes = [te.reduce_axis(e, name) for e, name in zip((*weights[1:5], group), names, strict=True)]
    blocks, high, wide_taps, k, p = (a.var for a in axes)

    def product(*i: PrimExpr) -> te.Reduce:
        n, o, y, column, c = i
        at = k * group + p
        line = position(y, high, windows[0])
        if joined:
            pixel, lane = position(column, at // block, windows[1]), at % block
        else:
            pixel, lane = position(column, wide_taps, windows[1]), at
        left = padded[(n, blocks, line, pixel, lane)]
        right = w[(o, blocks, high, wide_taps, k, c, p)]
        return te.sum(te.cast(left, wide) * te.cast(right, wide), axis=axes)

    total = te.compute(shape, product, "conv")
    return narrowed(total, out)


def _reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, w = args
    assert isinstance(x, np.ndarray)
    assert isinstance(w, np.ndarray)
    windows = _windows(attrs, w.shape)
    block, line = x.shape[4], _line(attrs)
    weights = summand(w).swapaxes(-1, -2)
    weights = weights.reshape(*w.shape[:4], -1, w.shape[5])
    if line is not None:
        weights = weights[:, :, :, 0, : line * block].reshape(*w.shape[:3], line, block, w.shape[5])

    def part(seen: Summand, tap: tuple[int, ...]) -> Summand:
        return summand(np.einsum("nihwl,oilc->nohwc", seen, weights[:, :, tap[0], tap[1]]))

    total = sum_of_taps(summand(x), (*windows, LANES), part)
    out = out_dtype(attrs, dtype(x.dtype))
    assert out is not None
    return total.astype(out.numpy)


def _samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    n, c, o = s.shape(3, 1, 2)
    h, w = s.shape(2, 5, 7)

    def call(
        x: tuple[int, ...],
        weight: tuple[int, ...],
        out: DType | None,
        step: int = 0,
        **attrs: object,
    ) -> Sample:
        plain = s.array(weight, "bfloat16")
        if step:
            arrays = (s.array(x, "bfloat16"), interleaved_lines(plain, 2, step))
            return sample(_PARAMS, arrays, line=weight[3], out_dtype=out, **attrs)
        arrays = (s.array(x, "bfloat16"), interleaved(plain, 2))
        return sample(_PARAMS, arrays, out_dtype=out, **attrs)

    narrow = interleaved(s.array((o, c, 3, 3, 16, 16), "int8", -128, 127), 4)
    mixed = (s.array((n, c, h, w, 16), "uint8", 0, 255), narrow)
    return [
        sample(_PARAMS, mixed, padding=1, out_dtype=INT32),
        call((n, c, h, w, 4), (o, c, 3, 3, 4, 4), FLOAT32, padding=1),
        call((n, c, h, w, 4), (o, c, 1, 1, 4, 4), None, strides=2),
        call((n, 1, h, w, 3), (o, 1, 3, 3, 3, 4), FLOAT32, 8, strides=2, padding=(0, 1, 2, 0)),
        call((n, c, h, w, 6), (o, c, 3, 2, 6, 4), FLOAT32, padding=2, dilation=2),
        call((1, 1, 2, 3, 32), (1, 1, 3, 2, 32, 32), FLOAT32, padding=1),
        call((1, 1, 3, 8, 3), (1, 1, 5, 7, 3, 32), FLOAT32, 32, padding=3, strides=2),
        call((0, c, h, w, 4), (o, c, 1, 1, 4, 4), FLOAT32),
    ]


def _multiply_adds(operands: Sequence[Extents], result: Extents) -> float:
    """Over all axes of the weight but those of the result's channels."""
    weight = operands[1]
    return prod(result) * prod(weight[1:-2]) * weight[-1]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "nn.conv2d_interleaved",
        _PARAMS,
        _infer,
        _reference,
        """Cross-correlation over two spatial axes, channels in blocks, the depth in groups.

        x ``(n, c / b, h, w, b)``, weight ``(o / d, c / b, kh, kw, b / g, d, g)``, result
        ``(n, o / d, h', w', d)``. With few channels the `line` taps of a line, which lie together
        in x, are as one: weight ``(o / d, c / b, kh, 1, j / g, d, g)``, where `j` counts their
        channels, tap by tap, and weights from ``line * b`` on are zero. Attributes as in nn.conv2d.
        """,
        compute=_compute,
        multiply_adds=_multiply_adds,
        op_class="convolution",
        pattern="out_fusable",
        samples=_samples,
        precision="always",
        sums=True,
    ),
)
