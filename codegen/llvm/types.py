"""LLVM's types for our dtypes: what a value is in a register, and what it is in memory.

In registers, floats narrower than 32 bits are ``float`` holding a value of the narrow type, 4-bit
integers are ``i8`` kept in range, bools are ``i1``. In memory all of these are plain integers of
the storage width, so nothing depends on what the target thinks of ``half`` or ``bfloat``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from unity.ir.dtype import DType

_CODES = {"float": "f32", "double": "f64", "half": "f16", "ptr": "p0"}


@dataclass(frozen=True, slots=True)
class Ty:
    """An LLVM type: a scalar or a fixed vector.

    Attributes:
        element: The scalar type's text, ``float``.
        lanes: Number of elements, 1 for a scalar.
        text: The type's text, ``<16 x float>``.
        suffix: As in intrinsics' names, ``v16f32``.
        bits: Width of an element.
    """

    element: str
    lanes: int
    text: str
    suffix: str
    bits: int

    @property
    def is_float(self) -> bool:
        """Whether elements are floating point."""
        return self.element[0] != "i"

    def of(self, element: str) -> Ty:
        """The type of as many other elements."""
        return ty(element, self.lanes)

    @property
    def int(self) -> Ty:
        """The integers of the same width."""
        return ty(f"i{self.bits}", self.lanes)

    @property
    def mask(self) -> Ty:
        """As many bits."""
        return ty("i1", self.lanes)


@cache
def ty(element: str, lanes: int = 1) -> Ty:
    """The type of `lanes` elements.

    >>> ty("float", 16).text, ty("i8").suffix
    ('<16 x float>', 'i8')
    """
    code = _CODES.get(element, element)
    bits = 64 if element == "ptr" else int(code[1:])
    if lanes == 1:
        return Ty(element, 1, element, code, bits)
    return Ty(element, lanes, f"<{lanes} x {element}>", f"v{lanes}{code}", bits)


I1, I8, I32, I64 = ty("i1"), ty("i8"), ty("i32"), ty("i64")
F32, F64, PTR = ty("float"), ty("double"), ty("ptr")


def is_narrow(dtype: DType) -> bool:
    """Whether values are kept as ``float`` in registers and rounded after each operation."""
    return dtype.is_float and dtype.bits < 32


@cache
def value_type(dtype: DType) -> Ty:
    """The type of a value in a register."""
    if dtype.is_float:
        return ty("double" if dtype.bits == 64 else "float", dtype.lanes)
    if dtype.kind == "bool":
        return ty("i1", dtype.lanes)
    return ty(f"i{max(8, dtype.bits)}", dtype.lanes)


@cache
def memory_type(dtype: DType) -> Ty:
    """The type of a value in memory."""
    if dtype.is_float and dtype.bits >= 32:
        return value_type(dtype)
    return ty(f"i{8 * dtype.bytes}", dtype.lanes)
