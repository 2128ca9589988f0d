"""Transposed convolutions (the gradient of a convolution by its input) over one to three axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, as_dim, ceildiv, dim_text, equal, floordiv
from unity.ir.dtype import Array, dtype
from unity.ir.prim_expr import PrimExpr, imm
from unity.ir.symbols.convert import to_prim_expr
from unity.ir.types import TensorType, Type
from unity.op.accumulate import narrowed, summand, working_dtype
from unity.op.argument import common_dtype, ranked, require_equal, type_text
from unity.op.attribute import DTYPE, INT, INTS, TEXT
from unity.op.reduction.reduce import known
from unity.op.registry import (
    ComputeArg,
    Extents,
    OpCall,
    OpDef,
    Param,
    RefArg,
    Sample,
    TypeRule,
    attr,
    int_attr,
)
from unity.op.sampling import Sampler, sample
from unity.op.window import Window, all_taps, dims_of, per_axis, position, spatial, taps

from .conv import groups_of, out_dtype, require_layouts
from .window_sum import STEPS, operands

_LAYOUTS = {1: ("NCW", "IOW"), 2: ("NCHW", "IOHW"), 3: ("NCDHW", "IODHW")}


def _params(rank: int) -> tuple[Param, ...]:
    data, kernel = _LAYOUTS[rank]
    return (
        Param("x"),
        Param("weight"),
        *STEPS[:2],
        attr("output_padding", INTS, 0),
        *STEPS[2:],
        attr("groups", INT, 1),
        attr("data_layout", TEXT, data),
        attr("kernel_layout", TEXT, kernel),
        attr("out_dtype", DTYPE, None),
    )


def _steps(window: Window, extent: Dim, extra: int) -> Dim:
    """The extent of the result along an axis."""
    cut = window.before + window.after
    return as_dim((extent - 1) * window.stride - cut + window.reach + extra)


def _infer(rank: int) -> TypeRule:
    def rule(call: OpCall) -> Type:
        require_layouts(call, *_LAYOUTS[rank])
        x, w = ranked(call, 0, rank + 2), ranked(call, 1, rank + 2)
        result = out_dtype(call.attrs, common_dtype(call, (x, w)))
        extra = per_axis("output_padding", call.attrs["output_padding"], rank, 0, call.error)
        if not isinstance(x.shape, tuple) or not isinstance(w.shape, tuple):
            return TensorType(rank + 2, result)
        groups = groups_of(call, x.shape[1], w.shape[0])
        require_equal(
            call,
            w.shape[0],
            x.shape[1],
            f"the weight {type_text(w)} takes another number of input channels than "
            f"{type_text(x)} has",
        )
        windows = spatial(call.attrs, w.shape[2:], error=call.error)
        dims: list[Dim] = [x.shape[0], w.shape[1] * groups]
        for window, extent, more in zip(windows, x.shape[2:], extra, strict=True):
            if more >= max(window.stride, window.dilation):
                raise call.error(
                    f"output_padding {more} must be less than the stride {window.stride} "
                    f"or the dilation {window.dilation}"
                )
            dims.append(_steps(window, extent, more))
            if isinstance(dims[-1], int) and dims[-1] < 1:
                raise call.error(f"the result would have extent {dim_text(dims[-1])}: pad less")
        return TensorType(tuple(dims), result)

    return rule


@dataclass(frozen=True, slots=True)
class _Channels:
    """Which input channels an output channel sums over.

    Attributes:
        taken: How many.
        made: Output channels of a group.
        groups: How many groups.
    """

    taken: Dim
    made: Dim
    groups: int

    def source(self, o: PrimExpr, c: PrimExpr) -> PrimExpr:
        """The input channel of step `c`."""
        if self.groups == 1:
            return c
        return o // to_prim_expr(self.made) * to_prim_expr(self.taken) + c

    def within(self, o: PrimExpr) -> PrimExpr:
        """The output channel's number in its group, which the weight is indexed by."""
        return o if self.groups == 1 else o % to_prim_expr(self.made)


def _compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    (x, w), (dims, out) = operands(args), known(result)
    kernel, groups = dims_of(w), int_attr(attrs, "groups")
    channels = _Channels(floordiv(kernel[0], groups), kernel[1], groups)
    windows = spatial(attrs, kernel[2:])
    interleaves = any(v.stride > 1 for v in windows) and all(v.dilation == 1 for v in windows)
    by = _by_phase if interleaves else _by_spreading
    total = by(x, w, windows, channels, TensorType(dims, working_dtype(out)))
    return narrowed(total, out)


def _by_phase(
    x: te.Tensor, w: te.Tensor, windows: Sequence[Window], channels: _Channels, result: TensorType
) -> te.Tensor:
    """One small convolution for each phase of the stride, then the phases interleaved.

    Along an axis, element ``u = stride * q + r`` of the uncropped result sums
    ``x[q - j] * w[r + stride * j]`` over j: no zero is multiplied.
    """
    dims, wide = known(result)
    strides = [v.stride for v in windows]
    rank = len(windows)
    turns = [ceildiv(v.kernel, v.stride) for v in windows]
    counts = [
        floordiv(n - 1 + v.before, v.stride) + 1 for n, v in zip(dims[2:], windows, strict=True)
    ]
    framed = _framed(x, turns, counts)
    k = [te.reduce_axis(n, f"k{d}") for d, n in enumerate(turns)]
    c = te.reduce_axis(channels.taken, "ci")

    def weight(*i: PrimExpr) -> PrimExpr:
        """Laid out (output channel, phase, input channel, turn)."""
        o, phase, ci, turn = i[0], i[1 : 1 + rank], i[1 + rank], i[2 + rank :]
        taps = [r + j * s for r, j, s in zip(phase, turn, strides, strict=True)]
        ends = zip(taps, windows, turns, strict=True)
        inside = [
            t < to_prim_expr(v.kernel) for t, v, n in ends if not equal(n * v.stride, v.kernel)
        ]
        value = w[(channels.source(o, ci), channels.within(o), *taps)]
        return te.select(te.all_true(*inside), value, 0) if inside else value

    packed = te.compute((dims[1], *strides, channels.taken, *turns), weight, "weight_by_phase")

    def product(*i: PrimExpr) -> te.Reduce:
        phase, place = i[2 : 2 + rank], i[2 + rank :]
        at = [q + to_prim_expr(n - 1) - t.var for q, n, t in zip(place, turns, k, strict=True)]
        left = framed[(i[0], channels.source(i[1], c.var), *at)]
        right = packed[(i[1], *phase, c.var, *(t.var for t in k))]
        return te.sum(te.cast(left, wide) * te.cast(right, wide), axis=[c, *k])

    phases = te.compute((*dims[:2], *strides, *counts), product, "conv_transpose")

    def element(*i: PrimExpr) -> PrimExpr:
        full = [v + window.before for v, window in zip(i[2:], windows, strict=True)]
        phase = [u % s for u, s in zip(full, strides, strict=True)]
        return phases[(*i[:2], *phase, *(u // s for u, s in zip(full, strides, strict=True)))]

    return te.compute(dims, element, "interleaved")


def _framed(x: te.Tensor, turns: Sequence[Dim], counts: Sequence[Dim]) -> te.Tensor:
    """The input with ``turns - 1`` zeros before, and as many after as `counts` windows need."""
    extents = dims_of(x)[2:]
    shape: list[Dim | PrimExpr] = [*x.shape[:2]]
    shape += [q + n - 1 for q, n in zip(counts, turns, strict=True)]

    def element(*i: PrimExpr) -> PrimExpr:
        at = [v - to_prim_expr(n - 1) for v, n in zip(i[2:], turns, strict=True)]
        inside = [
            test for v, e in zip(at, extents, strict=True) for test in (v >= 0, v < to_prim_expr(e))
        ]
        return te.select(te.all_true(*inside), x[(*i[:2], *at)], imm(0, x.dtype))

    return te.compute(shape, element, "pad")


def _by_spreading(
    x: te.Tensor, w: te.Tensor, windows: Sequence[Window], channels: _Channels, result: TensorType
) -> te.Tensor:
    """The input spread out by the stride and padded, then a convolution, the kernel backwards."""
    dims, wide = known(result)
    spread = _spread(x, windows, dims_of(x)[2:], dims[2:])
    k, c = taps(windows), te.reduce_axis(channels.taken, "ci")
    plain = [replace(window, stride=1) for window in windows]

    def product(*i: PrimExpr) -> te.Reduce:
        at = [position(s, t.var, window) for s, t, window in zip(i[2:], k, plain, strict=True)]
        channel = channels.source(i[1], c.var)
        back = [to_prim_expr(v.kernel) - 1 - t.var for v, t in zip(windows, k, strict=True)]
        left, right = spread[(i[0], channel, *at)], w[(channel, channels.within(i[1]), *back)]
        return te.sum(te.cast(left, wide) * te.cast(right, wide), axis=[c, *k])

    return te.compute(dims, product, "conv_transpose")


def _spread(
    x: te.Tensor, windows: Sequence[Window], extents: Sequence[Dim], made: Sequence[Dim]
) -> te.Tensor:
    """The elements `stride` apart, zeros between and around."""
    shape: list[Dim | PrimExpr] = [*x.shape[:2]]
    shape += [n + window.reach - 1 for window, n in zip(windows, made, strict=True)]

    def element(*i: PrimExpr) -> PrimExpr:
        inside: list[PrimExpr] = []
        at: list[PrimExpr] = []
        for v, window, extent in zip(i[2:], windows, extents, strict=True):
            offset = v - to_prim_expr(window.reach - 1 - window.before)
            place = offset if window.stride == 1 else offset // window.stride
            inside += [offset >= 0, place < to_prim_expr(extent)]
            if window.stride > 1:
                inside.append(te.eq(offset % window.stride, 0))
            at.append(place)
        return te.select(te.all_true(*inside), x[(*i[:2], *at)], imm(0, x.dtype))

    return te.compute(shape, element, "spread")


def _reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    """Each input element adds its multiple of the kernel to the result."""
    x, w = args
    assert isinstance(x, np.ndarray)
    assert isinstance(w, np.ndarray)
    out = out_dtype(attrs, dtype(x.dtype))
    assert out is not None
    rank, groups = x.ndim - 2, int_attr(attrs, "groups")
    windows = spatial(attrs, w.shape[2:])
    extra = per_axis("output_padding", attrs["output_padding"], rank, 0)
    full: list[int] = []
    for window, extent, more in zip(windows, x.shape[2:], extra, strict=True):
        whole = _steps(replace(window, before=0, after=0), extent, more)
        assert isinstance(whole, int)
        full.append(whole)
    grouped = summand(x).reshape(len(x), groups, x.shape[1] // groups, *x.shape[2:])
    weights = summand(w).reshape(groups, w.shape[0] // groups, w.shape[1], -1)
    total = np.zeros((len(x), groups, w.shape[1], *full), weights.dtype)
    for n, tap in enumerate(all_taps(windows)):
        places = [
            slice(
                t * window.dilation,
                t * window.dilation + (e - 1) * window.stride + 1,
                window.stride,
            )
            for t, window, e in zip(tap, windows, x.shape[2:], strict=True)
        ]
        part = np.einsum("ngc...,gco->ngo...", grouped, weights[..., n])
        total[(slice(None), slice(None), slice(None), *places)] += part
    joined = total.reshape(len(x), groups * w.shape[1], *full)
    cut = [slice(window.before, n - window.after) for window, n in zip(windows, full, strict=True)]
    kept = joined[(slice(None), slice(None), *cut)]
    return kept.astype(out.numpy) if out.is_float else kept.astype(np.int64).astype(out.numpy)


def _samples(rank: int) -> Callable[[int], Sequence[Sample]]:
    params = _params(rank)

    def rule(seed: int) -> Sequence[Sample]:
        s = Sampler.seeded(seed)
        n, c, o = s.shape(3, 1, 5 - rank)
        size = s.shape(rank, 2, 6 - rank)
        threes = (3,) * rank

        def call(
            channels: int, weight: tuple[int, ...], kind: str = "float32", **attrs: object
        ) -> Sample:
            x = s.array((n, channels, *size), kind)
            return sample(params, (x, s.array(weight, kind)), **attrs)

        return [
            call(c, (c, o, *threes)),
            call(c, (c, o, *threes), strides=2, padding=1, output_padding=1),
            call(c, (c, o, *(2,) * rank), "float16", strides=2),
            call(c, (c, o, *(2,) * rank), padding=(1,) * rank + (0,) * rank, dilation=2),
            call(4, (4, 1, *threes), "float64", groups=2, strides=3),
            call(c, (c, o, *(1,) * rank), strides=2),
            sample(params, (s.array((0, c, *size)), s.array((c, o, *threes)))),
        ]

    return rule


def _multiply_adds(operands: Sequence[Extents], result: Extents) -> float:
    """Each element of the input is multiplied by all weights that it meets."""
    return prod(operands[0]) * prod(operands[1][1:])


def _row(rank: int) -> OpDef:
    data, kernel = _LAYOUTS[rank]
    return OpDef(
        f"nn.conv{rank}d_transpose",
        _params(rank),
        _infer(rank),
        _reference,
        f"""Transposed convolution over {rank} spatial axes ({data} x {kernel} -> {data}).

        x ``(n, c, ...)``, weight ``(c, o / groups, ...)``, result ``(n, o, ...)`` where a spatial
        extent is ``(in - 1) * stride - before - after + dilation * (kernel - 1) + 1 +
        output_padding`` (R.nn.conv{rank}d_transpose, ONNX ConvTranspose, torch).
        """,
        compute=_compute,
        multiply_adds=_multiply_adds,
        op_class="convolution",
        pattern="out_fusable",
        samples=_samples(rank),
        precision="always",
    )


OPS: tuple[OpDef, ...] = (_row(1), _row(2), _row(3))
