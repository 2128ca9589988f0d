"""The place of a number among sorted ones: bucketize, and drawing classes by uniform numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dtype import INT32, INT64, Array
from unity.ir.graph import Expr
from unity.ir.prim_expr import PrimExpr
from unity.ir.types import TensorType, Type
from unity.op.accumulate import real
from unity.op.argument import common_dtype, float_tensor, int_tensor, ranked, require_equal, tensor
from unity.op.attribute import DTYPE, FLAG
from unity.op.reduction.reduce import known
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, attr, dtype_attr
from unity.op.sampling import Sampler, sample

from .gather import clamped

if TYPE_CHECKING:
    from unity.op.emitter import Emitter

_BUCKETIZE = (
    Param("x"),
    Param("boundaries"),
    attr("out_int32", FLAG, False),
    attr("right", FLAG, False),
)
_DRAW = (
    Param("prob"),
    Param("uniform_sample"),
    Param("sample_indices"),
    attr("dtype", DTYPE, INT64),
)


def _arrays(args: Sequence[RefArg]) -> list[Array]:
    return [a for a in args if isinstance(a, np.ndarray)]


def _infer(call: OpCall) -> Type:
    x, boundaries = tensor(call, 0), ranked(call, 1, 1)
    kind = common_dtype(call, (x, boundaries))
    if kind is not None and not (kind.is_float or kind.is_int):
        raise call.error(f"operands must be numbers, got {kind}")
    return TensorType(x.shape, INT32 if call.flag("out_int32") else INT64)


def _compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, boundaries = args
    assert isinstance(x, te.Tensor)
    assert isinstance(boundaries, te.Tensor)
    dims, out = known(result)
    k = te.reduce_axis(boundaries.shape[0], "k")

    def element(*i: PrimExpr) -> te.Reduce:
        value, bound = x[i], boundaries[k.var]
        passed: PrimExpr = bound <= value if attrs["right"] is True else bound < value
        if value.dtype.is_float:  # NaN is above every number, as numpy sorts it
            none: PrimExpr = te.ne(value, value)
            if attrs["right"] is not True:
                none = te.and_(none, te.eq(bound, bound))
            passed = te.or_(passed, none)
        return te.sum(te.select(passed, te.cast(1, out), te.cast(0, out)), [k])

    return te.compute(dims, element, "bucketize")


def _reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, boundaries = _arrays(args)
    side: Literal["left", "right"] = "right" if attrs["right"] is True else "left"
    found = np.asarray(np.searchsorted(boundaries, np.asarray(x), side))
    return found.astype(np.int32 if attrs["out_int32"] is True else np.int64)


def _samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b = s.shape(2, 2, 5)
    bounds = np.sort(s.array((5,)))
    holes = np.append(bounds, np.array([np.nan, np.nan], np.float32))
    return [
        sample(_BUCKETIZE, (s.array((a, b)), bounds)),
        sample(_BUCKETIZE, (bounds, bounds), right=True),
        sample(_BUCKETIZE, (np.array([np.nan, np.inf, 0], np.float32), bounds), out_int32=True),
        sample(_BUCKETIZE, (s.array((a,), "int64", -9, 9), np.arange(-3, 4))),
        sample(_BUCKETIZE, (s.array((a,)), s.array((0,)))),
        sample(_BUCKETIZE, (np.flip(holes), holes)),
        sample(_BUCKETIZE, (np.flip(holes), holes), right=True),
    ]


def _draw_infer(call: OpCall) -> Type:
    prob, uniform, rows = ranked(call, 0, 2), ranked(call, 1, 2), ranked(call, 2, 2)
    float_tensor(call, 0)
    float_tensor(call, 1)
    int_tensor(call, 2)
    if call.dtype().is_float:
        raise call.error(f"'dtype' must be an integer one, got {call.dtype()}")
    if isinstance(uniform.shape, tuple):
        require_equal(call, uniform.shape[1], 1, "the length of a row of 'uniform_sample'")
        if isinstance(rows.shape, tuple):
            for d, (a, b) in enumerate(zip(rows.shape, uniform.shape, strict=True)):
                require_equal(call, a, b, f"'sample_indices' along axis {d}")
        return TensorType(uniform.shape, call.dtype())
    del prob
    return TensorType(2, call.dtype())


def _draw_expand(e: Emitter, args: Sequence[Expr], attrs: Attrs, result: Type) -> Expr:
    prob, uniform, rows = args
    n, _ = e.shape_of(uniform)
    _, classes = e.shape_of(prob)
    out = dtype_attr(attrs)
    sums = e.op("cumsum", prob, axis=1)
    picked = e.op("take", sums, e.op("reshape", rows, (n,)), axis=0)
    passed = e.op("less_equal", picked, e.cast(uniform, e.dtype_of(prob)))
    count = e.op("sum", e.cast(passed, out), axis=(1,), keepdims=True)
    last = e.op("subtract", e.op("dims", classes, dtype=out), e.number(1, count))
    return e.op("minimum", count, last)


def _draw_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    prob, uniform, rows = _arrays(args)
    sums = np.cumsum(real(prob), axis=1).astype(prob.dtype)[clamped(rows[:, 0], len(prob))]
    passed = np.less_equal(sums, uniform.astype(prob.dtype))
    count = np.sum(passed, axis=1, keepdims=True)
    return np.asarray(np.minimum(count, prob.shape[1] - 1)).astype(dtype_attr(attrs).numpy)


def _draw_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    prob = np.array([[0.2, 0.5, 0.3], [0.125, 0.25, 0.625]], np.float32)
    uniform = s.array((6, 1), low=0.01, high=0.99)
    rows = s.array((6, 1), "int64", 0, 1)
    return [
        sample(_DRAW, (prob, uniform, rows)),
        sample(_DRAW, (prob, uniform[:2], rows[:2].astype(np.int32)), dtype=INT32),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "bucketize",
        _BUCKETIZE,
        _infer,
        _reference,
        """How many of the sorted `boundaries` are less than each element, an int64 or int32.

        With `right` those that are equal count as well. NaN is above every number and
        equal to NaN (R.bucketize, np.searchsorted; torch.bucketize counts boundaries of NaN as
        less than NaN).
        """,
        compute=_compute,
        pattern="opaque",
        samples=_samples,
    ),
    OpDef(
        "multinomial_from_uniform",
        _DRAW,
        _draw_infer,
        _draw_reference,
        """Classes drawn by uniform numbers: the first whose summed probability is above each.

        Of `prob` ``(batch, classes)``, `uniform_sample` ``(n, 1)`` in [0, 1) and the row of
        `prob` for each, `sample_indices` ``(n, 1)`` as in `R.take`; gives ``(n, 1)``
        (R.multinomial_from_uniform).
        """,
        expand=_draw_expand,
        samples=_draw_samples,
    ),
)
