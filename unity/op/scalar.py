"""Operators between scalars and tensors. None is a kernel: the machine moves the number itself.

`call_op` makes them where a scalar (``R.Prim``) is an operand, the parser where a tensor is given
for a scalar parameter.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity.ir.attrs import Attrs
from unity.ir.dtype import Array
from unity.ir.types import PrimType, TensorType, Type

from .argument import tensor
from .attribute import DTYPE
from .registry import OpCall, OpDef, Param, RefArg, array_arg, attr, dtype_attr

SCALAR_TENSOR, ITEM = "scalar_tensor", "item"
MOVES = frozenset({SCALAR_TENSOR, ITEM})
"""What one instruction of the VM does."""


def _infer_scalar_tensor(call: OpCall) -> Type:
    found = call.args[0]
    if not isinstance(found, PrimType):
        raise call.error(f"'value' must be a scalar, got {found}")
    if found.dtype != call.dtype():
        raise call.error(
            f"the scalar is {found.dtype}, not {call.dtype()}",
            "convert with R.astype(value, dtype)",
        )
    return TensorType((), found.dtype)


def _refer_scalar_tensor(args: Sequence[RefArg], attrs: Attrs) -> Array:
    return np.asarray(args[0]).astype(dtype_attr(attrs).numpy)


def _infer_item(call: OpCall) -> Type:
    x = tensor(call, 0)
    if x.ndim != 0 or x.dtype is None:
        raise call.error(f"'x' must be a tensor of rank 0 and known dtype, got {x}")
    return PrimType(x.dtype)


def _refer_item(args: Sequence[RefArg], attrs: Attrs) -> Array:
    return array_arg(args)


OPS: tuple[OpDef, ...] = (
    OpDef(
        SCALAR_TENSOR,
        (Param("value", "value"), attr("dtype", DTYPE)),
        _infer_scalar_tensor,
        _refer_scalar_tensor,
        "A scalar as a tensor of rank 0, of the scalar's own dtype (torch.scalar_tensor). Operators"
        " make it of scalars that they are given: ``x * s``, ``R.full((n,), s)``.",
    ),
    OpDef(
        ITEM,
        (Param("x"),),
        _infer_item,
        _refer_item,
        "The number in a tensor of rank 0, as a scalar of its dtype (torch.Tensor.item).",
    ),
)
