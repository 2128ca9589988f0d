"""What an expression comes to, for all values of its variables at once, with numpy.

For what is asked while compiling of few numbers; the meaning of programs is the interpreter's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from unity.ir.dtype import Array
from unity.ir.intrinsics import INTRINSICS
from unity.ir.prim_expr import (
    Binary,
    BinaryOp,
    Cast,
    Compare,
    CompareOp,
    Imm,
    Intrinsic,
    Load,
    Not,
    PrimExpr,
    PrimVar,
    Select,
    imm,
)
from unity.ir.stmt import Buffer
from unity.ir.visit import map_prim, prim_children

_BINARY: dict[BinaryOp, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "floordiv": np.floor_divide,
    "floormod": np.remainder,
    "truncmod": np.fmod,
    "min": np.minimum,
    "max": np.maximum,
    "fmin": np.fmin,
    "fmax": np.fmax,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_COMPARE: dict[CompareOp, Callable[[Any, Any], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}

Data: TypeAlias = Mapping[Buffer, Imm]
"""What all elements of some buffers are."""
NO_DATA: Data = {}


def values(e: PrimExpr, given: Mapping[PrimVar, Array]) -> Array | None:
    """What an expression comes to; None where it needs anything that is not given.

    Args:
        e: It, of scalars.
        given: The values of variables, arrays of one shape.

    >>> i = PrimVar("i")
    >>> values(Compare("eq", i % 3, imm(0)), {i: np.arange(5)})
    array([ True, False, False,  True, False])
    """
    if e.dtype.lanes > 1:
        return None
    if isinstance(e, PrimVar):
        return given.get(e)
    if isinstance(e, Imm):
        return np.asarray(e.value).astype(e.dtype.numpy)
    parts: list[Array] = []
    for child in prim_children(e):
        found = values(child, given)
        if found is None:
            return None
        parts.append(found)
    with np.errstate(all="ignore"):
        return _applied(e, parts)


def _applied(e: PrimExpr, parts: list[Array]) -> Array | None:
    match e:
        case Binary(op, a) if op in _BINARY:
            divides = op in ("floordiv", "floormod", "truncmod") and not a.dtype.is_float
            if divides and not parts[1].all():
                return None
            return np.asarray(_BINARY[op](*parts)).astype(e.dtype.numpy)
        case Compare():
            return np.asarray(_COMPARE[e.op](*parts), np.bool_)
        case Not():
            return np.logical_not(parts[0])
        case Select():
            return np.where(*parts)
        case Cast():
            return parts[0].astype(e.dtype.numpy)
        case Intrinsic() if e.name in INTRINSICS:
            return np.asarray(INTRINSICS[e.name].evaluate(*parts))
        case _:
            return None


def folded(e: PrimExpr, data: Data = NO_DATA) -> PrimExpr:
    """The expression with every part that is made of literals as one.

    Args:
        e: It.
        data: What all elements of some buffers are.

    >>> n = PrimVar("n")
    >>> folded(Binary("and", n < 4, Compare("gt", imm(1) + 1, imm(2)))).b.value
    False
    """
    match e:
        case Load() if e.dtype.lanes == 1 and e.buffer in data:
            return data[e.buffer]
        case Intrinsic("likely", (a,)):
            return folded(a, data)
        case _:
            pass
    new = map_prim(e, lambda x: folded(x, data))
    children = prim_children(new)
    if not children or not all(isinstance(c, Imm) for c in children):
        return new
    found = values(new, {})
    return new if found is None else imm(found.item(), new.dtype)
