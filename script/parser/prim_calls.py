"""Calls inside prim funcs: the names of ``T`` and the scalar functions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from unity.arguments import Bound
from unity.errors import UnityError
from unity.ir.attrs import NO_ATTRS, Attrs
from unity.ir.dtype import FLOAT32, DType, dtype
from unity.ir.foreign import address_of, call_extern
from unity.ir.intrinsics import INTRINSICS
from unity.ir.prim_expr import BinaryOp, Broadcast, Cast, Intrinsic, Load, Not, PrimExpr, Ramp, imm
from unity.ir.stmt import Buffer, PrimFunc
from unity.op.registry import attr_value
from unity.te.reinterpret import reinterpreted

from ..marker import Marker
from ..program import ScriptExtern, ScriptFunction, ScriptPrimFunc
from ..scalar_names import OPERATIONS, SCALAR_SIGNATURES
from .evaluate import shown
from .prim_expr import PrimEvaluator, is_number, is_prim_expr, kind_of
from .scope import Named

_NUMBER: Mapping[str, float] = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}


class PrimCalls(PrimEvaluator):
    """Evaluates calls, and arguments that must be known while parsing.

    Attributes:
        kernels: Those of the text that are defined above.
    """

    kernels: Mapping[str, PrimFunc] = MappingProxyType({})

    def call(self, node: ast.Call) -> object:
        """A call of a name of the language; few others run while parsing."""
        function = self.value(node.func)
        if isinstance(function, Marker):
            return self._language_call(node, function.path)
        if function is min or function is max:
            if all(is_number(self.value(a)) for a in node.args):
                return super().call(node)
            path = "T.min" if function is min else "T.max"
            given = self.given(node, SCALAR_SIGNATURES[path]).named
            return self._named(node, OPERATIONS[path[2:]], given["a"], given["b"])
        if function is abs:
            given = self.given(node, SCALAR_SIGNATURES["T.abs"]).named
            return self._intrinsic(node, "abs", list(given.values()))
        if any(is_prim_expr(self.value(a)) for a in node.args if not isinstance(a, ast.Starred)):
            raise self.not_runnable(node, function)
        return super().call(node)

    def not_runnable(self, node: ast.Call, function: object) -> UnityError:
        """The error for a call of a function that parsing doesn't run: no kernel calls another."""
        if function is print:
            return self.source.error(
                node,
                "kernels print nothing",
                "print in the graph function that calls it; write what is to be seen to an output",
            )
        word = f"T.{getattr(function, '__name__', '')}"
        if word in SCALAR_SIGNATURES and callable(function):
            name = ast.unparse(node.func)
            told = f"{name!r} computes nothing of a scalar of a kernel"
            return self.source.error(node, told, f"write {SCALAR_SIGNATURES[word].usage}")
        if not isinstance(function, Named | ScriptFunction | ScriptPrimFunc | ScriptExtern):
            return super().not_runnable(node, function)
        return self.source.error(
            node,
            f"{ast.unparse(node.func)!r} is a function of the program: kernels call kernels only, "
            "as a statement, and those that are defined above",
            "a graph function calls one behind the other: R.call_tir(...); "
            "T.call_extern calls a function of C",
        )

    def kernel(self, call: ast.Call) -> tuple[str, PrimFunc] | None:
        """The kernel that a call names, and its name; None if it is something else."""
        if not isinstance(call.func, ast.Name | ast.Attribute):
            return None
        match self.value(call.func):
            case ScriptPrimFunc() as found:
                return found.name, found.func
            case Named(name) if name in self.kernels:
                return name, self.kernels[name]
            case _:
                return None

    def _language_call(self, node: ast.Call, path: str) -> PrimExpr:
        rule = _CALLS.get(path)
        if rule is not None:
            return rule(self, node, self.given(node, self.signature(node)))
        if path.startswith("R."):
            raise self.source.error(
                node,
                f"{path} is for functions, this is a prim_func",
                "the scalar functions of kernels are T's: T.exp(x), T.max(x, 0.0)",
            )
        signature = SCALAR_SIGNATURES.get(path)
        if signature is None:
            raise self.source.error(
                node.func, f"{path} is no expression of the language", self._near(path)
            )
        given, name = self.given(node, signature), path.removeprefix("T.")
        if name in OPERATIONS:
            made: PrimExpr = self._named(node, OPERATIONS[name], given.named["a"], given.named["b"])
        else:
            operands = [v for k, v in given.named.items() if k != "dtype"]
            made = self._intrinsic(node, name, operands)
        return self._stated(node, made, given)

    def _stated(self, node: ast.expr, made: PrimExpr, given: Bound[ast.expr]) -> PrimExpr:
        """What was made, if it has the dtype that the call says."""
        if "dtype" in given.named and made.dtype != (said := self.dtype(given.named["dtype"])):
            raise self.source.error(
                node,
                f"the value is {made.dtype}, the call says {said}",
                f'convert it: T.cast("{said}", ...)',
            )
        return made

    @staticmethod
    def _near(path: str) -> str:
        if "alloc" in path or path == "T.decl_buffer":
            return 'a buffer is made by a statement: t = T.alloc((n, 4), "float32")'
        known = sorted({*_CALLS, *SCALAR_SIGNATURES})
        close = [k for k in known if k[:4] == path[:4]]
        return f"did you mean {', '.join(close[:3])}?" if close else "see unity.script.T"

    def _named(self, node: ast.Call, op: BinaryOp, a: ast.expr, b: ast.expr) -> PrimExpr:
        return self.operation(node, op, (a, self.value(a)), (b, self.value(b)))

    def _intrinsic(self, node: ast.Call, name: str, nodes: Sequence[ast.expr]) -> Intrinsic:
        """A scalar function; literals among the arguments take the dtype of the others."""
        values = [self.value(n) for n in nodes]
        known = [v.dtype for v in values if is_prim_expr(v)]
        floats = any(isinstance(v, float) for v in values)
        like = known[0] if known else (FLOAT32 if floats else None)
        args = tuple(self.typed(n, v, like) for n, v in zip(nodes, values, strict=True))
        if name == "prefetch" and not isinstance(args[0], Load):
            raise self.source.error(nodes[0], "T.prefetch takes an element of a buffer: a[i, j]")
        row = INTRINSICS[name]
        try:
            result = row.result_dtype([a.dtype for a in args])
        except UnityError as error:
            raise self.source.error(node, error.message, error.hint) from None
        return Intrinsic(name, args, result)

    def _select_call(self, node: ast.Call, given: Bound[ast.expr]) -> PrimExpr:
        parts = [given.named[k] for k in ("condition", "then", "orelse")]
        return self._stated(node, self._select(node, parts), given)

    def _not(self, node: ast.Call, given: Bound[ast.expr]) -> PrimExpr:
        return Not(self.condition(given.named["value"]))

    def _cast(self, node: ast.Call, given: Bound[ast.expr]) -> PrimExpr:
        target = self.dtype(given.named["dtype"])
        source = self.expr(given.named["value"])
        if target.lanes == 1:
            target = target.with_lanes(source.dtype.lanes)
        return Cast(target, source)

    def _reinterpret(self, node: ast.Call, given: Bound[ast.expr]) -> PrimExpr:
        target, value = self.dtype(given.named["dtype"]), self.expr(given.named["value"])
        try:
            return reinterpreted(target, value)
        except UnityError as error:
            raise self.source.error(node, error.message, error.hint) from None

    def _imm(self, node: ast.Call, given: Bound[ast.expr]) -> PrimExpr:
        target, value = self.dtype(given.named["dtype"]), given.named["value"]
        number = self.constant(value)
        if isinstance(number, str) and target.is_float and number in _NUMBER:
            return imm(_NUMBER[number], target)
        if not isinstance(number, bool | int | float):
            raise self.source.error(value, f"T.imm takes a number, got {shown(number)}")
        self._check_literal(value, number, target)
        return imm(number, target)

    def _load(self, node: ast.Call, given: Bound[ast.expr]) -> PrimExpr:
        buffer = self.buffer(given.named["buffer"])
        indices = self.indices(given.named["index"], buffer)
        lanes = max((i.dtype.lanes for i in indices), default=1)
        return Load(buffer, indices, self.mask(given.named["predicate"], lanes))

    def _ramp(self, node: ast.Call, given: Bound[ast.expr]) -> PrimExpr:
        first = self.expr(given.named["base"])
        stride = self.expr(given.named["stride"], first.dtype)
        return Ramp(first, stride, self._lanes(given.named["lanes"]))

    def _broadcast(self, node: ast.Call, given: Bound[ast.expr]) -> PrimExpr:
        return Broadcast(self.expr(given.named["value"]), self._lanes(given.named["lanes"]))

    def _lanes(self, node: ast.expr) -> int:
        found = self.integer(node)
        if found < 1:
            raise self.source.error(node, f"lanes must be positive, got {found}")
        return found

    def mask(self, node: ast.expr, lanes: int) -> PrimExpr:
        """The condition of lanes: for all of them, or for each its own."""
        found = self.condition(node)
        if found.dtype.lanes not in (1, lanes):
            raise self.source.error(
                node, f"the predicate has {found.dtype.lanes} lanes, the index {lanes}"
            )
        return found

    def _call(self, node: ast.Call, given: Bound[ast.expr]) -> PrimExpr:
        name, named = self.text(given.named["name"]), given.named
        if "dtype" not in named:
            if name not in INTRINSICS:
                raise self.source.error(node, f"there is no scalar function {name!r}")
            if "attrs" in named:
                raise self.source.error(named["attrs"], "attrs need the dtype of the result, too")
            return self._intrinsic(node, name, given.rest)
        args = tuple(self.expr(a) for a in given.rest)
        attrs = self.attrs(named["attrs"]) if "attrs" in named else NO_ATTRS
        return Intrinsic(name, args, self.dtype(named["dtype"]), attrs)

    def _call_extern(self, node: ast.Call, given: Bound[ast.expr]) -> PrimExpr:
        """``T.call_extern("library.function", args..., dtype=)``; without dtype none is given."""
        named, symbol = given.named, self.text(given.named["symbol"])
        returns = self.dtype(named["dtype"]) if "dtype" in named else None
        try:
            return call_extern(symbol, [self.expr(a) for a in given.rest], returns)
        except UnityError as error:
            raise self.source.error(node, error.message, error.hint) from None

    def _address_of(self, node: ast.Call, given: Bound[ast.expr]) -> PrimExpr:
        element = self.expr(given.named["element"])
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
        if not isinstance(found, int) or isinstance(found, bool):
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


_CALLS: Mapping[str, Callable[[PrimCalls, ast.Call, Bound[ast.expr]], PrimExpr]] = {
    "T.select": PrimCalls._select_call,
    "T.if_then_else": PrimCalls._select_call,
    "T.not_": PrimCalls._not,
    "T.cast": PrimCalls._cast,
    "T.reinterpret": PrimCalls._reinterpret,
    "T.imm": PrimCalls._imm,
    "T.load": PrimCalls._load,
    "T.ramp": PrimCalls._ramp,
    "T.broadcast": PrimCalls._broadcast,
    "T.call": PrimCalls._call,
    "T.call_extern": PrimCalls._call_extern,
    "T.address_of": PrimCalls._address_of,
}
