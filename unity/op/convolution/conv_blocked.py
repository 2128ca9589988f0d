"""Convolution over blocked channels: what layout conversion turns `nn.conv2d` and 3d into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim
from unity.ir.dtype import FLOAT32, Array, dtype
from unity.ir.prim_expr import PrimExpr, imm
from unity.ir.types import TensorType, Type
from unity.op.accumulate import Summand, narrowed, summand, working_dtype
from unity.op.algorithm import ALGORITHM, CONVOLUTIONS, check_algorithm
from unity.op.argument import factor_dtype, ranked, require_equal, type_text
from unity.op.attribute import DTYPE, FLAG
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
)
from unity.op.sampling import Sampler, sample
from unity.op.window import (
    check_steps,
    dims_of,
    pad_spatial,
    position,
    spatial,
    taps,
)

from .conv import out_dtype
from .window_sum import LANES, STEPS, operands, sum_of_taps

_PARAMS = (
    Param("x"),
    Param("weight"),
    *STEPS,
    attr("depthwise", FLAG, False),
    attr("out_dtype", DTYPE, None),
    ALGORITHM,
)


def _infer(rank: int) -> TypeRule:
    def rule(call: OpCall) -> Type:
        check_algorithm(call, CONVOLUTIONS)
        x, w = ranked(call, 0, rank + 3), ranked(call, 1, rank + 4)
        result = out_dtype(call.attrs, factor_dtype(call, (x, w)))
        depthwise = call.flag("depthwise")
        if not isinstance(x.shape, tuple) or not isinstance(w.shape, tuple):
            return TensorType(rank + 3, result)
        taken: tuple[Dim, Dim] = (w.shape[1], w.shape[-2])
        if depthwise:
            for e in taken:
                require_equal(call, e, 1, f"a depthwise weight has one input, got {type_text(w)}")
            taken = (w.shape[0], w.shape[-1])
        for seen, given in zip(taken, (x.shape[1], x.shape[-1]), strict=True):
            message = f"the weight {type_text(w)} takes other channels than {type_text(x)} has"
            require_equal(call, seen, given, message)
        windows = spatial(call.attrs, w.shape[2:-2], error=call.error)
        check_steps(call, windows, x.shape[2:-1])
        steps = [win.steps(e) for win, e in zip(windows, x.shape[2:-1], strict=True)]
        return TensorType((x.shape[0], w.shape[0], *steps, w.shape[-1]), result)

    return rule


def _compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    (x, w), (shape, out) = operands(args), known(result)
    wide = working_dtype(out)
    extents, kernel = dims_of(x), dims_of(w)
    windows = spatial(attrs, kernel[2:-2])
    padded = pad_spatial(x, (*windows, LANES), extents[2:], imm(0, x.dtype))
    depthwise = attrs["depthwise"] is True
    k = taps(windows)
    block, lane = te.reduce_axis(kernel[1], "ci"), te.reduce_axis(kernel[-2], "lane")

    def product(*i: PrimExpr) -> te.Reduce:
        n, o, *steps, c = i
        at = [position(s, t.var, win) for s, t, win in zip(steps, k, windows, strict=True)]
        tap = [t.var for t in k]
        if depthwise:
            left, right = padded[(n, o, *at, c)], w[(o, 0, *tap, 0, c)]
        else:
            left = padded[(n, block.var, *at, lane.var)]
            right = w[(o, block.var, *tap, lane.var, c)]
        axes = k if depthwise else [block, *k, lane]
        return te.sum(te.cast(left, wide) * te.cast(right, wide), axis=axes)

    total = te.compute(shape, product, "depthwise" if depthwise else "conv")
    return narrowed(total, out)


def _reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, w = args
    assert isinstance(x, np.ndarray)
    assert isinstance(w, np.ndarray)
    windows = spatial(attrs, w.shape[2:-2])
    form = "no...c,oc->no...c" if attrs["depthwise"] is True else "ni...l,oilc->no...c"

    def part(seen: Summand, tap: tuple[int, ...]) -> Summand:
        weight = np.moveaxis(summand(w), (0, 1), (-4, -3))[tap[:-1]]
        if attrs["depthwise"] is True:
            weight = weight[:, 0, 0]
        return summand(np.einsum(form, seen, weight))

    total = sum_of_taps(summand(x), (*windows, LANES), part)
    out = out_dtype(attrs, dtype(x.dtype))
    assert out is not None
    return total.astype(out.numpy)


def _samples(rank: int) -> Callable[[int], Sequence[Sample]]:
    def rule(seed: int) -> Sequence[Sample]:
        s = Sampler.seeded(seed)
        n, c, o = s.shape(3, 1, 2)
        size = s.shape(rank, 5, 9 if rank == 2 else 6)
        deep = (2,) * (rank - 2)  # taps of the axes before lines

        def call(
            o: int,
            c: int,
            window: tuple[int, int],
            lanes: tuple[int, int],
            x: int,
            kind: str = "float32",
            **attrs: object,
        ) -> Sample:
            image = s.array((n, o if attrs.get("depthwise") else c, *size, x), kind)
            weight = s.array((o, c, *deep, *window, *lanes), kind)
            return sample(_PARAMS, (image, weight), **attrs)

        uneven = (0,) * (rank - 1) + (1, 2) + (1,) * (rank - 2) + (3,)
        empty = (s.array((0, c, *size, 4)), s.array((o, c, *(1,) * rank, 4, 4)))
        return [
            call(o, c, (3, 3), (4, 4), 4, padding=1),
            call(o, c, (1, 1), (2, 4), 2, strides=2),
            call(2 * o, c, (3, 2), (1, 4), 1, strides=2, padding=uneven),
            call(o, c, (2, 2), (3, 5), 3, "float16", dilation=2),
            call(c, 1, (3, 3), (1, 4), 4, "bfloat16", depthwise=True, padding=1, out_dtype=FLOAT32),
            call(c, 1, (3, 3), (1, 4), 4, depthwise=True, padding=1, strides=2),
            call(c, 1, (5, 5), (1, 2), 2, "float64", depthwise=True, padding=2),
            sample(_PARAMS, empty),
        ]

    return rule


def _multiply_adds(operands: Sequence[Extents], result: Extents) -> float:
    """Over all axes of the weight but those of the result's channels, the first and the last."""
    return prod(result) * prod(operands[1][1:-1])


_AXES = {2: "h, w", 3: "d, h, w"}


def _row(rank: int) -> OpDef:
    axes = _AXES[rank]
    taps, made = (axes.replace(*by) for by in ((", ", ", k"), (", ", "', ")))
    return OpDef(
        f"nn.conv{rank}d_blocked",
        _PARAMS,
        _infer(rank),
        _reference,
        f"""Cross-correlation over {rank} spatial axes, channels in blocks that lie innermost.

        x ``(n, c / b, {axes}, b)``, weight ``(o / d, c / b, k{taps}, b, d)``, result
        ``(n, o / d, {made}', d)``; the blocks `b` and `d` may differ, and ``b = 1`` is the plain
        layout. With `depthwise` each channel sees itself alone: weight
        ``(c / b, 1, k{taps}, 1, b)``. Extents and attributes as in nn.conv{rank}d.
        """,
        compute=_compute,
        multiply_adds=_multiply_adds,
        op_class="convolution",
        pattern="out_fusable",
        samples=_samples(rank),
        precision="always",
    )


OPS: tuple[OpDef, ...] = tuple(_row(rank) for rank in _AXES)
