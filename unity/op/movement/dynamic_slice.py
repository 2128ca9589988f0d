"""Slices whose bounds and steps are tensors: how long they are shows only when they run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from unity.ir.attrs import Attrs
from unity.ir.dims import equal
from unity.ir.dtype import INT64, Array
from unity.ir.graph import Constant, Expr
from unity.ir.types import TensorType, Type
from unity.op.argument import int_tensor, ranked, require_equal, tensor
from unity.op.registry import OpCall, OpDef, Param, RefArg, Sample
from unity.op.sampling import Sampler, sample

if TYPE_CHECKING:
    from unity.op.emitter import Emitter

_PARAMS = (Param("x"), Param("begin"), Param("end"), Param("strides"))


def _infer(call: OpCall) -> Type:
    x = tensor(call, 0)
    for k in (1, 2, 3):
        bounds = ranked(call, k, 1)
        int_tensor(call, k)
        if x.ndim is not None and isinstance(bounds.shape, tuple):
            name = _PARAMS[k].name
            require_equal(call, bounds.shape[0], x.ndim, f"the number of {name!r}, one an axis")
    if x.ndim is None:
        return TensorType(None, x.dtype)
    return TensorType(tuple(call.fresh(f"sliced_{k}") for k in range(x.ndim)), x.dtype)


def _expand(e: Emitter, args: Sequence[Expr], attrs: Attrs, result: Type) -> Expr:
    x, *bounds = args
    rank = e.rank_of(x)
    if rank == 0:
        return x
    begin, end, steps = (e.cast(b, INT64) for b in bounds)
    extents = e.op("dims", e.shape_of(x), dtype=INT64)
    zero, one, less = (Constant(np.array(v, np.int64)) for v in (0, 1, -1))
    low = e.op("where", e.op("greater", steps, zero), zero, less)
    high = e.op("add", extents, low)

    def inside(bound: Expr) -> Expr:
        """A bound, counted from the end if it is negative, at most one step outside."""
        from_end = e.op("add", bound, extents)
        counted = e.op("where", e.op("less", bound, zero), from_end, bound)
        return e.op("minimum", e.op("maximum", counted, low), high)

    start, stop = inside(begin), inside(end)
    still = e.op("equal", steps, zero)
    safe = e.op("where", still, one, steps)
    whole = e.op("floor_divide", e.op("subtract", start, stop), safe)
    length = e.op("maximum", e.op("negative", whole), zero)
    # A step of 0 has no length: running stops at one that is less than 0.
    sizes = e.read_sizes(e.op("where", still, less, length), rank, "length")
    for k, size in enumerate(sizes):
        if equal(e.shape_of(x)[k], 0):
            continue  # as it is: nothing can be taken
        step, first = (
            e.op("take", v, Constant(np.array(k, np.int64)), axis=0) for v in (steps, start)
        )
        nth = e.op("arange", 0, size, 1, dtype=INT64)
        x = e.op("take", x, e.op("add", e.op("multiply", nth, step), first), axis=k)
    return x


def _reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, *bounds = (a for a in args if isinstance(a, np.ndarray))
    parts = zip(*(b.tolist() for b in bounds), strict=True)
    return np.array(x[tuple(slice(*part) for part in parts)])


def _samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b = s.shape(2, 2, 6)

    def call(x: Array, *bounds: Sequence[int], kind: str = "int64") -> Sample:
        return sample(_PARAMS, (x, *(np.array(v).astype(kind) for v in bounds)))

    x = s.array((a, b))
    return [
        call(x, (0, 1), (a, b), (1, 1)),
        call(x, (-1, -99), (-99, 99), (-2, 3)),
        call(x, (1, -2), (0, 7), (1, 2), kind="int32"),
        call(s.array((3, 4, 5), "int64"), (2, 3, -1), (-9, 0, 9), (-1, -1, 1)),
        call(s.array((0, 3)), (0, 0), (2, 2), (1, 1)),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "dynamic_strided_slice",
        _PARAMS,
        _infer,
        _reference,
        """``x[begin[0]:end[0]:strides[0], ...]`` by Python's rules, of bounds that are tensors.

        `begin`, `end` and `strides` are integers, ``(rank,)`` each, one for each axis of `x`, whose
        sizes must be known, if only as symbols. The result has its rank and fresh symbols for its
        sizes. A stride of 0 stops the run (R.dynamic_strided_slice, ONNX Slice).
        """,
        expand=_expand,
        samples=_samples,
    ),
)
