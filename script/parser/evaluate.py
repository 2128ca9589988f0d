"""What Python itself computes while parsing: captured values, dims, types, attributes.

The prim and the graph parser give expressions their meaning; everything below an expression that
is no part of the program (an annotation, ``attrs``, a captured constant) is evaluated here. Only a
few functions are run: no code of a user runs because a program is parsed.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from types import ModuleType

import numpy as np

from unity.arguments import Bound, Named, Signature
from unity.errors import UnityError
from unity.ir import dtype as _dtypes
from unity.ir.dims import SymDim, as_dim, ceildiv, dim_max, dim_min, floordiv, floormod
from unity.ir.types import TensorType

from .. import annotations as words
from .. import graph_names, prim_names
from ..annotations import Buffer, Element, Tensor, tvms_spelling
from ..annotations import dim as make_dim
from ..graph_names import as_type
from ..marker import Marker
from ..program import ScriptExtern, ScriptFunction, ScriptPrimFunc
from .scope import MISSING, Scope
from .scope import Named as FunctionName
from .source import Source

_WORDS: Mapping[str, object] = {
    **{short: getattr(words, short) for short in _dtypes.SHORT_NAMES},
    **{"Tensor": Tensor, "Buffer": words.Buffer, "R": graph_names, "T": prim_names},
}
"""Of the language, which functions may be called as well."""
_EXTREMES: dict[str, object] = {"min": min, "max": max}
_RUNNABLE: tuple[object, ...] = (
    *(abs, bool, float, int, len, list, math.ceil, math.exp, math.floor, math.log, math.log2),
    *(math.prod, math.sqrt, range, round, str, sum, tuple),
    *(make_dim, ceildiv, _dtypes.dtype),
    *(prim_names.strides, prim_names.scope, prim_names.align, prim_names.scalar),
    *(graph_names.rank, graph_names.Shape, graph_names.Prim, graph_names.Tuple),
    graph_names.Func,
)
_ARITHMETIC: Mapping[type[ast.operator], Callable[..., object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}


def _power(base: SymDim | int, exponent: SymDim | int) -> SymDim | int:
    """A dim to the power of a small number.

    Raises:
        ValueError: The exponent is none.
    """
    if not isinstance(exponent, int) or not 0 <= exponent <= _MOST_FACTORS:
        raise ValueError(f"a dim takes powers of 0 to {_MOST_FACTORS}, got {exponent}")
    result: SymDim | int = 1
    for _ in range(exponent):
        result = as_dim(result * base)
    return result


_MOST_FACTORS = 8
_DIM_ARITHMETIC: Mapping[type[ast.operator], Callable[[SymDim | int, SymDim | int], object]] = {
    ast.Add: lambda a, b: as_dim(a + b),
    ast.Sub: lambda a, b: as_dim(a - b),
    ast.Mult: lambda a, b: as_dim(a * b),
    ast.FloorDiv: floordiv,
    ast.Mod: floormod,
    ast.Pow: _power,
}
_COMPARE: Mapping[type[ast.cmpop], Callable[..., bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class Evaluator:
    """Evaluates syntax to Python values in a scope; parsers of programs override what differs."""

    def __init__(self, source: Source, scope: Scope) -> None:
        self.source = source
        self.scope = scope

    def constant(self, node: ast.expr) -> object:
        """The Python value of an expression, whatever a subclass makes of expressions.

        Raises:
            UnityError: It has none, at its place.
        """
        return Evaluator(self.source, self.scope).value(node)

    def value(self, node: ast.expr) -> object:
        """The meaning of an expression.

        Raises:
            UnityError: It has none, at its place.
        """
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return self.name(node)
            case ast.Attribute():
                return self.attribute(node)
            case ast.Tuple() | ast.List():
                items = self.items(node.elts)
                return tuple(items) if isinstance(node, ast.Tuple) else items
            case ast.Dict():
                return self.dictionary(node)
            case ast.Subscript():
                return self.subscript(node)
            case ast.Call():
                return self.call(node)
            case ast.BinOp():
                return self.binary(node)
            case ast.UnaryOp():
                return self.unary(node)
            case ast.Compare():
                return self.compare(node)
            case _:
                raise self.unsupported(node)

    def unsupported(self, node: ast.AST) -> UnityError:
        """The error for syntax that is no part of the language."""
        what = _SYNTAX.get(type(node), type(node).__name__)
        return self.source.error(node, f"{what} can't be used here", _SYNTAX_HINTS.get(type(node)))

    def items(self, nodes: list[ast.expr]) -> list[object]:
        """The values of several expressions; ``*captured`` is spliced in."""
        values: list[object] = []
        for node in nodes:
            if not isinstance(node, ast.Starred):
                values.append(self.value(node))
                continue
            spliced = self.parts(node.value, self.value(node.value))
            if not isinstance(spliced, tuple | list | range):
                raise self.source.error(node, f"* needs a captured tuple, got {shown(spliced)}")
            values.extend(spliced)
        return values

    def parts(self, node: ast.expr, value: object) -> object:
        """What ``*value`` puts in a call or a tuple, if it can be taken apart."""
        return value

    def name(self, node: ast.Name) -> object:
        """The value of a name."""
        found = self.scope.lookup(node.id)
        if found is MISSING:
            raise self.source.error(node, f"unknown name {node.id!r}", self.scope.near(node.id))
        return found

    def attribute(self, node: ast.Attribute) -> object:
        """An attribute of a name of the language, a module, or a captured value."""
        base = _word(node.value, self.value(node.value))
        if isinstance(base, ModuleType | Marker | np.dtype | np.ndarray | type) or not callable(
            base
        ):
            found = getattr(base, node.attr, MISSING)
            if found is not MISSING:
                return found
        raise self.source.error(node, f"{shown(base)} has no attribute {node.attr!r}")

    def subscript(self, node: ast.Subscript) -> object:
        """A type (``f32[Tensor, n]``) or a field of a captured tuple, list or dict."""
        base = _word(node.value, self.value(node.value))
        index = self.value(node.slice)
        if isinstance(index, tuple) and isinstance(node.slice, ast.Tuple):
            index = tuple(map(_word, node.slice.elts, index)) if _same(node.slice, index) else index
        index = _word(node.slice, index)
        if base is tuple:
            fields = index if isinstance(index, tuple) else (index,)
            return graph_names.Tuple(*fields)
        if isinstance(base, Element | tuple | list | dict):
            return self.run(node, base.__getitem__, index)
        found = getattr(base, "__metadata__", MISSING)
        if found is not MISSING:
            raise self.source.error(node, f"can't take a part of {shown(base)}")
        raise self.source.error(node, f"{shown(base)} can't be subscripted")

    def dictionary(self, node: ast.Dict) -> dict[str, object]:
        """A dict with strings as keys."""
        found: dict[str, object] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            name = None if key is None else self.constant(key)
            if not isinstance(name, str):
                raise self.source.error(key or node, "the keys must be strings")
            found[name] = self.constant(value)
        return found

    def given(self, node: ast.Call, signature: Signature) -> Bound[ast.expr]:
        """What a call gives, bound to a signature.

        Raises:
            UnityError: It doesn't fit, at the argument's place.
        """
        named = [Named(k.arg, k.value, self.source.span(k)) for k in node.keywords]
        return signature.bind(node.args, named, self.source.span(node))

    def signature(self, node: ast.Call) -> Signature:
        """What a name of the language takes."""
        found = self.value(node.func)
        assert isinstance(found, Marker), ast.unparse(node.func)
        assert found.signature is not None, found.path
        return found.signature

    def call(self, node: ast.Call) -> object:
        """A call of one of the few functions that run while parsing."""
        function = self.value(node.func)
        if isinstance(node.func, ast.Name) and not callable(function):
            # A kernel may be named `max`, which shapes name as well: it can't be called in them.
            function = _EXTREMES.get(node.func.id, function)
        args = self.items(node.args)
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.source.error(keyword, "** can't be used here")
        named = {k.arg: self.value(k.value) for k in node.keywords if k.arg is not None}
        if function is min or function is max:
            return self.extreme(node, function is min, args)
        if isinstance(function, Marker):
            raise self.source.error(node, f"{function.path} can't be used here")
        if not callable(function) or not any(function is known for known in _RUNNABLE):
            raise self.not_runnable(node, function)
        return self.run(node, function, *args, **named)

    def not_runnable(self, node: ast.Call, function: object) -> UnityError:
        """The error for a call of a function that parsing doesn't run."""
        name = ast.unparse(node.func)
        if not callable(function):
            return self.source.error(node.func, f"{name!r} is {shown(function)}, not a function")
        if function is Buffer:
            return self.source.error(node, *tvms_spelling(Buffer))
        if function is Tensor:
            return self.source.error(node, *tvms_spelling(Tensor))
        return self.source.error(
            node,
            f"{name!r} is a plain Python function: it can't be called in a program",
            "decorate it with @script.function or @script.prim_func, or compute its value "
            "outside and use that by name",
        )

    def extreme(self, node: ast.Call, smaller: bool, args: list[object]) -> object:
        """``min`` or ``max`` of numbers and dims."""
        values = [a for a in args if isinstance(a, int | float | SymDim)]
        if not values or len(values) != len(args):
            raise self.source.error(node, "min and max here take numbers and dims")

        def of_dims(a: object, b: object) -> object:
            return (dim_min if smaller else dim_max)(as_dim(a), as_dim(b))

        result: object = values[0]
        for value in values[1:]:
            if isinstance(result, SymDim) or isinstance(value, SymDim):
                result = self.run(node, of_dims, result, value)
            else:
                result = self.run(node, min if smaller else max, result, value)
        return result

    def run(
        self, node: ast.expr, function: Callable[..., object], *args: object, **named: object
    ) -> object:
        """Run a function; what it raises becomes an error at the node."""
        try:
            return function(*args, **named)
        except UnityError as error:
            raise UnityError(error.message, self.source.span(node), error.hint) from None
        except (TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise self.source.error(node, f"{type(error).__name__}: {error}") from None

    def binary(self, node: ast.BinOp) -> object:
        """Arithmetic of numbers and dims."""
        return self.combine(node, self.value(node.left), self.value(node.right))

    def combine(self, node: ast.BinOp, left: object, right: object) -> object:
        """One arithmetic operation on Python values."""
        if isinstance(left, SymDim) or isinstance(right, SymDim):
            rule = _DIM_ARITHMETIC.get(type(node.op))
            dims = [v for v in (left, right) if isinstance(v, int | SymDim)]
            if rule is None or len(dims) != 2:
                raise self.source.error(
                    node,
                    f"a dim must be an integer expression, got {ast.unparse(node)!r}",
                    "dims take + - * // % and min, max with integers and other dims; in a function "
                    "float(n) / 2 is a number",
                )
            return self.run(node, rule, *dims)
        arithmetic = _ARITHMETIC.get(type(node.op))
        if arithmetic is None:
            raise self.unsupported(node.op)
        return self.run(node, arithmetic, left, right)

    def unary(self, node: ast.UnaryOp) -> object:
        """``-n``, ``+n``, ``~n`` and ``not b`` of a number or a dim."""
        value = self.value(node.operand)
        match node.op, value:
            case ast.UAdd(), int() | float() | SymDim():
                return +value if isinstance(value, int | float) else value
            case ast.Invert(), int() if not isinstance(value, bool):
                return ~value
            case ast.USub(), int() | float():
                return -value
            case ast.USub(), SymDim():
                return as_dim(-value)
            case ast.Not(), bool():
                return not value
            case _:
                raise self.source.error(node, f"{ast.unparse(node)!r} has no meaning here")

    def compare(self, node: ast.Compare) -> object:
        """A comparison of two captured values."""
        if len(node.ops) != 1:
            raise self.unsupported(node)
        left, right = self.value(node.left), self.value(node.comparators[0])
        return self.comparison(node, type(node.ops[0]), left, right)

    def comparison(
        self, node: ast.Compare, kind: type[ast.cmpop], left: object, right: object
    ) -> object:
        """One comparison of Python values."""
        if kind not in _COMPARE:
            raise self.unsupported(node)
        return self.run(node, _COMPARE[kind], left, right)

    def type(self, node: ast.expr) -> object:
        """The meaning of an annotation: strings are parsed, ``Annotated[x, m]`` is ``m``.

        ``Tensor`` alone is a tensor of any dtype and shape.
        """
        match node:
            case ast.Constant(str() as text):
                try:
                    inner = ast.parse(text.strip(), mode="eval").body
                except SyntaxError:
                    raise self.source.error(node, f"not an annotation: {text!r}") from None
                for part in ast.walk(inner):
                    ast.copy_location(part, node)
                return self.type(inner)
            case ast.Subscript(ast.Name("Annotated"), ast.Tuple(elts=[_, meaning, *_])):
                return self.type(meaning)
            case ast.Subscript(value, ast.Tuple() as fields) if self._is_tuple(value):
                return graph_names.Tuple(*(as_type(self.type(f)) for f in fields.elts))
            case _:
                found = self.constant(node)
                return TensorType(None, None) if found is Tensor else found

    def _is_tuple(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and self.scope.lookup(node.id) is tuple


def _word(node: ast.expr, value: object) -> object:
    """A word of the language where a function of that name can't be meant: in a type, say."""
    if isinstance(node, ast.Name) and isinstance(
        value, FunctionName | ScriptFunction | ScriptPrimFunc | ScriptExtern
    ):
        return _WORDS.get(node.id, value)
    return value


def _same(node: ast.Tuple, values: tuple[object, ...]) -> bool:
    """Whether each part of a tuple is written out: none is spliced in."""
    return len(node.elts) == len(values)


def shown(value: object) -> str:
    """A Python value in a message: its kind, shortly."""
    if isinstance(value, Marker):
        return value.path
    if isinstance(value, ModuleType):
        return f"the module {value.__name__}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, str | int | float | bool | SymDim) or value is None:
        return repr(value)
    return f"a {type(value).__name__}"


_SYNTAX: Mapping[type[ast.AST], str] = {
    ast.Lambda: "lambda",
    ast.Try: "try",
    ast.TryStar: "try",
    ast.Raise: "raise",
    ast.Global: "global",
    ast.Nonlocal: "nonlocal",
    ast.Delete: "del",
    ast.Import: "import",
    ast.ImportFrom: "import",
    ast.ClassDef: "class",
    ast.AsyncFunctionDef: "async def",
    ast.AsyncFor: "async for",
    ast.AsyncWith: "async with",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.YieldFrom: "yield from",
    ast.ListComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension",
    ast.GeneratorExp: "a generator",
    ast.NamedExpr: "the := operator",
    ast.JoinedStr: "an f-string",
    ast.Match: "match",
    ast.Break: "break",
    ast.Continue: "continue",
    ast.Set: "a set",
    ast.Starred: "*",
    ast.Slice: "a slice",
    ast.Compare: "a comparison like this",
    ast.IfExp: "a conditional expression",
    ast.BoolOp: "and, or",
    ast.MatMult: "the @ operator",
    ast.For: "for",
    ast.While: "while",
    ast.FunctionDef: "a nested function",
    ast.With: "with",
    ast.If: "if",
    ast.Assert: "assert",
    ast.Return: "return",
}
ONE_TARGET = "write a line for each: a = ..., then b = a"
"""What to do where several targets are assigned at once."""
_SYNTAX_HINTS: Mapping[type[ast.AST], str] = {
    ast.Lambda: "write a nested function decorated with @script.function",
    ast.ListComp: "build the list outside the function and use it by name",
    ast.SetComp: "build it outside the function and use it by name",
    ast.DictComp: "build it outside the function and use it by name",
    ast.Match: "write if and elif: a program compares numbers",
    ast.Delete: "leave it out: memory is freed after a value's last use",
    ast.NamedExpr: "bind the name in a line of its own, y = ..., and use it then",
    ast.Import: "import above the function: a program reads the names around it",
    ast.ImportFrom: "import above the function: a program reads the names around it",
    ast.Raise: "a program has no exceptions; assert condition, 'text' stops it",
    ast.ClassDef: "define classes outside the function; a program's values are tensors and tuples",
    ast.Yield: "return a tuple, or call a function of the host with each: R.call_packed",
    ast.YieldFrom: "return a tuple, or call a function of the host with each: R.call_packed",
    ast.Await: "a program runs to its end; await what calls it",
    ast.AsyncFunctionDef: "use a plain def",
    ast.AsyncFor: "use a plain for",
    ast.AsyncWith: "use a plain with",
    ast.For: "a function loops with while, or R.scan; a prim_func with T.grid, T.serial ...",
    ast.Global: "a program only reads the names around it",
    ast.Nonlocal: "a program only reads the names around it",
    ast.Try: "a program has no exceptions; assert condition, 'text' stops it",
    ast.Set: "write a tuple: (x, y)",
    ast.JoinedStr: "build the string outside the function and use it by name",
}
