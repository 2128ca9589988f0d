"""Operators of a planned program: storage made explicit. Only type rules; machines implement them.

After PlanMemory a graph function consists of these, control flow and atoms. They are impure: their
order is their meaning.
"""

from __future__ import annotations

from unity.ir.types import ObjectType, ShapeType, TensorType, TupleType, Type

from .argument import shape, tensor
from .attribute import DTYPE
from .registry import OpCall, OpDef, Param, attr

_ARENA = (Param("shape", "shape"),)
_VIEW = (
    Param("arena", "value"),
    Param("offset", "shape"),
    Param("shape", "shape"),
    attr("dtype", DTYPE),
)
_TENSOR = (Param("shape", "shape"), attr("dtype", DTYPE))
_KERNEL = (Param("kernel", "value"), Param("args", "tensors"), Param("sizes", "shape"))
_RESHAPE = (Param("x"), Param("shape", "shape"))


def _infer_arena(call: OpCall) -> Type:
    _one(call, 0, "shape")
    return ObjectType()


def _infer_view(call: OpCall) -> Type:
    _one(call, 1, "offset")
    return TensorType(shape(call, 2).dims, call.dtype())


def _infer_kernel(call: OpCall) -> Type:
    if not isinstance(call.args[1], TupleType) or not isinstance(call.args[2], ShapeType):
        raise call.error("takes a prim func, a tuple of tensors and a shape of sizes")
    return TupleType(())


def _infer_reshape(call: OpCall) -> Type:
    return TensorType(shape(call, 1).dims, tensor(call, 0).dtype)


def _one(call: OpCall, index: int, name: str) -> None:
    if shape(call, index).ndim != 1:
        raise call.error(f"{name!r} must be one number of bytes")


def _op(name: str, params: tuple[Param, ...], doc: str) -> OpDef:
    return OpDef(f"memory.{name}", params, _RULES[name], None, doc, pure=False)


_RULES = {
    "alloc_arena": _infer_arena,
    "view": _infer_view,
    "alloc_tensor": lambda call: TensorType(shape(call, 0).dims, call.dtype()),
    "call_kernel": _infer_kernel,
    "reshape_view": _infer_reshape,
}
OPS: tuple[OpDef, ...] = (
    _op("alloc_arena", _ARENA, "Storage of ``shape[0]`` bytes for one call of the function."),
    _op("view", _VIEW, "A tensor in an arena, ``offset[0]`` bytes from its start."),
    _op("alloc_tensor", _TENSOR, "A tensor with storage of its own: it may outlive the call."),
    _op(
        "call_kernel",
        _KERNEL,
        "Runs a prim func on tensors (inputs, then destinations) with the values of its sizes.",
    ),
    _op("reshape_view", _RESHAPE, "The same storage under another shape of as many elements."),
)
