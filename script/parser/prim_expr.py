"""Prim expressions from syntax: scalar arithmetic, with literals taking their partner's dtype."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Literal, TypeGuard

import numpy as np

from unity.errors import index_count
from unity.ir.dims import Symbol, SymDim, symbols_of
from unity.ir.dtype import BOOL, FLOAT32, INT64, DType, dtype
from unity.ir.prim_expr import (
    Binary,
    BinaryOp,
    Broadcast,
    Cast,
    Compare,
    CompareOp,
    Imm,
    Intrinsic,
    Load,
    Not,
    PrimExpr,
    PrimVar,
    Ramp,
    Select,
    SizeVar,
    imm,
)
from unity.ir.stmt import Buffer, Range
from unity.ir.symbols.convert import size_var, to_prim_expr

from .evaluate import Evaluator, shown
from .promotion import promoted
from .scope import Scope
from .source import Source

_OPERATORS: Mapping[type[ast.operator], BinaryOp] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "floormod",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "shl",
    ast.RShift: "shr",
}
_COMPARISONS: Mapping[type[ast.cmpop], CompareOp] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}


class PrimEvaluator(Evaluator):
    """Evaluates expressions inside a prim func; a Python number stays one until it meets a dtype.

    Notes where each symbol is first mentioned.
    """

    def __init__(self, source: Source, scope: Scope, promotes: bool = False) -> None:
        super().__init__(source, scope)
        self.promotes = promotes
        """Whether operands of two dtypes are converted, by TVM's rules."""
        self.mentions: dict[str, ast.Name] = {}

    def expr(self, node: ast.expr, like: DType | None = None) -> PrimExpr:
        """An expression; a literal has the dtype `like`, or else int64, float32 or bool.

        Raises:
            UnityError: It is no scalar.
        """
        return self.typed(node, self.value(node), like)

    def typed(self, node: ast.expr, value: object, like: DType | None = None) -> PrimExpr:
        """A value as a prim expression."""
        if is_prim_expr(value):
            return value
        if isinstance(value, SymDim):
            return self._size(value)
        if isinstance(value, np.generic):
            return imm(value.item(), dtype(value.dtype))
        if not isinstance(value, bool | int | float):
            raise self.source.error(
                node,
                f"expected a scalar, got {kind_of(value)}",
                "index it" if isinstance(value, Buffer) else None,
            )
        target = like or _python_dtype(value)
        self._check_literal(node, value, target)
        return imm(value, target)

    def _check_literal(self, node: ast.expr, value: bool | float, target: DType) -> None:
        element = target.element
        fits = element.is_float or isinstance(value, int)
        if (element == BOOL) != isinstance(value, bool) or not fits:
            raise self.source.error(
                node,
                f"the literal {value!r} is no {element}",
                f'convert the other side, T.cast("{_python_dtype(value)}", ...), or write '
                f'T.imm("{element}", ...)',
            )
        if element.is_int and not _in_range(value, element):
            raise self.source.error(node, f"the literal {value!r} does not fit {element}")

    def index(self, node: ast.expr) -> PrimExpr:
        """An index or an extent: int64; narrower integers are widened."""
        value = self.expr(node)
        element = value.dtype.element
        if element == INT64:
            return value
        if element.is_int and element.name != "uint64":
            return Cast(INT64.with_lanes(value.dtype.lanes), value)
        raise self.source.error(
            node, f"an index must be an integer, got {element}", 'convert it: T.cast("int64", ...)'
        )

    def condition(self, node: ast.expr) -> PrimExpr:
        """A bool."""
        value = self.expr(node)
        if self.promotes and value.dtype.element.is_int:
            return Compare("ne", value, imm(0, value.dtype))
        if value.dtype.element != BOOL:
            raise self.source.error(
                node, f"a condition must be a bool, got {value.dtype}", "compare it with something"
            )
        return value

    def indices(self, node: ast.expr, buffer: Buffer) -> tuple[PrimExpr, ...]:
        """The indices of an access, as many as the buffer has dims."""
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        self.check_rank(node, buffer, len(parts))
        for part in parts:
            if isinstance(part, ast.Slice):
                raise self.source.error(
                    part,
                    f"{buffer.name} is accessed one element at a time, got a slice",
                    "loop over it; slices are for T.reads and T.writes",
                )
        return tuple(self.index(part) for part in parts)

    def check_rank(self, node: ast.expr, buffer: Buffer, got: int) -> None:
        """Refuse a wrong number of indices."""
        rank = len(buffer.shape)
        if got != rank:
            raise self.source.error(
                node,
                index_count(buffer.name, rank, got),
                f"its shape is ({', '.join(map(_text, buffer.shape))})",
            )

    def interval(self, first: ast.expr, last: ast.expr) -> Range:
        """``begin, end`` as a range; the end ``begin + extent`` gives back that extent."""
        begin = self.index(first)
        if (low := self._number(first)) is not None and (high := self._number(last)) is not None:
            return Range(begin, imm(high - low))
        match self.index(last):
            case Binary("add", base, extent) if base == begin:
                return Range(begin, extent)
            case end if begin == imm(0):
                return Range(begin, end)
            case end:
                return Range(begin, Binary("sub", end, begin))

    def _number(self, node: ast.expr) -> int | None:
        value = self.value(node)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def domain(self, node: ast.expr) -> Range:
        """An axis' or a loop's extent, or its ``(begin, end)``."""
        match node:
            case ast.Tuple(elts=[first, last]):
                return self.interval(first, last)
            case _:
                return Range(imm(0), self.index(node))

    def name(self, node: ast.Name) -> object:
        """A name; symbols become sizes."""
        found = super().name(node)
        if not isinstance(found, SymDim):
            return found
        for symbol in symbols_of(found):
            self.mentions.setdefault(symbol.name, node)
        return self._size(found)

    def _size(self, value: SymDim) -> PrimExpr:
        return size_var(value) if isinstance(value, Symbol) else to_prim_expr(value)

    def subscript(self, node: ast.Subscript) -> object:
        """An element of a buffer, or of a captured tuple."""
        base = self.value(node.value)
        if isinstance(base, Buffer):
            return Load(base, self.indices(node.slice, base))
        if isinstance(base, tuple | list | dict):
            return self.run(node, base.__getitem__, self.constant(node.slice))
        if isinstance(base, np.ndarray):
            raise self.source.error(
                node,
                "a captured array can't be read in a prim_func",
                "pass it as a Buffer parameter",
            )
        return super().subscript(node)

    def value(self, node: ast.expr) -> object:
        """The meaning of an expression."""
        match node:
            case ast.BoolOp():
                op: Literal["and", "or"] = "and" if isinstance(node.op, ast.And) else "or"
                return self._fold(op, [self.condition(v) for v in node.values])
            case ast.IfExp():
                return self._select(node, [node.test, node.body, node.orelse])
            case _:
                return super().value(node)

    @staticmethod
    def _fold(op: BinaryOp, parts: Sequence[PrimExpr]) -> PrimExpr:
        result = parts[0]
        for part in parts[1:]:
            result = Binary(op, result, part)
        return result

    def combine(self, node: ast.BinOp, left: object, right: object) -> object:
        """Arithmetic: of two captured numbers Python's own, else a node."""
        numbers = isinstance(left, int | float) and isinstance(right, int | float)
        if numbers and not (_is_literal(node.left) and _is_literal(node.right)):
            return super().combine(node, left, right)
        op = _OPERATORS.get(type(node.op))
        if op is None:
            hint = "write T.pow(x, y)" if isinstance(node.op, ast.Pow) else None
            raise self.source.error(node, f"{ast.unparse(node)!r} has no meaning here", hint)
        return self.operation(node, op, (node.left, left), (node.right, right))

    def operation(
        self,
        node: ast.expr,
        op: BinaryOp,
        left: tuple[ast.expr, object],
        right: tuple[ast.expr, object],
    ) -> PrimExpr:
        """A binary operation on two operands with their syntax."""
        a, b = self.join(node, left, right)
        element = a.dtype.element
        if op == "div" and not element.is_float:
            raise self.source.error(
                node, f"/ is for floats, got {element}", "write // , or T.cast the operands"
            )
        if op in ("floordiv", "floormod", "truncdiv", "truncmod") and not element.is_int:
            raise self.source.error(node, f"{op} is for integers, got {element}", "write /")
        if op in ("fmin", "fmax") and not element.is_float:
            why = f"T.{op} is for floats, got {element}"
            raise self.source.error(node, why, f"write T.{op[1:]}")
        if op in ("and", "or", "xor", "shl", "shr") and element.is_float:
            raise self.source.error(node, f"{op} is for integers and bools, got {element}")
        return Binary(op, a, b)

    def join(
        self, node: ast.expr, left: tuple[ast.expr, object], right: tuple[ast.expr, object]
    ) -> tuple[PrimExpr, PrimExpr]:
        """Two operands of one dtype; a Python number takes the other's."""
        (left_node, a), (right_node, b) = left, right
        if is_number(a) and is_number(b):
            like = FLOAT32 if isinstance(a, float) or isinstance(b, float) else None
            return self.typed(left_node, a, like), self.typed(right_node, b, like)
        if is_number(a):
            second = self.typed(right_node, b)
            return self.typed(left_node, a, second.dtype), second
        first = self.typed(left_node, a)
        second = self.typed(right_node, b, first.dtype)
        if self.promotes and (common := promoted(first.dtype, second.dtype)) is not None:
            return _cast(common, first), _cast(common, second)
        if first.dtype != second.dtype:
            raise self.source.error(
                node,
                f"the operands are {first.dtype} and {second.dtype}, expected one dtype",
                f'convert one: T.cast("{first.dtype.element}", ...)',
            )
        return first, second

    def unary(self, node: ast.UnaryOp) -> object:
        """Negation: of a number Python's own, of a bool ``not``."""
        value = self.value(node.operand)
        match node.op:
            case ast.USub() if is_number(value):
                return -value
            case ast.USub():
                return -self.typed(node.operand, value)
            case ast.Not():
                return Not(self.condition(node.operand))
            case _:
                raise self.source.error(node, f"{ast.unparse(node)!r} has no meaning here")

    def compare(self, node: ast.Compare) -> object:
        """A comparison; ``a <= b < c`` is the conjunction."""
        parts: list[PrimExpr] = []
        operands = [node.left, *node.comparators]
        for op, left, right in zip(node.ops, operands, operands[1:], strict=False):
            kind = _COMPARISONS.get(type(op))
            if kind is None:
                raise self.source.error(node, f"{ast.unparse(node)!r} has no meaning here")
            a, b = self.join(node, (left, self.value(left)), (right, self.value(right)))
            parts.append(Compare(kind, a, b))
        return self._fold("and", parts)

    def _select(self, node: ast.expr, nodes: Sequence[ast.expr]) -> Select:
        test, then, orelse = nodes
        a, b = self.join(node, (then, self.value(then)), (orelse, self.value(orelse)))
        return Select(self.condition(test), a, b)


def is_prim_expr(value: object) -> TypeGuard[PrimExpr]:
    """Whether a value is a prim expression."""
    return isinstance(
        value,
        PrimVar | SizeVar | Imm | Binary | Compare | Not | Select | Cast | Load | Intrinsic | Ramp
        | Broadcast,
    )  # fmt: skip


def _cast(wanted: DType, value: PrimExpr) -> PrimExpr:
    return value if value.dtype == wanted else Cast(wanted, value)


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is a Python number."""
    return isinstance(value, int | float)


def _is_literal(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant)


def _python_dtype(value: bool | float) -> DType:
    if isinstance(value, bool):
        return BOOL
    return INT64 if isinstance(value, int) else FLOAT32


def _in_range(value: float, element: DType) -> bool:
    low = -(1 << (element.bits - 1)) if element.kind == "int" else 0
    return low <= value < low + (1 << element.bits)


def kind_of(value: object) -> str:
    """A value in a message; a buffer by its name."""
    return f"the buffer {value.name}" if isinstance(value, Buffer) else shown(value)


def _text(extent: PrimExpr) -> str:
    match extent:
        case Imm():
            return str(extent.value)
        case SizeVar() | PrimVar():
            return extent.name
        case _:
            return "..."
