"""Calls across layers and literal values: ``R.call_tir``, ``R.call_library``, ``R.const`` ..."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np

from unity.errors import UnityError
from unity.ir.attrs import NO_ATTRS, Attrs
from unity.ir.dims import Dim, SymDim, as_dim
from unity.ir.dtype import BOOL, FLOAT32, FLOAT64, INT32, INT64, Array, DType, dtype
from unity.ir.graph import (
    Call,
    CallEngine,
    CallLibrary,
    CallPython,
    CallTir,
    Constant,
    Expr,
    Literal,
    Op,
    PrimValue,
    ShapeValue,
    Tuple,
)
from unity.ir.lattice import erase
from unity.ir.module import ExternFunc
from unity.ir.signature import check_call
from unity.ir.stmt import PrimFunc
from unity.ir.types import FuncType, ObjectType, PrimType, TensorType, TupleType, Type
from unity.op.call import is_expr
from unity.op.effects import ASSERT, PRINT

from ..marker import Marker
from ..program import ScriptExtern, ScriptFunction, ScriptPrimFunc, as_program, extern_name
from .evaluate import shown
from .graph_expr import Cast
from .graph_sequences import GraphSequences
from .scope import Named


class GraphCalls(GraphSequences):
    """Evaluates the calls of ``R`` that are no operators."""

    def _language_call(self, node: ast.Call, path: str) -> object:
        if path in _TVMS:
            raise self.source.error(node, f"{path} is a word of TVMScript", _TVMS[path])
        rule = _CALLS.get(path)
        return super()._language_call(node, path) if rule is None else rule(self, node)

    def _tensors(self, node: ast.expr) -> tuple[Expr, ...]:
        """The tuple of a call's inputs; one alone needs no parentheses."""
        value = self.value(node)
        if isinstance(value, tuple | list):
            return tuple(self.builder.atom(self.graph(node, v)) for v in value)
        return (self.builder.atom(self.graph(node, value)),)

    def _out(self, node: ast.expr) -> tuple[Type, ...]:
        if isinstance(node, ast.Tuple | ast.List):
            return tuple(self.annotation(part) for part in node.elts)
        return (self.annotation(node),)

    def _dims(self, node: ast.expr) -> tuple[Dim, ...]:
        found = self.constant(node)
        parts = found if isinstance(found, tuple | list) else (found,)
        return tuple(self._dim(node, part) for part in parts)

    def _ints(self, node: ast.expr) -> tuple[int, ...]:
        dims = self._dims(node)
        numbers = tuple(d for d in dims if isinstance(d, int))
        if len(numbers) != len(dims):
            raise self.source.error(node, "expected integers, got a dim that is not known")
        return numbers

    def _dim(self, node: ast.expr, value: object) -> Dim:
        try:
            return as_dim(value)
        except UnityError as error:
            raise self.source.error(node, error.message, error.hint) from None

    def _call_tir(self, node: ast.Call) -> Expr:
        given = self.arguments(node)
        span = self.source.span(node)
        callee = self.value(given["callee"])
        if isinstance(callee, PrimFunc):
            callee = as_program(_called(given["callee"]), callee)
        if not isinstance(callee, ScriptPrimFunc | Named):
            raise self.source.error(
                given["callee"],
                f"R.call_tir calls a prim_func, got {shown(callee)}",
                "decorate it with @script.prim_func, or give a PrimFunc (te.create_prim_func, "
                "Schedule.kernel())",
            )
        ref = self.reference(callee, span)
        kernel = self.around.kernels.get(ref.name)
        if kernel is None:
            raise self.source.error(given["callee"], f"{ref.name!r} is no prim_func")
        args, sizes = self._without_sizes(self._tensors(given["args"]))
        out = self._out(given["out"])
        sym_args = (*sizes, *(self._dims(given["sym_args"]) if "sym_args" in given else ()))
        for size in sym_args:
            if isinstance(size, int) and size < 0:
                raise self.source.error(node, f"a size can't be negative, got {size}")
        inplace: tuple[int, ...] = ()
        if "inplace" in given:
            inplace = self._ints(given["inplace"])
            if len(inplace) > len(out) or any(not -1 <= i < len(args) for i in inplace):
                raise self.source.error(
                    given["inplace"],
                    f"inplace says of each of {len(out)} outputs which of {len(args)} inputs it "
                    f"lies in, or -1, got {inplace}",
                )
        self._check_kernel(node, kernel, args, out, inplace)
        return CallTir(ref, args, out, sym_args, inplace, span)

    def _without_sizes(self, args: tuple[Expr, ...]) -> tuple[tuple[Expr, ...], tuple[Dim, ...]]:
        """The tensors among a kernel's arguments, and its sizes: each kind is in order."""
        tensors: list[Expr] = []
        sizes: list[Dim] = []
        for arg in args:
            kind = self.type_of(arg)
            if isinstance(kind, PrimType) and kind.value is not None:
                sizes.append(kind.value)
            else:
                tensors.append(arg)
        return tuple(tensors), tuple(sizes)

    def _check_kernel(
        self,
        node: ast.Call,
        kernel: PrimFunc,
        args: tuple[Expr, ...],
        out: tuple[Type, ...],
        inplace: tuple[int, ...],
    ) -> None:
        """The arguments and outputs must fit the kernel's buffers."""
        name = ast.unparse(self.arguments(node)["callee"])
        try:
            check_call(name, kernel, [self.type_of(a) for a in args], out, inplace)
        except UnityError as error:
            raise self.source.error(node, error.message, error.hint) from None

    def _call_library(self, node: ast.Call) -> Expr:
        given = self.arguments(node)
        attrs = self.attrs(given["attrs"]) if "attrs" in given else NO_ATTRS
        args, out = self._tensors(given["args"]), self._out(given["out"])
        return CallLibrary(self.text(given["symbol"]), args, out, attrs, self.source.span(node))

    def _call_python(self, node: ast.Call) -> Expr:
        given = self.arguments(node)
        function = self.value(given["function"])
        if not callable(function) or isinstance(function, Marker):
            raise self.source.error(
                given["function"], f"R.call_python takes a function, got {shown(function)}"
            )
        args, out = self._tensors(given["args"]), self._out(given["out"])
        return CallPython(cast("Callable[..., None]", function), args, out, self.source.span(node))

    def _call_engine(self, node: ast.Call) -> Expr:
        given = self.arguments(node)
        subgraph = self.value(given["subgraph"])
        if not isinstance(subgraph, ScriptFunction | Named):
            raise self.source.error(
                given["subgraph"], f"R.call_engine takes a function, got {shown(subgraph)}"
            )
        span = self.source.span(node)
        ref = self.reference(subgraph, span)
        attrs = self.attrs(given["attrs"]) if "attrs" in given else NO_ATTRS
        args, out = self._tensors(given["args"]), self._out(given["out"])
        return CallEngine(self.text(given["engine"]), ref, args, out, attrs, span)

    def _call_packed(self, node: ast.Call) -> object:
        """A call of a function of the host: of an external function whose type the call says."""
        signature = self.signature(node)
        given = self.given(node, signature)
        symbol = self.text(given.named["name"])
        args = tuple(self.passed_object(a, self.value(a)) for a in given.rest)
        said = given.named.get("out")
        wanted = TupleType(()) if said is None or _is_empty(said) else self._whole(said)
        declared = erase(wanted, frozenset())
        pure = signature.name == "R.call_pure_packed"
        kind = FuncType((ObjectType(),) * len(args), declared, pure)
        span = self.source.span(node)
        extern = ScriptExtern(extern_name(symbol), ExternFunc(symbol, kind))
        callee = self.reference(extern, span)
        made = self.checked(node, lambda: Call(callee, args, NO_ATTRS, span))
        return made if declared == wanted else Cast(self.builder.atom(made), wanted)

    def _whole(self, node: ast.expr) -> Type:
        """The type that one annotation says, or several as a tuple."""
        out = self._out(node)
        return TupleType(out) if isinstance(node, ast.Tuple | ast.List) else out[0]

    def _print(self, node: ast.Call) -> Expr:
        given = self.given(node, self.signature(node))
        values = self._told(list(given.rest))
        text = self.text(given.named["format"]) if "format" in given.named else ""
        return self.effect(node, PRINT, (values,), text)

    def _assert_op(self, node: ast.Call) -> Expr:
        given = self.given(node, self.signature(node))
        condition = self.atom(given.named["condition"])
        text = self.text(given.named["format"]) if "format" in given.named else ""
        return self.effect(node, ASSERT, (condition, self._told(list(given.rest))), text)

    def _told(self, nodes: list[ast.expr]) -> Expr:
        """The tuple of what is printed."""
        return Tuple(tuple(self.passed_object(n, self.value(n)) for n in nodes))

    def effect(self, node: ast.AST, name: str, args: tuple[Expr, ...], text: str) -> Expr:
        """A call of `print` or `assert_op`."""
        span = self.source.span(node)
        made = Call(Op(name, span), args, Attrs(format=text), span)
        return self.checked(cast("ast.expr", node), lambda: made)

    def message(self, nodes: list[ast.expr]) -> tuple[str, Expr]:
        """What Python prints of several expressions: a format, and the values it is filled with."""
        parts: list[str] = []
        values: list[ast.expr] = []
        for node in nodes:
            match node:
                case ast.JoinedStr():
                    parts.append("".join(self._piece(p, values) for p in node.values))
                case ast.Constant(str() as text):
                    parts.append(_literally(text))
                case _:
                    parts.append("{}")
                    values.append(node)
        return " ".join(parts), self._told(values)

    def _piece(self, part: ast.expr, values: list[ast.expr]) -> str:
        """A part of an f-string as a part of a format."""
        match part:
            case ast.Constant(str() as text):
                return _literally(text)
            case ast.FormattedValue(value, -1, None):
                values.append(value)
                return "{}"
            case ast.FormattedValue(value, -1, ast.JoinedStr([ast.Constant(str() as spec)])):
                values.append(value)
                return f"{{:{spec}}}"
            case _:
                raise self.source.error(
                    part, "an f-string here takes {value} and {value:format}", "no ! and no {{}}"
                )

    def print_call(self, node: ast.Call) -> Expr:
        """``print(x, "text", f"{y:.3f}")``."""
        if node.keywords:
            raise self.source.error(
                node.keywords[0], "print takes values alone here", 'R.print(x, format="{}")'
            )
        text, values = self.message(node.args)
        assert isinstance(values, Tuple)
        plain = text == " ".join(["{}"] * len(values.fields))
        return self.effect(node, PRINT, (values,), "" if plain else text)

    def _literal(self, node: ast.Call) -> Expr:
        given = self.arguments(node)
        if "name" in given:
            return Literal(self._dtype(given["name"]), self.source.span(node))
        return Literal(self.text(given["value"]), self.source.span(node))

    def _match_cast(self, node: ast.Call) -> Cast:
        given = self.arguments(node)
        return Cast(self.atom(given["value"]), self.annotation(given["type"]))

    def _shape(self, node: ast.Call) -> Expr:
        given = self.given(node, self.signature(node)).rest
        dims = [self._dim(node, v) for v in self.items(list(given))]
        return ShapeValue(tuple(dims), self.source.span(node))

    def _prim(self, node: ast.Call) -> Expr:
        given = self.arguments(node)
        value = self.value(given["value"])
        if is_expr(value) and not isinstance(value, PrimValue):
            return self._prim_of(given, self.builder.atom(value))
        value = self.constant(given["value"])
        kind = self._dtype(given["dtype"]) if "dtype" in given else None
        span = self.source.span(node)
        if kind is not None and not _holds(kind, value):
            raise self.source.error(given["value"], f"R.prim: {shown(value)} is no {kind}")
        match value:
            case bool():
                return PrimValue(value, kind or BOOL, span)
            case float():
                return PrimValue(value, kind or FLOAT32, span)
            case int() | SymDim() if kind is not None and kind.is_float and isinstance(value, int):
                return PrimValue(float(value), kind, span)
            case _:
                return PrimValue(self._dim(node, value), kind or INT64, span)

    def _prim_of(self, given: Mapping[str, ast.expr], value: Expr) -> Expr:
        """A scalar, or the number in a tensor of rank 0, as a scalar."""
        found, place = self.type_of(value), given["value"]
        kind = found.dtype if isinstance(found, PrimType | TensorType) else None
        asked = self._dtype(given["dtype"]) if "dtype" in given else kind
        if kind is None or asked != kind:
            raise self.source.error(
                place,
                f"R.prim: {ast.unparse(place)!r} is no scalar {asked}",
                "convert with R.astype(value, dtype)",
            )
        return value if isinstance(found, PrimType) else self.scalar(place, value)

    def _dtype(self, node: ast.expr) -> DType:
        found = self.constant(node)
        try:
            return dtype(found if isinstance(found, DType) else str(found))
        except UnityError as error:
            raise self.source.error(node, error.message, error.hint) from None

    def _const(self, node: ast.Call) -> Expr:
        given = self.arguments(node)
        value = self.constant(given["value"])
        kind = self._dtype(given["dtype"]) if "dtype" in given else None
        span = self.source.span(node)
        if isinstance(value, str):
            if value not in self.around.arrays:
                raise self.source.error(
                    given["value"],
                    f"there is no constant {value!r}",
                    "give it: parse(text, {name: array})",
                )
            return Constant(self.around.arrays[value], value, span)
        if is_expr(value) or isinstance(value, SymDim):
            raise self.source.error(
                given["value"],
                f"R.const: {ast.unparse(given['value'])!r} is known when the program runs",
                "write it without R.const: x * s, R.full((n,), s)",
            )
        if not isinstance(value, bool | int | float | list | tuple | np.ndarray | np.generic):
            raise self.source.error(
                given["value"],
                f"R.const takes numbers, nested lists of them and arrays, got {shown(value)}",
            )
        if kind is None and not isinstance(value, np.ndarray | np.generic):
            kind = _default_dtype(value)
        if self.around.tvmscript and "dtype" not in given:
            kind = _IN_TVM.get(np.asarray(value).dtype, kind)
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                data = np.array(value, None if kind is None else kind.numpy)
        except (ValueError, TypeError, OverflowError) as error:
            raise self.source.error(given["value"], f"R.const: {error}") from None
        if kind is not None and _overflows(value, data):
            raise self.source.error(
                given["value"], f"R.const: a number is beyond what {kind} can hold"
            )
        if "shape" in given:
            shape = self._ints(given["shape"])
            if math.prod(shape) != data.size:
                raise self.source.error(given["shape"], f"{data.size} values can't have that shape")
            data = data.reshape(shape)
        return self.constant_of(data, span)


_CALLS: Mapping[str, Callable[[GraphCalls, ast.Call], object]] = {
    "R.call_tir": GraphCalls._call_tir,
    "R.call_library": GraphCalls._call_library,
    "R.call_python": GraphCalls._call_python,
    "R.call_packed": GraphCalls._call_packed,
    "R.call_pure_packed": GraphCalls._call_packed,
    "R.call_engine": GraphCalls._call_engine,
    "R.print": GraphCalls._print,
    "R.assert_op": GraphCalls._assert_op,
    "R.text": GraphCalls._literal,
    "R.dtype": GraphCalls._literal,
    "R.match_cast": GraphCalls._match_cast,
    "R.shape": GraphCalls._shape,
    "R.prim": GraphCalls._prim,
    "R.const": GraphCalls._const,
}


def _called(node: ast.expr) -> str:
    """What a kernel is called that stands there: the last name of it."""
    match node:
        case ast.Name(name) | ast.Attribute(_, name):
            return name
        case _:
            return "kernel"


def _literally(text: str) -> str:
    """A text as a format that gives it."""
    return text.replace("{", "{{").replace("}", "}}")


def _is_empty(node: ast.expr) -> bool:
    return isinstance(node, ast.Tuple | ast.List) and not node.elts


def _holds(kind: DType, value: object) -> bool:
    """Whether a scalar of a dtype may have a value."""
    if isinstance(value, bool) or kind == BOOL:
        return isinstance(value, bool) and kind == BOOL
    return kind.is_float or not isinstance(value, float)


def _default_dtype(value: object) -> DType:
    """Python's own: bool, int64, or float32."""
    kind = np.asarray(value).dtype
    if kind == np.bool_:
        return BOOL
    return INT64 if kind.kind in "iu" else FLOAT32


_IN_TVM: Mapping[np.dtype[Any], DType] = {INT64.numpy: INT32, FLOAT64.numpy: FLOAT32}
"""What `R.const` of TVM makes of numbers and arrays when it is given no dtype."""


def _overflows(value: object, data: Array) -> bool:
    """Whether a finite number became another one, further away than rounding takes it."""
    wide, held = np.asarray(value, np.float64), data.astype(np.float64)
    if data.dtype.kind in "iu":
        return bool((np.abs(held - wide) > 1 + np.abs(wide) * 2.0**-50).any())
    return bool((np.isfinite(wide) & ~np.isfinite(held)).any())


_TVMS: Mapping[str, str] = {
    "R.output": "leave it out: what a dataflow block binds is seen behind it, as Python has it",
    "R.func_attr": "the decorator takes them: @script.function(attrs={...})",
    "R.func_ret_struct_info": "annotate what the function returns: -> f32[Tensor, n]",
    "R.emit": "assign the value to a name, or write it alone: R.print(x)",
}
"""Words of Relax that are said otherwise here, and how; `unity.script.tvmscript` reads them."""
