"""The scalar functions of ``T``: what each takes and means, for the parser, ``help`` and stubs."""

from __future__ import annotations

from collections.abc import Mapping

from unity.arguments import Signature
from unity.ir.intrinsics import INTRINSICS
from unity.ir.prim_expr import BinaryOp

from .marker import Marker

OPERATIONS: Mapping[str, BinaryOp] = {
    "truncdiv": "truncdiv",
    "truncmod": "truncmod",
    "floordiv": "floordiv",
    "floormod": "floormod",
    "min": "min",
    "max": "max",
    "fmin": "fmin",
    "fmax": "fmax",
    "and_": "and",
    "or_": "or",
    "xor": "xor",
    "shl": "shl",
    "shr": "shr",
}
"""Operations that have a name besides the intrinsics, or instead of a sign of Python's."""
_MEANINGS: Mapping[str, str] = {
    "truncdiv": "The quotient of integers, rounded toward zero as in C",
    "truncmod": "The remainder of integers, with the sign of a as in C",
    "floordiv": "The quotient of integers, rounded down as a // b",
    "floormod": "The remainder of integers, with the sign of b as a % b",
    "min": "The lesser of two; NaN when either is",
    "max": "The greater of two; NaN when either is",
    "fmin": "The lesser of two floats; one of them where the other is NaN",
    "fmax": "The greater of two floats; one of them where the other is NaN",
    "and_": "Logical and of bools, bitwise and of integers",
    "or_": "Logical or of bools, bitwise or of integers",
    "xor": "Bitwise exclusive or",
    "shl": "a shifted left by b bits",
    "shr": "a shifted right by b bits, keeping its sign if it has one",
}
_OPERANDS = ("x", "y", "z")
SCALAR_SIGNATURES: Mapping[str, Signature] = {
    **{f"T.{name}": Signature.parse(f'T.{name}(a, b, *, dtype="")') for name in OPERATIONS},
    **{
        f"T.{name}": Signature.parse(f'T.{name}({", ".join(_OPERANDS[: row.arity])}, *, dtype="")')
        for name, row in INTRINSICS.items()
    },
}
"""What scalar functions take; `dtype` may say what the result is."""


def scalar_name(path: str) -> Marker:
    """The marker of a name of ``T``.

    Args:
        path: ``T.exp``.

    >>> scalar_name("T.exp").text
    'e to the power of x.'
    """
    return Marker(path, SCALAR_SIGNATURES.get(path), scalar_text(path))


def scalar_text(path: str) -> str:
    """What a scalar function computes; empty if it is none."""
    name = path.removeprefix("T.")
    meaning = INTRINSICS[name].doc if name in INTRINSICS else _MEANINGS.get(name)
    return "" if meaning is None else f"{meaning}."
