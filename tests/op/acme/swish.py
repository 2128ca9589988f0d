"""An operator as another package writes it: Swish with a beta, all rows, and its converter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity import te
from unity.frontend.onnx.node import Node
from unity.ir.attrs import Attrs
from unity.ir.dtype import Array
from unity.ir.graph import Expr
from unity.ir.prim_expr import PrimExpr, imm
from unity.ir.types import Type
from unity.op.argument import float_tensor
from unity.op.attribute import NUMBER
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, attr
from unity.op.sampling import Sampler, sample

PARAMS = (Param("x"), attr("beta", NUMBER, 1.0))


def infer(call: OpCall) -> Type:
    return float_tensor(call, 0)


def compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    (x,) = args
    beta = attrs["beta"]
    assert isinstance(x, te.Tensor)
    assert isinstance(beta, int | float)

    def swish(*i: PrimExpr) -> PrimExpr:
        one = x[i]
        return one / (te.exp(one * imm(-float(beta), x.dtype)) + imm(1.0, x.dtype))

    return te.compute(x.shape, swish, "swish")


def reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    (x,) = args
    beta = attrs["beta"]
    assert isinstance(x, np.ndarray)
    assert isinstance(beta, int | float)
    wide = x.astype(np.float64)
    return np.asarray(wide / (1 + np.exp(-beta * wide)), x.dtype)


def samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    return [
        sample(PARAMS, (s.array((3, 4)),)),
        sample(PARAMS, (s.array((7,), "float64"),), beta=0.5),
        sample(PARAMS, (s.array((0, 2)),)),
    ]


SWISH = OpDef(
    "acme.swish",
    PARAMS,
    infer,
    reference,
    "x / (1 + exp(-beta * x)) of each element of a float tensor.",
    compute=compute,
    pattern="elementwise",
    samples=samples,
)


def swish_of(node: Node) -> Expr:
    return node.op("acme.swish", node.tensor(0), beta=node.float_of("beta", 1.0))
