"""Comparisons of two tensors that broadcast; the result is bool."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from unity.ir.attrs import Attrs
from unity.ir.dtype import BOOL, Array
from unity.ir.prim_expr import Compare, CompareOp
from unity.ir.types import TensorType, Type
from unity.op.argument import common_dtype, tensor
from unity.op.broadcast import broadcast_types
from unity.op.registry import OpCall, OpDef, Param, RefArg, Sample
from unity.op.sampling import Sampler, sample

from .binary import BROADCASTS, map_pairs, pair_of_arrays

_PARAMS = (Param("x1"), Param("x2"))


def _infer(call: OpCall) -> Type:
    types = (tensor(call, 0), tensor(call, 1))
    if common_dtype(call, types) == BOOL and call.op.name not in ("equal", "not_equal"):
        raise call.error("bools have no order", "compare with equal, or convert with astype")
    return TensorType(broadcast_types(call, types), BOOL)


def _op(
    name: str,
    node: CompareOp,
    reference: Callable[[Array, Array], Array],
    doc: str,
    onnx: str | None = None,
) -> OpDef:
    kinds = ["float32", "int32", "float16", "int64", "uint8"]
    if node in ("eq", "ne"):
        kinds.append("bool")

    def samples(seed: int) -> Sequence[Sample]:
        s = Sampler.seeded(seed)
        return [
            sample(_PARAMS, (s.array(a, kind, -1, 1), s.array(b, kind, -1, 1)))
            for i, (a, b) in enumerate(BROADCASTS)
            for kind in dict.fromkeys(("int32", kinds[i % len(kinds)]))
        ]

    def refer(args: Sequence[RefArg], attrs: Attrs) -> Array:
        return np.asarray(reference(*pair_of_arrays(args)))

    return OpDef(
        name,
        _PARAMS,
        _infer,
        refer,
        f"{doc}\n\nBoth tensors broadcast, as numpy's do, and have one dtype"
        f"{'' if node in ('eq', 'ne') else ', integer or float'}; others are refused."
        "\nThe result is bool.",
        compute=lambda args, attrs, result: map_pairs(
            args, result, lambda a, b: Compare(node, a, b), name
        ),
        pattern="broadcast",
        samples=samples,
        onnx=onnx,
    )


OPS: tuple[OpDef, ...] = (
    _op("equal", "eq", np.equal, "``x1 == x2``; NaN equals nothing.", onnx="Equal"),
    _op("not_equal", "ne", np.not_equal, "``x1 != x2``; true with NaN."),
    _op("less", "lt", np.less, "``x1 < x2``.", onnx="Less"),
    _op("less_equal", "le", np.less_equal, "``x1 <= x2``.", onnx="LessOrEqual"),
    _op("greater", "gt", np.greater, "``x1 > x2``.", onnx="Greater"),
    _op("greater_equal", "ge", np.greater_equal, "``x1 >= x2``.", onnx="GreaterOrEqual"),
)
