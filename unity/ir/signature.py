"""The calling convention of prim funcs: which sizes a kernel takes, and in what order.

A kernel is the C function ``int32 name(void *buffer..., int64 size..., scalar...)``: the buffers in
parameter order, then `size_params`, then the `PrimVar` parameters in order. It returns 0, or
1 + the index of the `Assert` that failed.
"""

from __future__ import annotations

from collections.abc import Mapping

from unity.ir.convert import to_dim
from unity.ir.dims import Dim, Symbol, equal, product, substitute
from unity.ir.prim_expr import Binary, PrimExpr, PrimVar, SizeVar
from unity.ir.stmt import Buffer, PrimFunc


def size_params(func: PrimFunc) -> tuple[SizeVar, ...]:
    """Symbols in order of first occurrence in buffers' shapes and strides, then explicit ones."""
    found: dict[SizeVar, None] = {}
    for param in func.params:
        if isinstance(param, Buffer):
            for extent in (*param.shape, *(param.strides or ())):
                found.update(dict.fromkeys(sizes_of(extent)))
    found.update(dict.fromkeys(p for p in func.params if isinstance(p, SizeVar)))
    return tuple(found)


def scalar_params(func: PrimFunc) -> tuple[PrimVar, ...]:
    """The scalar parameters that are not sizes."""
    return tuple(p for p in func.params if isinstance(p, PrimVar))


def sizes_of(expr: PrimExpr) -> tuple[SizeVar, ...]:
    """The sizes in a shape expression, in order."""
    match expr:
        case SizeVar():
            return (expr,)
        case Binary(_, a, b):
            return sizes_of(a) + sizes_of(b)
        case _:
            return ()


def is_contiguous(buffer: Buffer, known: Mapping[Symbol, Dim] | None = None) -> bool:
    """Whether a buffer is proven to lie as contiguous arrays do, its last index running fastest.

    Args:
        buffer: It; of axes of extent 1 the stride makes no difference.
        known: What its sizes are.
    """
    if buffer.strides is None:
        return True
    shape = [_known(extent, known) for extent in buffer.shape]
    for axis, stride in enumerate(buffer.strides):
        found, rest = _known(stride, known), [d for d in shape[axis + 1 :] if d is not None]
        if shape[axis] == 1:
            continue
        if found is None or len(rest) != len(shape) - axis - 1 or not equal(found, product(rest)):
            return False
    return True


def _known(value: PrimExpr, known: Mapping[Symbol, Dim] | None) -> Dim | None:
    found = to_dim(value)
    return found if found is None or not known else substitute(found, known)
