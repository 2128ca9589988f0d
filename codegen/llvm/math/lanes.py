"""Arithmetic on registers with Python's operators: what the elementary functions are written in.

>>> from unity.codegen.llvm.abilities import abilities
>>> from unity.codegen.llvm.emitter import Emitter, Unit
>>> from unity.codegen.llvm.types import ty
>>> from unity.machine.target import Target
>>> em = Emitter(Unit(abilities(Target("cpu", "x86_64-unknown-linux-gnu", "", ())), ""))
>>> x = Num(em, ty("float", 4), "%x")
>>> y = x * x + 1.0
>>> print(em.lines[0].strip())
%t1 = fmul <4 x float> %x, %x
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..emitter import Emitter, float_text, int_text
from ..types import F32, Ty


@dataclass(frozen=True, slots=True)
class Num:
    """A register of floats, integers (wrapping, unsigned `>>`) or bits; operators emit code."""

    em: Emitter
    t: Ty
    text: str

    def like(self, value: float) -> Num:
        """A constant of this type."""
        text = float_text(float(value), self.t) if self.t.is_float else int_text(int(value), self.t)
        return Num(self.em, self.t, text)

    def _arg(self, other: Num | float) -> Num:
        return other if isinstance(other, Num) else self.like(other)

    def _op(self, name: str, a: Num, b: Num) -> Num:
        return Num(self.em, self.t, self.em.pure(f"{name} {self.t.text} {a.text}, {b.text}"))

    def _arith(self, name: str, a: Num, b: Num) -> Num:
        return self._op(f"f{name}" if self.t.is_float else name, a, b)

    def __add__(self, other: Num | float) -> Num:
        return self._arith("add", self, self._arg(other))

    def __radd__(self, other: float) -> Num:
        return self._arith("add", self._arg(other), self)

    def __sub__(self, other: Num | float) -> Num:
        return self._arith("sub", self, self._arg(other))

    def __rsub__(self, other: float) -> Num:
        return self._arith("sub", self._arg(other), self)

    def __mul__(self, other: Num | float) -> Num:
        return self._arith("mul", self, self._arg(other))

    def __rmul__(self, other: float) -> Num:
        return self._arith("mul", self._arg(other), self)

    def __truediv__(self, other: Num | float) -> Num:
        return self._op("fdiv", self, self._arg(other))

    def __rtruediv__(self, other: float) -> Num:
        return self._op("fdiv", self._arg(other), self)

    def __neg__(self) -> Num:
        if not self.t.is_float:
            return self.like(0) - self
        return Num(self.em, self.t, self.em.pure(f"fneg {self.t.text} {self.text}"))

    def __and__(self, other: Num | int) -> Num:
        return self._op("and", self, self._arg(other))

    def __or__(self, other: Num | int) -> Num:
        return self._op("or", self, self._arg(other))

    def __xor__(self, other: Num | int) -> Num:
        return self._op("xor", self, self._arg(other))

    def __invert__(self) -> Num:
        return self._op("xor", self, self.like(1 if self.t.bits == 1 else -1))

    def __lshift__(self, amount: int) -> Num:
        return self._op("shl", self, self.like(amount))

    def __rshift__(self, amount: int) -> Num:
        return self._op("lshr", self, self.like(amount))

    def shift_signed(self, amount: int) -> Num:
        """Shift right, keeping the sign."""
        return self._op("ashr", self, self.like(amount))

    def _test(self, ordered: str, integer: str, other: Num | float) -> Num:
        b = self._arg(other)
        name = f"fcmp {ordered}" if self.t.is_float else f"icmp {integer}"
        text = self.em.pure(f"{name} {self.t.text} {self.text}, {b.text}")
        return Num(self.em, self.t.mask, text)

    def __lt__(self, other: Num | float) -> Num:
        return self._test("olt", "slt", other)

    def __le__(self, other: Num | float) -> Num:
        return self._test("ole", "sle", other)

    def __gt__(self, other: Num | float) -> Num:
        return self._test("ogt", "sgt", other)

    def __ge__(self, other: Num | float) -> Num:
        return self._test("oge", "sge", other)

    def equals(self, other: Num | float) -> Num:
        """Bits of where the values are equal (ordered)."""
        return self._test("oeq", "eq", other)

    def differs(self, other: Num | float) -> Num:
        """Bits of where the values differ or are NaN."""
        return self._test("une", "ne", other)

    def is_nan(self) -> Num:
        """Bits of where the value is NaN."""
        return self._test("uno", "", self)

    def select(self, then: Num, orelse: Num | float) -> Num:
        """For bits: `then` where set, else `orelse`."""
        b = then._arg(orelse)
        text = self.em.pure(
            f"select {self.t.text} {self.text}, {then.t.text} {then.text}, {b.t.text} {b.text}"
        )
        return Num(self.em, then.t, text)

    def call(self, name: str, *others: Num | float) -> Num:
        """An LLVM intrinsic overloaded on this type."""
        args = [self._arg(o).text for o in others]
        return Num(self.em, self.t, self.em.intrinsic(name, self.t, self.text, *args))

    def times_plus(self, b: Num | float, c: Num | float) -> Num:
        """``self * b + c``, fused where the target can."""
        return self.call("fmuladd", b, c)

    def abs(self) -> Num:
        """The magnitude."""
        return self.call("fabs")

    def with_sign_of(self, other: Num) -> Num:
        """The magnitude with another's sign."""
        return self.call("copysign", other)

    def sqrt(self) -> Num:
        """The square root, correctly rounded."""
        return self.call("sqrt")

    def clamp(self, low: float, high: float) -> Num:
        """Within bounds; NaN stays NaN."""
        return (self < low).select(self.like(low), self).at_most(high)

    def at_most(self, high: float) -> Num:
        """No more than a bound; NaN stays NaN."""
        return (self > high).select(self.like(high), self)

    def convert(self, op: str, element: str) -> Num:
        """An LLVM conversion to another element type."""
        t = self.t.of(element)
        return Num(self.em, t, self.em.pure(f"{op} {self.t.text} {self.text} to {t.text}"))

    def bits(self) -> Num:
        """A float's bits as integers."""
        return self.convert("bitcast", f"i{self.t.bits}")

    def as_float(self) -> Num:
        """Bits as the float of their width."""
        return self.convert("bitcast", "float" if self.t.bits == 32 else "double")

    def horner(self, coefficients: Sequence[float]) -> Num:
        """The polynomial with these coefficients, highest power first."""
        result = self.like(coefficients[0])
        for c in coefficients[1:]:
            result = result.times_plus(self, c)
        return result

    def pick(self, table: Sequence[float]) -> Num:
        """For integers: in each lane, the number of a table of sixteen that the low bits name.

        Only where the target has `tables`, and on sixteen lanes of 32 bits.
        """
        t = self.t.of("float")
        numbers = ", ".join(f"float {float_text(float(v), F32)}" for v in table)
        name = "llvm.x86.avx512.permvar.sf.512"
        call = f"call {t.text} @{name}({t.text} <{numbers}>, {self.t.text} {self.text})"
        return Num(self.em, t, self.em.pure(call))

    @property
    def single(self) -> bool:
        """Whether this is 32 bits wide."""
        return self.t.bits == 32
