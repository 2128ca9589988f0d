"""Convolutions over one, two or three spatial axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, dim_text
from unity.ir.dtype import INT32, Array, DType, dtype
from unity.ir.prim_expr import PrimExpr, imm
from unity.ir.types import TensorType, Type
from unity.op.accumulate import Summand, narrowed, summand, working_dtype
from unity.op.algorithm import ALGORITHM, CONVOLUTIONS, check_algorithm
from unity.op.argument import factor_dtype, ranked, require_equal, type_text
from unity.op.attribute import DTYPE, INT, TEXT
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
from unity.op.window import (
    check_steps,
    dims_of,
    spatial,
    taps,
)

from .deal import deal
from .window_sum import STEPS, operands, sum_of_taps

_LAYOUTS = {1: ("NCW", "OIW"), 2: ("NCHW", "OIHW"), 3: ("NCDHW", "OIDHW")}


def _params(rank: int) -> tuple[Param, ...]:
    data, kernel = _LAYOUTS[rank]
    return (
        Param("x"),
        Param("weight"),
        *STEPS,
        attr("groups", INT, 1),
        attr("data_layout", TEXT, data),
        attr("kernel_layout", TEXT, kernel),
        attr("out_dtype", DTYPE, None),
        *((ALGORITHM,) if rank == 2 else ()),
    )


def out_dtype(attrs: Attrs, operands: DType | None) -> DType | None:
    """The dtype of the result: `out_dtype`, or the operands'."""
    given = attrs["out_dtype"]
    return dtype(given) if isinstance(given, str | DType) else operands


def require_layouts(call: OpCall, data: str, kernel: str) -> None:
    """Check that the layouts are the ones there is code for.

    Raises:
        UnityError: They are others.
    """
    for name, only in (("data_layout", data), ("kernel_layout", kernel)):
        if call.attrs[name] != only:
            raise call.error(
                f"{name} must be {only!r}, got {call.attrs[name]!r}",
                hint="transpose with permute_dims",
            )


def groups_of(call: OpCall, channels: Dim, outputs: Dim) -> int:
    """The number of groups.

    Raises:
        UnityError: It does not divide the channels.
    """
    groups = call.attrs["groups"]
    if not isinstance(groups, int) or groups < 1:
        raise call.error(f"groups must be a positive int, got {groups!r}")
    for what, count in (("input channels", channels), ("output channels", outputs)):
        if isinstance(count, int) and count % groups:
            raise call.error(f"groups={groups} does not divide the {count} {what}")
        if groups > 1 and not isinstance(count, int):
            raise call.error(f"groups={groups} needs known channels, got {dim_text(count)} {what}")
    return groups


def _infer(rank: int) -> TypeRule:
    def rule(call: OpCall) -> Type:
        require_layouts(call, *_LAYOUTS[rank])
        check_algorithm(call, CONVOLUTIONS)
        x, w = ranked(call, 0, rank + 2), ranked(call, 1, rank + 2)
        result = out_dtype(call.attrs, factor_dtype(call, (x, w)))
        if not isinstance(x.shape, tuple) or not isinstance(w.shape, tuple):
            return TensorType(rank + 2, result)
        groups = groups_of(call, x.shape[1], w.shape[0])
        require_equal(
            call,
            w.shape[1] * groups,
            x.shape[1],
            f"the weight {type_text(w)} with groups={groups} takes another number of input "
            f"channels than {type_text(x)} has",
        )
        windows = spatial(call.attrs, w.shape[2:], error=call.error)
        check_steps(call, windows, x.shape[2:])
        steps = [win.steps(e) for win, e in zip(windows, x.shape[2:], strict=True)]
        return TensorType((x.shape[0], w.shape[0], *steps), result)

    return rule


def _compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    (x, w), (shape, out) = operands(args), known(result)
    wide = working_dtype(out)
    extents, kernel = dims_of(x), dims_of(w)
    windows = spatial(attrs, kernel[2:])
    dealt = deal(x, windows, extents[2:], imm(0, x.dtype))
    groups = int_attr(attrs, "groups")
    taken, made = kernel[1], kernel[0]
    k, c = taps(windows), te.reduce_axis(taken, "ci")

    def channel(o: PrimExpr) -> PrimExpr:
        """The input channel that output channel `o` sees at step `c`."""
        if groups == 1:
            return c.var
        assert isinstance(made, int)
        assert isinstance(taken, int)
        per_group = made // groups
        group = o if per_group == 1 else o // per_group
        return group if taken == 1 else group * taken + c.var

    def product(*i: PrimExpr) -> te.Reduce:
        left = dealt.read((i[0], channel(i[1])), i[2:], [t.var for t in k])
        right = w[(i[1], 0 if depthwise else c.var, *(t.var for t in k))]
        return te.sum(te.cast(left, wide) * te.cast(right, wide), axis=k if depthwise else [c, *k])

    depthwise = taken == 1 and groups > 1
    total = te.compute(shape, product, "depthwise" if depthwise else "conv")
    return narrowed(total, out)


def _reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, w = args
    assert isinstance(x, np.ndarray)
    assert isinstance(w, np.ndarray)
    out = out_dtype(attrs, dtype(x.dtype))
    assert out is not None
    groups = int_attr(attrs, "groups")
    windows = spatial(attrs, w.shape[2:])
    weights = summand(w).reshape(groups, w.shape[0] // groups, *w.shape[1:])
    weights = np.moveaxis(weights, (0, 1, 2), (-3, -2, -1))

    def part(seen: Summand, tap: tuple[int, ...]) -> Summand:
        grouped = seen.reshape(len(x), groups, x.shape[1] // groups, *seen.shape[2:])
        return summand(np.einsum("ngc...,goc->ngo...", grouped, weights[tap]))

    total = sum_of_taps(summand(x), windows, part)
    whole = total.reshape(len(x), w.shape[0], *total.shape[3:])
    return whole.astype(out.numpy) if out.is_float else whole.astype(np.int64).astype(out.numpy)


def _samples(rank: int) -> Callable[[int], Sequence[Sample]]:
    params = _params(rank)

    def rule(seed: int) -> Sequence[Sample]:
        s = Sampler.seeded(seed)
        n, c, o = s.shape(3, 1, 5 - rank)
        size = s.shape(rank, 7 - rank, 9 - rank)
        ones, threes = (1,) * rank, (3,) * rank

        def call(
            channels: int, weight: tuple[int, ...], kind: str = "float32", **attrs: object
        ) -> Sample:
            x = s.array((n, channels, *size), kind)
            return sample(params, (x, s.array(weight, kind)), **attrs)

        mixed = (s.array((n, c, *size), "uint8"), s.array((o, c, *threes), "int8", -9, 9))
        return [
            sample(params, mixed, out_dtype=INT32, padding=1),
            call(c, (o, c, *threes)),
            call(c, (o, c, *threes), padding=1, strides=2),
            call(c, (o, c, *ones), "float16"),
            call(c, (o, c, *ones), strides=2),
            call(c, (o, c, *(2,) * rank), strides=3, padding=1),
            call(c, (o, c, *(2,) * rank), strides=2, dilation=2),
            call(c, (o, c, *(2,) * rank), strides=2, dilation=3),
            call(
                c,
                (o, c, *(2,) * rank),
                padding=tuple(range(2 * rank)),
                dilation=(1,) * (rank - 1) + (2,),
            ),
            call(2 * c, (2 * c, 1, *threes), groups=2 * c, padding=1),
            call(3, (6, 1, *threes), groups=3, padding=1, strides=2),
            call(4, (6, 2, *threes), "float64", groups=2, padding=1),
            call(c, (o, c, *threes), "int8", out_dtype=INT32, padding=1),
            sample(params, (s.array((0, c, *size)), s.array((o, c, *threes)))),
        ]

    return rule


def _multiply_adds(operands: Sequence[Extents], result: Extents) -> float:
    """Over all axes of the weight but the first, which is the result's channels."""
    return prod(result) * prod(operands[1][1:])


def _row(rank: int) -> OpDef:
    data, kernel = _LAYOUTS[rank]
    return OpDef(
        f"nn.conv{rank}d",
        _params(rank),
        _infer(rank),
        _reference,
        f"""Cross-correlation over {rank} spatial axes ({data} x {kernel} -> {data}).

        x ``(n, c, ...)``, weight ``(o, c / groups, ...)``, result ``(n, o, ...)`` where a spatial
        extent is ``(in + before + after - dilation * (kernel - 1) - 1) // stride + 1``. `padding`
        is one int, one for each axis, or all begins then all ends (R.nn.conv{rank}d, ONNX Conv).
        Half-width floats accumulate in float32, integers in `out_dtype`.
        """,
        compute=_compute,
        multiply_adds=_multiply_adds,
        op_class="convolution",
        pattern="out_fusable",
        samples=_samples(rank),
        precision="always",
    )


OPS: tuple[OpDef, ...] = (_row(1), _row(2), _row(3))
