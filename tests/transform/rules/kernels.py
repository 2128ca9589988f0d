"""Kernels of operators as rules find them, and what rules made of kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unity.ir.attrs import Attrs
from unity.ir.dims import Dim
from unity.ir.dtype import FLOAT32, DType
from unity.ir.graph import Call, Op, Var
from unity.ir.module import IRModule
from unity.ir.prim_expr import Imm
from unity.ir.stmt import Allocate, PrimFunc
from unity.ir.types import TensorType
from unity.ir.verify import verify
from unity.ir.visit import walk_stmt
from unity.machine.target import Target
from unity.op.infer import infer_type
from unity.op.registry import attr_value
from unity.op.table import OPS
from unity.transform import Context
from unity.transform.graph.lower.legalize import make_kernel
from unity.transform.tensor import lowering


def unscheduled(
    name: str,
    operands: Sequence[Sequence[Dim]],
    attrs: Mapping[str, object],
    dtype: DType = FLOAT32,
) -> tuple[PrimFunc, Attrs]:
    """The kernel of an operator on tensors of some shapes, and all its attributes."""
    types = [TensorType(tuple(shape), dtype) for shape in operands]
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


def accumulators(func: PrimFunc) -> list[int]:
    """The elements of each tile of accumulators."""
    found: list[int] = []
    for s in walk_stmt(func.body):
        if isinstance(s, Allocate) and s.buffer.name == "acc":
            (extent,) = s.buffer.shape
            assert isinstance(extent, Imm)
            found.append(int(extent.value))
    return found
