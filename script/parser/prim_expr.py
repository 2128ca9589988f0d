"""Prim expressions from syntax: scalar arithmetic, with literals taking their partner's dtype."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeGuard

import numpy as np

from unity.errors import UnityError
from unity.ir.attrs import NO_ATTRS, Attrs
from unity.ir.convert import size_var, to_prim_expr
from unity.ir.dims import Symbol, SymDim, symbols_of
from unity.ir.dtype import BOOL, FLOAT32, INT64, DType, dtype
from unity.ir.intrinsics import INTRINSICS
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
from unity.op.registry import attr_value

from ..marker import Marker
from .evaluate import Evaluator, shown
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
_NAMED: Mapping[str, BinaryOp] = {
    "T.truncdiv": "truncdiv",
    "T.truncmod": "truncmod",
    "T.floordiv": "floordiv",
    "T.floormod": "floormod",
    "T.min": "min",
    "T.max": "max",
    "T.and_": "and",
    "T.or_": "or",
    "T.xor": "xor",
    "T.shl": "shl",
    "T.shr": "shr",
}
_NUMBER: Mapping[str, float] = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}


class PrimEvaluator(Evaluator):
    """Evaluates expressions inside a prim func; a Python number stays one until it meets a dtype.

    Notes where each symbol is first mentioned.
    """

    def __init__(self, source: Source, scope: Scope) -> None:
        super().__init__(source, scope)
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
                f"expected a scalar, got {_kind(value)}",
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
                f"{buffer.name} has {rank} dims, got {got} {'index' if got == 1 else 'indices'}",
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
        return value if isinstance(value, int) else None

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
        if op in ("and", "or", "xor", "shl", "shr") and element.is_float:
            raise self.source.error(node, f"{op} is for integers and bools, got {element}")
        return Binary(op, a, b)

    def join(
        self, node: ast.expr, left: tuple[ast.expr, object], right: tuple[ast.expr, object]
    ) -> tuple[PrimExpr, PrimExpr]:
        """Two operands of one dtype; a Python number takes the other's."""
        (left_node, a), (right_node, b) = left, right
        if _is_number(a) and _is_number(b):
            like = FLOAT32 if isinstance(a, float) or isinstance(b, float) else None
            return self.typed(left_node, a, like), self.typed(right_node, b, like)
        if _is_number(a):
            second = self.typed(right_node, b)
            return self.typed(left_node, a, second.dtype), second
        first = self.typed(left_node, a)
        second = self.typed(right_node, b, first.dtype)
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
            case ast.USub() if _is_number(value):
                return -value
            case ast.USub():
                operand = self.typed(node.operand, value)
                return Binary("sub", imm(0, operand.dtype), operand)
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

    def call(self, node: ast.Call) -> object:
        """A call of a name of the language; few others run while parsing."""
        function = self.value(node.func)
        if isinstance(function, Marker):
            return self._language_call(node, function.path)
        if function is min or function is max:
            if all(_is_number(self.value(a)) for a in node.args):
                return super().call(node)
            return self._named(node, "min" if function is min else "max")
        if function is abs:
            return self._intrinsic(node, "abs", node.args)
        if any(is_prim_expr(self.value(a)) for a in node.args if not isinstance(a, ast.Starred)):
            raise self.not_runnable(node, function)
        return super().call(node)

    def _language_call(self, node: ast.Call, path: str) -> PrimExpr:
        rule = _CALLS.get(path)
        if rule is not None:
            return rule(self, node)
        if path in _NAMED:
            return self._named(node, _NAMED[path])
        name = path.removeprefix("T.")
        if path.startswith("T.") and name in INTRINSICS:
            self.arguments(node, INTRINSICS[name].arity)
            return self._intrinsic(node, name, node.args)
        if path.startswith("R."):
            raise self.source.error(node, f"{path} is for functions, this is a prim_func")
        raise self.source.error(
            node.func, f"{path} is no expression of the language", self._near(path)
        )

    @staticmethod
    def _near(path: str) -> str:
        known = sorted({*_CALLS, *_NAMED, *(f"T.{n}" for n in INTRINSICS)})
        close = [k for k in known if k[:4] == path[:4]]
        return f"did you mean {', '.join(close[:3])}?" if close else "see unity.script.T"

    def arguments(self, node: ast.Call, *counts: int) -> list[ast.expr]:
        """The positional arguments, of which there must be so many."""
        if len(node.args) not in counts:
            wanted = " or ".join(map(str, counts))
            raise self.source.error(
                node,
                f"{ast.unparse(node.func)} takes {wanted} arguments, got {len(node.args)}",
            )
        return node.args

    def _named(self, node: ast.Call, op: BinaryOp) -> PrimExpr:
        a, b = self.arguments(node, 2)
        return self.operation(node, op, (a, self.value(a)), (b, self.value(b)))

    def _intrinsic(self, node: ast.Call, name: str, nodes: Sequence[ast.expr]) -> Intrinsic:
        """A scalar function; literals among the arguments take the dtype of the others."""
        values = [self.value(n) for n in nodes]
        known = [v.dtype for v in values if is_prim_expr(v)]
        floats = any(isinstance(v, float) for v in values)
        like = known[0] if known else (FLOAT32 if floats else None)
        args = tuple(self.typed(n, v, like) for n, v in zip(nodes, values, strict=True))
        row = INTRINSICS[name]
        try:
            result = row.result_dtype([a.dtype for a in args])
        except UnityError as error:
            raise self.source.error(node, error.message, error.hint) from None
        return Intrinsic(name, args, result)

    def _select(self, node: ast.expr, nodes: Sequence[ast.expr]) -> Select:
        test, then, orelse = nodes
        a, b = self.join(node, (then, self.value(then)), (orelse, self.value(orelse)))
        return Select(self.condition(test), a, b)

    def _select_call(self, node: ast.Call) -> PrimExpr:
        return self._select(node, self.arguments(node, 3))

    def _not(self, node: ast.Call) -> PrimExpr:
        return Not(self.condition(self.arguments(node, 1)[0]))

    def _cast(self, node: ast.Call) -> PrimExpr:
        name, value = self.arguments(node, 2)
        target = self.dtype(name)
        source = self.expr(value)
        if target.lanes == 1:
            target = target.with_lanes(source.dtype.lanes)
        return Cast(target, source)

    def _imm(self, node: ast.Call) -> PrimExpr:
        name, value = self.arguments(node, 2)
        target = self.dtype(name)
        number = self.constant(value)
        if isinstance(number, str) and target.is_float and number in _NUMBER:
            return imm(_NUMBER[number], target)
        if not isinstance(number, bool | int | float):
            raise self.source.error(value, f"T.imm takes a number, got {shown(number)}")
        self._check_literal(value, number, target)
        return imm(number, target)

    def _load(self, node: ast.Call) -> PrimExpr:
        target, index, predicate = self.arguments(node, 3)
        buffer = self.buffer(target)
        return Load(buffer, self.indices(index, buffer), self.condition(predicate))

    def _ramp(self, node: ast.Call) -> PrimExpr:
        base, stride, lanes = self.arguments(node, 3)
        first = self.expr(base)
        return Ramp(first, self.expr(stride, first.dtype), self.integer(lanes))

    def _broadcast(self, node: ast.Call) -> PrimExpr:
        value, lanes = self.arguments(node, 2)
        return Broadcast(self.expr(value), self.integer(lanes))

    def _call(self, node: ast.Call) -> PrimExpr:
        name = self.text(node.args[0]) if node.args else ""
        named = {k.arg: k.value for k in node.keywords}
        if "dtype" not in named:
            if name not in INTRINSICS:
                raise self.source.error(node, f"there is no scalar function {name!r}")
            return self._intrinsic(node, name, node.args[1:])
        args = tuple(self.expr(a) for a in node.args[1:])
        attrs = self.attrs(named["attrs"]) if "attrs" in named else NO_ATTRS
        return Intrinsic(name, args, self.dtype(named["dtype"]), attrs)

    def buffer(self, node: ast.expr) -> Buffer:
        """A name that must be a buffer."""
        found = self.value(node)
        if not isinstance(found, Buffer):
            raise self.source.error(node, f"expected a buffer, got {_kind(found)}")
        return found

    def dtype(self, node: ast.expr) -> DType:
        """A dtype given by name."""
        found = self.constant(node)
        if isinstance(found, DType):
            return found
        if not isinstance(found, str):
            raise self.source.error(node, f'expected a dtype like "float32", got {shown(found)}')
        try:
            return dtype(found)
        except UnityError as error:
            raise self.source.error(node, error.message, error.hint) from None

    def integer(self, node: ast.expr) -> int:
        """A number known while parsing."""
        found = self.constant(node)
        if not isinstance(found, int):
            raise self.source.error(node, f"expected an integer literal, got {shown(found)}")
        return found

    def text(self, node: ast.expr) -> str:
        """A string known while parsing."""
        found = self.constant(node)
        if not isinstance(found, str):
            raise self.source.error(node, f"expected a string, got {shown(found)}")
        return found

    def attrs(self, node: ast.expr) -> Attrs:
        """``attrs={...}``."""
        found = self.constant(node)
        if not isinstance(found, dict):
            raise self.source.error(node, f"attrs must be a dict, got {shown(found)}")
        try:
            return Attrs({str(k): attr_value(v) for k, v in found.items()})
        except UnityError as error:
            raise self.source.error(node, error.message, error.hint) from None


_CALLS: Mapping[str, Callable[[PrimEvaluator, ast.Call], PrimExpr]] = {
    "T.select": PrimEvaluator._select_call,
    "T.if_then_else": PrimEvaluator._select_call,
    "T.not_": PrimEvaluator._not,
    "T.cast": PrimEvaluator._cast,
    "T.imm": PrimEvaluator._imm,
    "T.load": PrimEvaluator._load,
    "T.ramp": PrimEvaluator._ramp,
    "T.broadcast": PrimEvaluator._broadcast,
    "T.call": PrimEvaluator._call,
}


def is_prim_expr(value: object) -> TypeGuard[PrimExpr]:
    """Whether a value is a prim expression."""
    return isinstance(
        value,
        PrimVar | SizeVar | Imm | Binary | Compare | Not | Select | Cast | Load | Intrinsic | Ramp
        | Broadcast,
    )  # fmt: skip


def _is_number(value: object) -> TypeGuard[int | float]:
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


def _kind(value: object) -> str:
    return f"the buffer {value.name}" if isinstance(value, Buffer) else shown(value)


def _text(extent: PrimExpr) -> str:
    match extent:
        case Imm():
            return str(extent.value)
        case SizeVar() | PrimVar():
            return extent.name
        case _:
            return "..."
