"""TVM's rules for operands of two dtypes, where a program is TVMScript: one is converted.

Our own language asks for a cast instead. Signed with unsigned integers stays an error there, too:
what loops count in is wider here than in TVM, and the sign of a result could depend on that.
"""

from __future__ import annotations

from unity.ir.dtype import BOOL, DType


def promoted(a: DType, b: DType) -> DType | None:
    """The dtype that both operands are converted to; None where they don't go together.

    >>> from unity.ir.dtype import FLOAT32, INT32, INT64, dtype
    >>> str(promoted(INT32, INT64)), str(promoted(INT64, FLOAT32))
    ('int64', 'float32')
    >>> promoted(INT32, dtype("uint8")) is None
    True
    """
    if a == b:
        return a
    if a.lanes != b.lanes:
        return None
    for one, other in ((a, b), (b, a)):
        if one.element == BOOL or (one.element.is_int and other.element.is_float):
            return other
    same_kind = a.element.kind == b.element.kind
    if not same_kind or a.element.bits == b.element.bits:
        return None
    return a if a.element.bits > b.element.bits else b


def converts(value: DType, wanted: DType) -> bool:
    """Whether a store converts a value to what the buffer holds: numbers, as many lanes."""
    return value.lanes == wanted.lanes and BOOL not in (value.element, wanted.element)
