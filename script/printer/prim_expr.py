"""Prim expressions as Python source, with the fewest parentheses.

A literal is written bare where the parser gives it its dtype (beside an operand of that dtype, or
where the dtype is Python's own), else as ``T.imm``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import assert_never

from unity.ir.attrs import NO_ATTRS
from unity.ir.dtype import BOOL, FLOAT32, INT64, DType
from unity.ir.foreign import ADDRESS_OF, CALL_EXTERN
from unity.ir.intrinsics import INTRINSICS
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
from unity.ir.stmt import Buffer, Range

from .literals import NO_SYMBOLS, SymbolNames, attrs_text, float_text, string_text, tuple_text
from .names import Names, identifier

_OR, _AND, _NOT, _COMPARE, _ADD, _MUL, _UNARY, _ATOM = 1, 2, 3, 4, 9, 10, 11, 12
_INFIX: dict[str, tuple[str, int]] = {
    "add": ("+", _ADD),
    "sub": ("-", _ADD),
    "mul": ("*", _MUL),
    "div": ("/", _MUL),
    "floordiv": ("//", _MUL),
    "floormod": ("%", _MUL),
    "or": ("|", 5),
    "xor": ("^", 6),
    "and": ("&", 7),
    "shl": ("<<", 8),
    "shr": (">>", 8),
}
_INFIX_BOOL: dict[str, tuple[str, int]] = {"or": ("or", _OR), "and": ("and", _AND)}
_CALLED: dict[str, str] = {
    "truncdiv": "T.truncdiv",
    "truncmod": "T.truncmod",
    "min": "T.min",
    "max": "T.max",
    "fmin": "T.fmin",
    "fmax": "T.fmax",
}
_SIGN: dict[str, str] = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


class PrimText:
    """Prints prim expressions with the names of one function.

    Args:
        names: Names of its variables and buffers.
        sizes: How the text calls each symbol, where not by its own name.
        symbols: The same for dims in attributes.
    """

    def __init__(
        self,
        names: Names,
        sizes: dict[SizeVar, str] | None = None,
        symbols: SymbolNames = NO_SYMBOLS,
    ) -> None:
        self.names = names
        self._sizes = sizes or {}
        self.symbols = symbols

    def expr(self, e: PrimExpr, like: DType | None = None) -> str:
        """The source of an expression; `like` is the dtype that a bare literal takes there."""
        return self._text(e, 0, like)

    def access(self, buffer: Buffer, indices: Sequence[PrimExpr]) -> str:
        """``a[i, j]``."""
        inner = ", ".join(self.expr(i) for i in indices) if indices else "()"
        return f"{self.names.of(buffer, buffer.name)}[{inner}]"

    def interval(self, extent: Range) -> tuple[str, str | None]:
        """The begin and end of a range, or its extent and None where it begins at 0."""
        begin, size = extent.begin, extent.extent
        if begin == _ZERO:
            return self.expr(size), None
        return self.expr(begin), self.end(extent)

    def end(self, extent: Range) -> str:
        """The end of a range, written so that the parser finds the extent again."""
        begin, size = extent.begin, extent.extent
        if isinstance(begin, Imm) and isinstance(size, Imm):
            return str(int(begin.value) + int(size.value))
        if begin == _ZERO and not (isinstance(size, Binary) and size.a == begin):
            return self.expr(size)
        return self.expr(Binary("add", begin, size))

    def _text(self, e: PrimExpr, level: int, like: DType | None = None) -> str:
        text, own = self._at_level(e, like)
        return f"({text})" if own < level else text

    def _at_level(self, e: PrimExpr, like: DType | None) -> tuple[str, int]:
        match e:
            case PrimVar():
                return self.names.of(e, e.name), _ATOM
            case SizeVar():
                return self._sizes.get(e) or identifier(e.name), _ATOM
            case Imm():
                return self._literal(e, like), _ATOM
            case Binary():
                return self._binary(e)
            case Compare(op, a, b):
                left, right = self._pair(a, b, _COMPARE + 1, _COMPARE + 1)
                return f"{left} {_SIGN[op]} {right}", _COMPARE
            case Not(a):
                return f"not {self._text(a, _NOT)}", _NOT
            case Load():
                return self._load(e), _ATOM
            case Select(condition, then, orelse):
                yes, no = self._pair(then, orelse, 0, 0)
                return f"T.select({self.expr(condition)}, {yes}, {no})", _ATOM
            case Cast(dtype, value):
                same = dtype.lanes == value.dtype.lanes
                name = dtype.name if same else str(dtype)
                return f'T.cast("{name}", {self.expr(value)})', _ATOM
            case Intrinsic():
                return self._intrinsic(e), _ATOM
            case Ramp(base, stride, lanes):
                step = self.expr(stride, base.dtype)
                return f"T.ramp({self.expr(base)}, {step}, {lanes})", _ATOM
            case Broadcast(value, lanes):
                return f"T.broadcast({self.expr(value)}, {lanes})", _ATOM
            case _:
                assert_never(e)

    def _binary(self, e: Binary) -> tuple[str, int]:
        a, b, op = e.a, e.b, e.op
        if op in _CALLED:
            left, right = self._pair(a, b, 0, 0)
            return f"{_CALLED[op]}({left}, {right})", _ATOM
        if op == "sub" and isinstance(a, Imm) and _is_plain_zero(a) and not isinstance(b, Imm):
            return f"-{self._text(b, _UNARY)}", _UNARY
        sign, level = _INFIX[op]
        if op in _INFIX_BOOL and a.dtype.element == BOOL:
            sign, level = _INFIX_BOOL[op]
        left, right = self._pair(a, b, level, level + 1)
        return f"{left} {sign} {right}", level

    def _pair(self, a: PrimExpr, b: PrimExpr, left: int, right: int) -> tuple[str, str]:
        """Two operands that the parser brings to one dtype."""
        if isinstance(a, Imm) and isinstance(b, Imm):
            first = self._literal(a, None)
            bare = None if _is_default(a) else a.dtype
            return first, self._literal(b, bare)
        return self._text(a, left, b.dtype), self._text(b, right, a.dtype)

    def _literal(self, e: Imm, like: DType | None) -> str:
        dtype = e.dtype
        if dtype.is_float:
            value = float(e.value)
            if not math.isfinite(value):
                return f'T.imm("{dtype}", "{value}")'
            text = float_text(value)
        else:
            text = str(bool(e.value)) if dtype.kind == "bool" else str(int(e.value))
        return (
            text
            if dtype == like or (like is None and _is_default(e))
            else (f'T.imm("{dtype}", {text})')
        )

    def _load(self, e: Load) -> str:
        if e.predicate is None:
            return self.access(e.buffer, e.indices)
        name = self.names.of(e.buffer, e.buffer.name)
        index = tuple_text([self.expr(i) for i in e.indices])
        return f"T.load({name}, {index}, {self.expr(e.predicate)})"

    def _intrinsic(self, e: Intrinsic) -> str:
        if e.name == ADDRESS_OF:
            return f"T.address_of({self.expr(e.args[0])})"
        if e.name == CALL_EXTERN:
            call = [string_text(str(e.attrs["symbol"])), *(self.expr(a) for a in e.args)]
            given = "" if e.attrs["returns"] == "void" else f', dtype="{e.dtype}"'
            return f"T.call_extern({', '.join(call)}{given})"
        row = INTRINSICS.get(e.name)
        dtypes = [a.dtype for a in e.args]
        plain = row is not None and e.attrs == NO_ATTRS and len(dtypes) == row.arity
        if plain and row is not None and len(set(dtypes)) == 1:
            result = BOOL.with_lanes(dtypes[0].lanes) if row.gives == "bool" else dtypes[0]
            if result == e.dtype:
                return f"T.{e.name}({', '.join(self._alike(e.args))})"
        parts = [string_text(e.name), *(self.expr(a) for a in e.args), f'dtype="{e.dtype}"']
        if e.attrs:
            parts.append(f"attrs={attrs_text(e.attrs, self.symbols)}")
        return f"T.call({', '.join(parts)})"

    def _alike(self, args: Sequence[PrimExpr]) -> list[str]:
        """Arguments of one dtype, which literals among them take from the others."""
        if not all(isinstance(a, Imm) for a in args):
            return [self.expr(a, a.dtype) for a in args]
        first, *rest = args
        bare = None if isinstance(first, Imm) and _is_default(first) else first.dtype
        return [self.expr(first), *(self.expr(a, bare) for a in rest)]


_ZERO = Imm(0, INT64)


def _is_plain_zero(e: Imm) -> bool:
    return e.value == 0 and e.dtype.is_int  # of floats it is another number than -x for x = 0.0


def _is_default(e: Imm) -> bool:
    """Whether the dtype is the one a bare literal has by itself."""
    return e.dtype in (INT64, FLOAT32, BOOL)
