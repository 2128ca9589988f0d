"""Which integers are index arithmetic and which are data: the sums of data wrap.

Loop variables and sizes are small, so what is computed of them is what it would be among all
integers: terms change sides of a comparison, quotients lose common factors. A value from memory may
be any number of its dtype; ``x + 1`` of it may be less than ``x``. Sums, differences and products
of data keep the laws of a ring (they are exact modulo 2**64), and no others. Narrow data, as
indices read from memory are, is index arithmetic as long as its products fit an int64.
"""

from __future__ import annotations

from collections.abc import Mapping

from unity.ir.dtype import DType
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
from unity.ir.visit import variables, walk_prim

LIMIT = 1 << 63
"""Int64 holds ``-LIMIT <= value < LIMIT``."""
SMALL = 1 << 40
"""What numbers in index arithmetic stay below: times sizes they are still an int64."""
BITS = 62
"""How many bits data may take and still be added to what an index is."""
_ANY = 64
_NARROW = 32
_NO_DATA: Mapping[PrimVar, int] = {}


def wraps(e: PrimExpr, data: Mapping[PrimVar, int] = _NO_DATA) -> bool:
    """Whether an integer may be so large that sums with it wrap.

    Args:
        e: The integer.
        data: Variables bound to data, and how many bits it takes.

    >>> from unity.ir.dtype import INT32, INT64
    >>> from unity.ir.prim_expr import imm
    >>> from unity.ir.stmt import Buffer
    >>> n, x = SizeVar("n"), Load(Buffer("x", (imm(1),), INT64), (imm(0),))
    >>> wraps(n + 1), wraps(x), wraps(x % n), wraps(Binary("max", Binary("min", x, n), imm(0)))
    (False, True, False, False)
    >>> i = Cast(INT64, Load(Buffer("i", (imm(1),), INT32), (imm(0),)))
    >>> wraps(i * 768 + n), wraps(i * i), wraps(i * i * 4)
    (False, False, True)
    """
    return data_bits(e, data) > BITS


def data_bits(e: PrimExpr, data: Mapping[PrimVar, int] = _NO_DATA) -> int:
    """How many bits the data in an integer may take: none in index arithmetic."""
    if data and not data.keys().isdisjoint(variables(e)):
        return max(_ends(e, data))
    try:
        return e.bits
    except AttributeError:
        found = max(_ends(e, _NO_DATA))
        object.__setattr__(e, "bits", found)
        return found


def product_bits(factors: int, coefficient: int) -> int:
    """How many bits a number times data of some takes; sizes and loop variables take none."""
    return factors + (abs(coefficient) - 1).bit_length() if factors else 0


def _ends(e: PrimExpr, data: Mapping[PrimVar, int]) -> tuple[int, int]:
    """How many bits a value's data takes below 0, and above; each part is met once."""
    match e:
        case Imm(value):
            bits = 0 if abs(value) < SMALL else _ANY
        case PrimVar():
            bits = data.get(e, 0)
        case SizeVar() | Compare() | Not():
            bits = 0
        case Binary("min", a, b):
            (low, high), (other_low, other_high) = _ends(a, data), _ends(b, data)
            return max(low, other_low), min(high, other_high)
        case Binary("max", a, b):
            (low, high), (other_low, other_high) = _ends(a, data), _ends(b, data)
            return min(low, other_low), max(high, other_high)
        case Binary("floormod" | "truncmod", _, b):
            bits = data_bits(b, data)
        case Binary("floordiv" | "truncdiv" | "shr", a, _):
            bits = data_bits(a, data)
        case Binary("mul", a, Imm(int() as c)) | Binary("mul", Imm(int() as c), a):
            bits = product_bits(data_bits(a, data), c) if abs(c) < SMALL else _ANY
        case Binary("mul", a, b):
            bits = data_bits(a, data) + data_bits(b, data)
        case Binary("shl", a, b):
            bits = _shifted(data_bits(a, data), b, data)
        case Binary(_, a, b) | Ramp(a, b):
            most = max(data_bits(a, data), data_bits(b, data))
            bits = most and most + 1
        case Cast(_, value) if value.dtype.is_float:
            bits = _ANY if any(isinstance(x, Load) or x in data for x in walk_prim(value)) else 0
        case Cast(_, value):
            bits = data_bits(value, data)
            if value.dtype.bits <= _NARROW:
                bits = min(bits, _magnitude(value.dtype))
        case Select(_, a, b):
            (low, high), (other_low, other_high) = _ends(a, data), _ends(b, data)
            return max(low, other_low), max(high, other_high)
        case Intrinsic("likely", (a,)) | Broadcast(a):
            return _ends(a, data)
        case Load() | Intrinsic():
            bits = _magnitude(e.dtype) if e.dtype.bits <= _NARROW else _ANY
    return bits, bits


def _magnitude(kind: DType) -> int:
    return kind.bits - (kind.kind == "int")


def _shifted(bits: int, by: PrimExpr, data: Mapping[PrimVar, int]) -> int:
    if not bits and not data_bits(by, data):
        return 0
    match by:
        case Imm(int() as places) if 0 <= places < _ANY:
            return bits + places
        case _:
            return _ANY
