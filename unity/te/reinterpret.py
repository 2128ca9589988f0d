"""The value of another dtype with the same bits, in terms of casts and of the bits of floats."""

from __future__ import annotations

from unity.errors import UnityError
from unity.ir.dtype import DType, dtype
from unity.ir.prim_expr import Binary, Broadcast, Cast, Intrinsic, PrimExpr, imm

_FLOATS = ("float32", "float64")


def reinterpreted(target: DType, value: PrimExpr) -> PrimExpr:
    """The value of a dtype that has the bits of another value, lane by lane.

    Args:
        target: An integer, float32, float64 or bfloat16; without lanes those of the value.
        value: The value, of as many bits a lane.

    Raises:
        UnityError: The numbers of bits differ, or the bits of such a dtype can't be had.
    """
    source = value.dtype
    if target.lanes == 1:
        target = target.with_lanes(source.lanes)
    if (target.bits, target.lanes) != (source.bits, source.lanes):
        raise UnityError(
            f"{source} has {source.bits} bits, {target} has {target.bits}",
            hint="cast it first to an integer of as many bits",
        )
    if target == source:
        return value
    return _of_bits(target, _bits(value, target))


def _bits(value: PrimExpr, target: DType) -> PrimExpr:
    """The bits of a value as an integer, signed or not."""
    kind, lanes = value.dtype, value.dtype.lanes
    if kind.is_int:
        return value
    if kind.element.name in _FLOATS:
        return Intrinsic("bits", (value,), dtype(f"int{kind.bits}").with_lanes(lanes))
    if kind.element.name != "bfloat16":
        raise _unknown(kind, target)
    wide = Cast(dtype("float32").with_lanes(lanes), value)
    bits = Intrinsic("bits", (wide,), dtype("int32").with_lanes(lanes))
    return Binary("shr", Cast(dtype("uint32").with_lanes(lanes), bits), _sixteen(lanes))


def _of_bits(target: DType, bits: PrimExpr) -> PrimExpr:
    lanes = target.lanes
    if target.is_int:
        return bits if bits.dtype == target else Cast(target, bits)
    if target.element.name in _FLOATS:
        signed = dtype(f"int{target.bits}").with_lanes(lanes)
        return Intrinsic("of_bits", (bits if bits.dtype == signed else Cast(signed, bits),), target)
    if target.element.name != "bfloat16":
        raise _unknown(target, bits.dtype)
    unsigned = Cast(dtype("uint16").with_lanes(lanes), bits)  # no sign goes into the upper half
    high = Binary("shl", Cast(dtype("uint32").with_lanes(lanes), unsigned), _sixteen(lanes))
    wide = Intrinsic(
        "of_bits",
        (Cast(dtype("int32").with_lanes(lanes), high),),
        dtype("float32").with_lanes(lanes),
    )
    return Cast(target, wide)


def _sixteen(lanes: int) -> PrimExpr:
    one = imm(16, dtype("uint32"))
    return one if lanes == 1 else Broadcast(one, lanes)


def _unknown(kind: DType, other: DType) -> UnityError:
    return UnityError(
        f"no code reinterprets {kind.element} and {other.element}",
        hint="T.reinterpret is of integers, float32, float64 and bfloat16",
    )
