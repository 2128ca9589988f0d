"""Calls inside prim funcs: the names of ``T`` and the scalar functions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from unity.errors import UnityError
from unity.ir.attrs import NO_ATTRS, Attrs
from unity.ir.dtype import FLOAT32, DType, dtype
from unity.ir.foreign import address_of, call_extern
from unity.ir.intrinsics import INTRINSICS
from unity.ir.prim_expr import BinaryOp, Broadcast, Cast, Intrinsic, Load, Not, PrimExpr, Ramp, imm
from unity.ir.stmt import Buffer
from unity.op.registry import attr_value

from ..marker import Marker
from .evaluate import shown
from .prim_expr import PrimEvaluator, is_number, is_prim_expr, kind_of

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


class PrimCalls(PrimEvaluator):
    """Evaluates calls, and arguments that must be known while parsing."""

    def call(self, node: ast.Call) -> object:
        """A call of a name of the language; few others run while parsing."""
        function = self.value(node.func)
        if isinstance(function, Marker):
            return self._language_call(node, function.path)
        if function is min or function is max:
            if all(is_number(self.value(a)) for a in node.args):
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
        if "alloc" in path or path == "T.decl_buffer":
            return 'a buffer is made by a statement: t = T.alloc((n, 4), "float32")'
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

    def _call_extern(self, node: ast.Call) -> PrimExpr:
        """``T.call_extern("library.function", args..., dtype=)``; without dtype none is given."""
        if not node.args:
            raise self.source.error(node, "T.call_extern takes a symbol, then arguments")
        named = {k.arg: k.value for k in node.keywords}
        unknown = [str(name) for name in named if name != "dtype"]
        if unknown:
            raise self.source.error(node, f"T.call_extern has no {', '.join(unknown)}")
        symbol = self.text(node.args[0])
        returns = self.dtype(named["dtype"]) if "dtype" in named else None
        try:
            return call_extern(symbol, [self.expr(a) for a in node.args[1:]], returns)
        except UnityError as error:
            raise self.source.error(node, error.message, error.hint) from None

    def _address_of(self, node: ast.Call) -> PrimExpr:
        element = self.expr(self.arguments(node, 1)[0])
        if not isinstance(element, Load) or element.dtype.lanes > 1:
            raise self.source.error(node, "T.address_of takes one element of a buffer: a[i, j]")
        return address_of(element)

    def buffer(self, node: ast.expr) -> Buffer:
        """A name that must be a buffer."""
        found = self.value(node)
        if not isinstance(found, Buffer):
            raise self.source.error(node, f"expected a buffer, got {kind_of(found)}")
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


_CALLS: Mapping[str, Callable[[PrimCalls, ast.Call], PrimExpr]] = {
    "T.select": PrimCalls._select_call,
    "T.if_then_else": PrimCalls._select_call,
    "T.not_": PrimCalls._not,
    "T.cast": PrimCalls._cast,
    "T.imm": PrimCalls._imm,
    "T.load": PrimCalls._load,
    "T.ramp": PrimCalls._ramp,
    "T.broadcast": PrimCalls._broadcast,
    "T.call": PrimCalls._call,
    "T.call_extern": PrimCalls._call_extern,
    "T.address_of": PrimCalls._address_of,
}
