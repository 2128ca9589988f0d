"""Local response normalization."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dtype import Array
from unity.ir.prim_expr import PrimExpr
from unity.ir.types import Type
from unity.op.accumulate import real, rounded, widened
from unity.op.argument import axis, float_tensor
from unity.op.attribute import INT, NUMBER
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, attr, int_attr
from unity.op.sampling import Sampler, sample

from .moments import (
    arrays,
)

_LRN = (
    Param("x"),
    attr("size", INT),
    attr("axis", INT, 1),
    attr("alpha", NUMBER, 1e-4),
    attr("beta", NUMBER, 0.75),
    attr("bias", NUMBER, 1.0),
)


def _float(attrs: Attrs, name: str) -> float:
    value = attrs[name]
    assert isinstance(value, int | float), (name, value)
    return float(value)


def _lrn_infer(call: OpCall) -> Type:
    x = float_tensor(call, 0)
    size = call.attrs["size"]
    if not isinstance(size, int) or size < 1:
        raise call.error(f"size must be a positive int, got {size!r}")
    if x.ndim is not None:
        axis(call, call.attrs["axis"], x.ndim)
    return x


def _lrn_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    (x,) = args
    assert isinstance(x, te.Tensor)
    along, size = int_attr(attrs, "axis") % x.ndim, int_attr(attrs, "size")
    before, scale = (size - 1) // 2, _float(attrs, "alpha") / size
    k = te.reduce_axis(size, "k")
    extent = x.shape[along]

    def square(*i: PrimExpr) -> te.Reduce:
        at = i[along] + k.var - before
        value = widened(x[(*i[:along], at, *i[along + 1 :])])
        return te.sum(te.select(te.and_(at >= 0, at < extent), value * value, 0.0), axis=[k])

    squares = te.compute(x.shape, square, "squares")

    def element(*i: PrimExpr) -> PrimExpr:
        divisor = _power(squares[i] * scale + _float(attrs, "bias"), _float(attrs, "beta"))
        return te.cast(widened(x[i]) / divisor, x.dtype)

    return te.compute(x.shape, element, "lrn")


def _power(base: PrimExpr, exponent: float) -> PrimExpr:
    """A power; by roots where the exponent is that of nearly all networks, or its like."""
    root = te.sqrt(base)
    match exponent:
        case 0.5:
            return root
        case 0.75:
            return root * te.sqrt(root)
        case 1.0:
            return base
        case _:
            return te.power(base, exponent)


def _lrn_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    (x,) = arrays(args)
    along, size = int_attr(attrs, "axis") % x.ndim, int_attr(attrs, "size")
    wide = np.moveaxis(real(x), along, 0)
    before, total = (size - 1) // 2, np.zeros_like(wide)
    for c in range(len(wide)):
        total[c] = (wide[max(0, c - before) : c - before + size] ** 2).sum(axis=0)
    base = _float(attrs, "bias") + _float(attrs, "alpha") / size * total
    return rounded(np.moveaxis(wide / base ** _float(attrs, "beta"), 0, along), x)


def _lrn_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    n, c, h, w = s.shape(4)
    return [
        sample(_LRN, (s.array((n, c, h, w)),), size=3),
        sample(_LRN, (s.array((n, 6, h), "float64"),), size=4, alpha=0.5, bias=2.0),
        sample(_LRN, (s.array((n, c, h)),), size=2, beta=0.5, bias=0.5),
        sample(_LRN, (s.array((n, c, w)),), size=2, beta=1.0),
        sample(_LRN, (s.array((n, c, w)),), size=3, beta=0.6, alpha=0.2),
        sample(_LRN, (s.array((n, h, c), "float16"),), size=5, axis=-1),
        sample(_LRN, (s.array((0, c)),), size=3),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "nn.lrn",
        _LRN,
        _lrn_infer,
        _lrn_reference,
        """``x / (bias + alpha / size * s) ** beta``, s the sum of squares of `size` neighbours.

        Neighbours are along `axis`, ``(size - 1) // 2`` before and ``size // 2`` behind (ONNX LRN).
        """,
        compute=_lrn_compute,
        pattern="reduction",
        samples=_lrn_samples,
        tolerance=2e-5,
    ),
)
