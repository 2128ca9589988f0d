"""The numbers that a kernel call passes: what its sizes are in terms of the caller's symbols."""

from __future__ import annotations

from collections.abc import Sequence

from unity.ir.convert import symbol_of, to_dim
from unity.ir.dims import Dim
from unity.ir.lattice import unify
from unity.ir.prim_expr import PrimVar, SizeVar
from unity.ir.signature import size_params
from unity.ir.stmt import Buffer, PrimFunc
from unity.ir.types import ObjectType, TensorType, Type


def kernel_sizes(func: PrimFunc, types: Sequence[Type], explicit: Sequence[Dim]) -> tuple[Dim, ...]:
    """Values of `size_params(func)` in order, then of its other scalars.

    Args:
        func: The kernel.
        types: What its buffers are given.
        explicit: Values of its scalar parameters, in order.
    """
    bound = unify([buffer_type(b) for b in func.buffers], list(types))
    scalars = [q for q in func.params if not isinstance(q, Buffer)]
    values = dict(zip(scalars, explicit, strict=True))
    sizes = tuple(values[v] if v in values else bound[symbol_of(v)] for v in size_params(func))
    rest = tuple(values[q] for q in scalars if isinstance(q, PrimVar))
    assert all(isinstance(q, SizeVar | PrimVar) for q in scalars)
    return (*sizes, *rest)


def buffer_type(buffer: Buffer) -> Type:
    """What a kernel takes for a buffer; anything if its shape is no dim."""
    dims = [to_dim(extent) for extent in buffer.shape]
    known = tuple(d for d in dims if d is not None)
    if len(known) != len(dims):
        return ObjectType()
    return TensorType(known, buffer.dtype)
