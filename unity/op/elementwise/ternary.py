"""Arithmetic of three tensors that broadcast: a multiply-add."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dtype import Array
from unity.ir.prim_expr import PrimExpr
from unity.ir.types import TensorType, Type
from unity.op.accumulate import exact, rounded, widened
from unity.op.argument import common_dtype, tensor
from unity.op.broadcast import broadcast_types, read_broadcast
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample
from unity.op.sampling import Sampler, sample

_PARAMS = (Param("x1"), Param("x2"), Param("x3"))


def _infer(call: OpCall) -> Type:
    types = [tensor(call, k) for k in range(3)]
    kind = common_dtype(call, types)
    if kind is not None and not (kind.is_float or kind.is_int):
        raise call.error(f"operands must be numbers, got {kind}", "convert with astype")
    return TensorType(broadcast_types(call, types), kind)


def _compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    tensors = [a for a in args if isinstance(a, te.Tensor)]
    assert isinstance(result, TensorType)
    assert isinstance(result.shape, tuple)
    out = result.dtype
    assert out is not None

    def element(*i: PrimExpr) -> PrimExpr:
        a, b, c = (widened(read_broadcast(t, i)) for t in tensors)
        return te.cast(a * b + c, out)

    return te.compute(result.shape, element, "ewise_fma")


def _reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    a, b, c = (x for x in args if isinstance(x, np.ndarray))
    return rounded(np.add(np.multiply(exact(a), exact(b)), exact(c)), a)


def _samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    return [
        sample(_PARAMS, (s.array((3, 4)), s.array((3, 4)), s.array((3, 4)))),
        sample(_PARAMS, (s.array((2, 1, 4)), s.array((3, 1)), s.array((4,)))),
        sample(_PARAMS, tuple(s.array((5,), "int32") for _ in range(3))),
        sample(_PARAMS, tuple(s.array((2, 3), "float16") for _ in range(3))),
        sample(_PARAMS, (s.array((0, 3)), s.array((1, 3)), s.array(()))),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "ewise_fma",
        _PARAMS,
        _infer,
        _reference,
        "``x1 * x2 + x3``, rounded once or twice as the machine does it (R.ewise_fma)."
        "\n\nThe three broadcast and have one dtype, integer or float, as the result has.",
        compute=_compute,
        pattern="broadcast",
        samples=_samples,
    ),
)
