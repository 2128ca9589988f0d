"""Broadcasting of tensors with symbolic dims, as numpy does it, for type rules and computes."""

from __future__ import annotations

from collections.abc import Sequence

from unity.ir.prim_expr import Imm, PrimExpr, imm
from unity.ir.types import Shape, TensorType
from unity.te import Tensor

from .argument import broadcast_shapes
from .registry import OpCall


def broadcast_types(call: OpCall, types: Sequence[TensorType]) -> Shape | int | None:
    """The shape of several tensors broadcast together, or its rank, or None if unknown.

    Raises:
        UnityError: Two dims at one place are neither provably equal nor 1.
    """
    if any(t.shape is None for t in types):
        return None
    known = [t.shape for t in types if isinstance(t.shape, tuple)]
    if len(known) < len(types):
        return max((t.ndim or 0 for t in types), default=0)
    return broadcast_shapes(call, known)


def read_broadcast(tensor: Tensor, index: Sequence[PrimExpr]) -> PrimExpr:
    """The element of `tensor` that broadcasting puts at `index` of the wider result."""
    offset = len(index) - len(tensor.shape)
    own = (
        imm(0) if _is_one(extent) else i
        for extent, i in zip(tensor.shape, index[offset:], strict=True)
    )
    return tensor[tuple(own)]


def _is_one(extent: PrimExpr) -> bool:
    return isinstance(extent, Imm) and extent.value == 1
