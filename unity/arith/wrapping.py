"""Which integers are index arithmetic and which are data: the sums of data wrap.

Loop variables and sizes are small, so what is computed of them is what it would be among all
integers: terms change sides of a comparison, quotients lose common factors. A value from memory may
be any number of its dtype; ``x + 1`` of it may be less than ``x``. Sums, differences and products
of data keep the laws of a ring (they are exact modulo 2**64), and no others.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from unity.ir.prim_expr import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    Imm,
    Intrinsic,
    Load,
    Not,
    PrimExpr,
    PrimVar,
    Ramp,
    Select,
    SizeVar,
)
from unity.ir.visit import walk_prim

LIMIT = 1 << 63
"""Int64 holds ``-LIMIT <= value < LIMIT``."""
SMALL = 1 << 40
"""What numbers in index arithmetic stay below: times sizes they are still an int64."""
_NARROW = 32


def wraps(e: PrimExpr, data: AbstractSet[PrimVar] = frozenset()) -> bool:
    """Whether an integer may be so large that sums with it wrap.

    Args:
        e: The integer.
        data: Variables bound to such integers.

    >>> from unity.ir.dtype import INT64
    >>> from unity.ir.prim_expr import imm
    >>> from unity.ir.stmt import Buffer
    >>> n, x = SizeVar("n"), Load(Buffer("x", (imm(1),), INT64), (imm(0),))
    >>> wraps(n + 1), wraps(x), wraps(x % n), wraps(Binary("max", Binary("min", x, n), imm(0)))
    (False, True, False, False)
    """
    return not (_has_end(e, -1, data) and _has_end(e, 1, data))


def _has_end(e: PrimExpr, way: int, data: AbstractSet[PrimVar]) -> bool:
    """Whether a value is bounded from below (`way` is -1) or from above (1), as indices are."""
    match e:
        case Imm(value):
            return abs(value) < SMALL
        case PrimVar():
            return e not in data
        case SizeVar() | Compare() | Not():
            return True
        case Binary("min" | "max" as op, a, b):
            ends = _has_end(a, way, data), _has_end(b, way, data)
            return any(ends) if (op == "min") == (way > 0) else all(ends)
        case Binary("floormod" | "truncmod", _, b):
            return not wraps(b, data)
        case Binary("floordiv" | "truncdiv" | "shr", a, _):
            return not wraps(a, data)
        case Binary(_, a, b):
            return not wraps(a, data) and not wraps(b, data)
        case Cast(_, value) if value.dtype.is_float:
            return not any(isinstance(x, Load) or x in data for x in walk_prim(value))
        case Cast(_, value):
            return value.dtype.bits <= _NARROW or not wraps(value, data)
        case Select(_, then, orelse):
            return _has_end(then, way, data) and _has_end(orelse, way, data)
        case Intrinsic("likely", (a,)):
            return _has_end(a, way, data)
        case Load() | Intrinsic():
            return e.dtype.bits <= _NARROW
        case Ramp(a, b):
            return not wraps(a, data) and not wraps(b, data)
        case Broadcast(value):
            return _has_end(value, way, data)
