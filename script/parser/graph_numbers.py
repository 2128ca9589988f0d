"""Scalars, sizes and tensors of rank 0: each becomes another of them where that one is wanted.

A scalar is an ``R.Prim``, a size a dim that the program knows, a tensor of rank 0 what operators
give. A program may use any of them for a number; what is asked at run time (that a size is not
negative) is checked there.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from unity.ir.dims import Symbol, SymDim, dim
from unity.ir.dtype import FLOAT32, INT64, DType
from unity.ir.graph import Expr, PrimValue, Tuple, Var
from unity.ir.types import PrimType, TensorType, TupleType, Type
from unity.op.builder import GraphBuilder
from unity.op.call import is_expr, prim_value, scalar_operand, size_operand
from unity.op.registry import Param
from unity.op.scalar import ITEM
from unity.op.table import OPS

from ..printer import text as printed
from .graph_expr import GraphEvaluator, Surroundings
from .scope import Scope
from .source import Source, items_of

_OPERATORS: Mapping[object, str] = {
    min: "minimum", max: "maximum", abs: "abs", float: "astype", int: "astype", sum: "add",
    len: "shape_of",
}  # fmt: skip
"""What functions of Python mean of tensors."""
_SIZE = dim("n")


class GraphNumbers(GraphEvaluator):
    """Evaluates numbers that are known when the program runs."""

    def __init__(self, source: Source, scope: Scope, around: Surroundings) -> None:
        super().__init__(source, scope, around)
        self._outermost = self.builder  # of the function's own body
        self._as_sizes: dict[tuple[GraphBuilder, Expr], SymDim] = {}
        self.counters: set[Symbol] = set()
        """Sizes that loops count in."""

    def tensor(self, node: ast.AST, e: Expr, like: DType | None = None) -> Expr:
        """A scalar as a tensor of rank 0, by default of its own dtype; anything else as it is."""
        kind = self.type_of(e)
        if not isinstance(kind, PrimType):
            return e
        return self.builder.atom(
            scalar_operand(e, kind, like, self.source.span(node), ast.unparse(node))
        )

    def number_as(
        self, node: ast.AST, e: Expr, wanted: Type | None, *, beside: bool = False
    ) -> Expr:
        """A scalar as a tensor, or the other way round, where a value of that type is wanted.

        Args:
            node: Where.
            e: The value.
            wanted: The type; None for any.
            beside: Whether a scalar takes the dtype of what is wanted, as beside a tensor.
        """
        match self.type_of(e), wanted:
            case PrimType(), TensorType(_, kind):
                return self.tensor(node, e, kind if beside else None)
            case TensorType(() | 0, kind), PrimType(of) if kind == of:
                return self.builder.atom(self.scalar(node, self.builder.atom(e)))
            case PrimType(kind), PrimType(of) if beside and kind != of:
                return self.builder.atom(self.scalar(node, self.tensor(node, e, of)))
            case _, TupleType(fields) if isinstance(e, Tuple) and len(e.fields) == len(fields):
                parts = zip(e.fields, fields, strict=True)
                return Tuple(tuple(self.number_as(node, p, t) for p, t in parts), e.span)
            case _:
                return e

    def scalar(self, node: ast.AST, e: Expr) -> Expr:
        """The number in a tensor of rank 0, as a scalar."""
        where = node if isinstance(node, ast.expr) else ast.Constant(None)
        return self.checked(where, lambda: self._op(where, ITEM, [e], {}))

    def scalar_or_graph(self, node: ast.expr, value: object) -> Expr:
        """What a loop or a branch gives for a value: numbers of Python are scalars."""
        if isinstance(value, bool | int | float):
            return prim_value(value, None, self.source.span(node))
        return self.graph(node, value)

    def float_of(self, node: ast.expr, size: SymDim) -> Expr:
        """A size as a float32, where it is calculated with as such."""
        span = self.source.span(node)
        return self.builder.atom(size_operand(size, FLOAT32, span, ast.unparse(node)))

    def size(self, node: ast.expr, value: object) -> object:
        """An integer scalar or tensor as a size, checked where the program comes to it."""
        if isinstance(value, tuple | list):
            return tuple(map(self._one_size, items_of(node, len(value)), value))
        if isinstance(value, PrimValue) and not isinstance(value.value, float | bool):
            return value.value
        if not is_expr(value):
            return value
        kind = self.type_of(value)
        if isinstance(kind, PrimType) and kind.value is not None:
            return kind.value
        if not is_integer(kind):
            return value
        atom = self.builder.atom(value)
        for builder in (self.builder, self._outermost):
            known = self._as_sizes.get((builder, atom))
            if known is not None:
                return known
        name = value.name if isinstance(value, Var) else "size"
        symbol = self.builder.fresh(name)
        number = atom
        if isinstance(kind, TensorType):
            number = self.builder.atom(self.scalar(node, atom))
        said = self.type_of(number)
        assert isinstance(said, PrimType)
        wanted = PrimType(said.dtype, symbol)
        self.builder.match_cast(number, wanted, name, self.source.span(node))
        self._as_sizes[self.builder, atom] = symbol
        return symbol

    def _one_size(self, node: ast.expr, value: object) -> object:
        found = self.size(node, value)
        if is_expr(found):
            raise self.source.error(
                node,
                f"a dim must be an integer expression, got {ast.unparse(node)!r}, which is "
                f"{printed(self.type_of(found))}",
                "dims take + - * // % and min, max with integers and other dims",
            )
        return found

    def operator_call(self, node: ast.Call, name: str) -> Expr:
        """A call of an operator; what it takes as sizes may be scalars and tensors of rank 0."""
        row = OPS.get(name)
        params = () if row is None else row.params
        values = self.items(node.args)
        places = node.args if len(node.args) == len(values) else [node] * len(values)
        args = [
            self._argument(place, value, params[k] if k < len(params) else None)
            for k, (place, value) in enumerate(zip(places, values, strict=True))
        ]
        named: dict[str, object] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.source.error(keyword, "** can't be used here")
            param = next((p for p in params if p.name == keyword.arg), None)
            named[keyword.arg] = self._argument(keyword.value, self.value(keyword.value), param)
        return self.checked(node, lambda: self._op(node, name, args, named))

    def _argument(self, node: ast.expr, value: object, param: Param | None) -> object:
        settled = self._settle(node, value)
        sizes = param is not None and (param.kind == "shape" or _takes_sizes(param))
        return self.size(node, settled) if sizes else settled

    def number_call(self, node: ast.Call, function: object) -> Expr | None:
        """``min``, ``max``, ``abs``, ``sum``, ``float`` and ``int`` of what the program computes.

        None if nothing that is known when it runs takes part: then they are Python's own.
        """
        name = _OPERATORS.get(function) if callable(function) else None
        args = [] if name is None or node.keywords else [self.operand(a) for a in node.args]
        if function is len and len(args) == 1 and is_expr(args[0]):
            return self._length(node, args[0])
        if function in (min, max, sum) and len(args) == 1 and isinstance(args[0], tuple | list):
            args = list(args[0])
        if not any(is_expr(a) or (function is float and isinstance(a, SymDim)) for a in args):
            return None
        match name, args:
            case "astype", [value]:
                kind = FLOAT32 if function is float else INT64
                return self.calculated(node, name, [value], {"dtype": kind})
            case "abs", [value]:
                return self.calculated(node, name, [value])
            case "minimum" | "maximum" | "add", [first, second, *rest]:
                result = self.calculated(node, name, [first, second])
                for following in rest:
                    result = self.calculated(node, name, [result, following])
                return result
            case _:
                return None

    def _length(self, node: ast.expr, value: Expr) -> Expr | None:
        """As many rows as a tensor has, or fields a tuple."""
        match self.type_of(value):
            case TensorType((first, *_)):
                return PrimValue(first, INT64, self.source.span(node))
            case TupleType(fields):
                return PrimValue(len(fields), INT64, self.source.span(node))
            case _:
                return None

    def calculated(
        self,
        node: ast.expr,
        name: str,
        args: Sequence[object],
        attrs: Mapping[str, object] | None = None,
    ) -> Expr:
        """What an operator gives: a scalar, if it calculates with scalars and sizes alone."""
        made = self.checked(node, lambda: self._op(node, name, args, dict(attrs or {})))
        numbers = all(self._is_number(a) for a in args)
        return self.scalar(node, self.builder.atom(made)) if numbers else made

    def _is_number(self, value: object) -> bool:
        return (
            isinstance(self.type_of(value), PrimType)
            if is_expr(value)
            else (isinstance(value, bool | int | float | SymDim))
        )


def as_tensors(kind: Type) -> Type:
    """A type with tensors in place of scalars, alone or in a tuple."""
    match kind:
        case PrimType(of):
            return TensorType((), of)
        case TupleType(fields):
            return TupleType(tuple(map(as_tensors, fields)))
        case _:
            return kind


def joined(a: Type, b: Type) -> Type | None:
    """The type of a tensor, where one of two ways gives a scalar and the other a tensor."""
    match a, b:
        case (PrimType(), TensorType()) | (TensorType(), PrimType()):
            return b if isinstance(b, TensorType) else a
        case _:
            return None


def is_integer(kind: Type) -> bool:
    """Whether it is of one integer, which may be a size."""
    one = isinstance(kind, PrimType) or (isinstance(kind, TensorType) and kind.ndim == 0)
    return (
        one
        and isinstance(kind, PrimType | TensorType)
        and kind.dtype is not None
        and (kind.dtype.is_int)
    )


def _takes_sizes(param: Param) -> bool:
    return param.kind == "attr" and (param.takes(_SIZE) or param.takes((_SIZE,)))
