"""Operators of a planned program: storage made explicit. Only type rules; machines implement them.

After PlanMemory a graph function consists of these, control flow and atoms. They are impure: their
order is their meaning.
"""

from __future__ import annotations

from unity.ir.types import ObjectType, ShapeType, TensorType, TupleType, Type

from .argument import shape, tensor
from .attribute import DTYPE
from .registry import OpDef, Param, Site, attr

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


def _infer_arena(site: Site) -> Type:
    _one(site, 0, "shape")
    return ObjectType()


def _infer_view(site: Site) -> Type:
    _one(site, 1, "offset")
    return TensorType(shape(site, 2).dims, site.dtype())


def _infer_kernel(site: Site) -> Type:
    if not isinstance(site.args[1], TupleType) or not isinstance(site.args[2], ShapeType):
        raise site.error("takes a prim func, a tuple of tensors and a shape of sizes")
    return TupleType(())


def _infer_reshape(site: Site) -> Type:
    return TensorType(shape(site, 1).dims, tensor(site, 0).dtype)


def _one(site: Site, index: int, name: str) -> None:
    if shape(site, index).ndim != 1:
        raise site.error(f"{name!r} must be one number of bytes")


def _op(name: str, params: tuple[Param, ...], doc: str) -> OpDef:
    return OpDef(f"memory.{name}", params, _RULES[name], None, doc, pure=False)


_RULES = {
    "alloc_arena": _infer_arena,
    "view": _infer_view,
    "alloc_tensor": lambda site: TensorType(shape(site, 0).dims, site.dtype()),
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
