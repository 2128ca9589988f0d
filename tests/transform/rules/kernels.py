"""Kernels of operators as rules find them, and what rules made of kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unity.ir.attrs import Attrs
from unity.ir.dims import Dim
from unity.ir.dtype import FLOAT32, DType
from unity.ir.graph import Call, Op, Var
from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc
from unity.ir.types import TensorType
from unity.ir.well_formed.verify import verify
from unity.machine.target import Target
from unity.op.infer import infer_type
from unity.op.registry import attr_value
from unity.op.table import OPS
from unity.script import parse
from unity.transform import Context
from unity.transform.graph.lower.legalize import make_kernel
from unity.transform.tensor import lowering


def unscheduled(
    name: str,
    operands: Sequence[Sequence[Dim]],
    attrs: Mapping[str, object],
    dtype: DType | Sequence[DType] = FLOAT32,
) -> tuple[PrimFunc, Attrs]:
    """The kernel of an operator on tensors of some shapes, and all its attributes.

    Types are one of all tensors, or one of each.
    """
    dtypes = [dtype] * len(operands) if isinstance(dtype, DType) else dtype
    types = [TensorType(tuple(s), d) for s, d in zip(operands, dtypes, strict=True)]
    args = tuple(Var(f"x{i}", t) for i, t in enumerate(types))
    op = OPS[name]
    _, bound = op.bind(args, {**attrs})
    full = Attrs({k: attr_value(v) for k, v in bound.items()})
    return make_kernel(op, full, types, infer_type(Call(Op(name), args, full), {})), full


def lowered(func: PrimFunc, target: Target) -> PrimFunc:
    """A scheduled kernel lowered whole, verified after each step."""
    module, ctx = IRModule({"main": func}), Context(target)
    for step in lowering():
        module = step(module, ctx)
        verify(module)
    return module.prim_funcs()["main"]


CELL = """
{dim}@script.prim_func
def main(
    x: f32[Buffer, {m}, 12], w: f32[Buffer, {p}, 12, 8], c: f32[Buffer, {m}, {u}],
    s: f32[Buffer, {m}, {u}], h: f32[Buffer, {m}, {u}]
) -> None:
    t = T.alloc(({m}, {two}), "float32")
    for i, j, k in T.grid({m}, {two}, 12):
        with T.block("product"):
            vi, vj, vk = T.axis.remap("SSR", i, j, k)
            with T.init():
                t[vi, vj] = 0.0
            t[vi, vj] += x[vi, vk] * w[vj % {u} // 4, vk, vj // {u} * 4 + vj % {u} % 4]
    for i, j in T.grid({m}, {u}):
        with T.block("state"):
            vi, vj = T.axis.remap("SS", i, j)
            s[vi, vj] = c[vi, vj] * T.sigmoid(t[vi, vj]) + t[vi, vj + {u}]
    for i, j in T.grid({m}, {u}):
        with T.block("output"):
            vi, vj = T.axis.remap("SS", i, j)
            h[vi, vj] = T.tanh(s[vi, vj]) * t[vi, vj]
"""


def cell(rows: int | str, units: int) -> PrimFunc:
    """A product by columns in two chunks of units, for four lanes, and two readers of it."""
    symbol = "" if isinstance(rows, int) else f'{rows} = dim("{rows}")\n\n'
    text = CELL.format(dim=symbol, m=rows, u=units, two=2 * units, p=-(-units // 4))
    return parse(text).prim_funcs()["main"]
