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
    return not all(_ends(e, data))


def _ends(e: PrimExpr, data: AbstractSet[PrimVar]) -> tuple[bool, bool]:
    """Whether a value has a bound below, and one above, as indices have; each part is met once."""
    match e:
        case Imm(value):
            known = abs(value) < SMALL
        case PrimVar():
            known = e not in data
        case SizeVar() | Compare() | Not():
            known = True
        case Binary("min", a, b):
            (low, high), (other_low, other_high) = _ends(a, data), _ends(b, data)
            return low and other_low, high or other_high
        case Binary("max", a, b):
            (low, high), (other_low, other_high) = _ends(a, data), _ends(b, data)
            return low or other_low, high and other_high
        case Binary("floormod" | "truncmod", _, b):
            known = all(_ends(b, data))
        case Binary("floordiv" | "truncdiv" | "shr", a, _):
            known = all(_ends(a, data))
        case Binary(_, a, b) | Ramp(a, b):
            known = all(_ends(a, data)) and all(_ends(b, data))
        case Cast(_, value) if value.dtype.is_float:
            known = not any(isinstance(x, Load) or x in data for x in walk_prim(value))
        case Cast(_, value):
            known = value.dtype.bits <= _NARROW or all(_ends(value, data))
        case Select(_, a, b):
            (low, high), (other_low, other_high) = _ends(a, data), _ends(b, data)
            return low and other_low, high and other_high
        case Intrinsic("likely", (a,)) | Broadcast(a):
            return _ends(a, data)
        case Load() | Intrinsic():
            known = e.dtype.bits <= _NARROW
    return known, known
