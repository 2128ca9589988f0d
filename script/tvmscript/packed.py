"""Calls of functions that TVM looks up by name when a program runs: here of external functions.

``R.call_packed("f", x, ty_args=R.Tensor((2,), "float32"))`` is a call of a function of the module,
``f = script.extern("f", R.Func([R.Object], f32[Tensor, 2], False))``. Its type says nothing of
what it takes, as in TVM; sizes in the result are asserted where it is called.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from unity.arguments import Named, Signature

from ..parser.source import Source
from ..parser.text import LANGUAGE
from ..program import extern_name
from .graph.before import mentioned
from .graph.devices import check_here
from .syntax import at_place, constant, dotted, path_of

PACKED = ("R.call_packed", "R.call_pure_packed")
_SIGNATURE = Signature.parse("R.call_packed(func, *args, ty_args=None, sinfo_args=None)")


class Externs:
    """The external functions that a module's calls name: one for each symbol, type and purity."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.definitions: dict[str, ast.expr] = {}
        self.taken: set[str] = {*LANGUAGE, "I"}
        """Names that the module's text gives a meaning."""
        self._names: dict[tuple[str, str], str] = {}

    def note(self, root: ast.AST) -> None:
        """Names that are taken: all that a function of the module mentions."""
        self.taken.update(mentioned(root))

    def call(self, node: ast.Call) -> tuple[ast.Call, ast.expr | None]:
        """A call of an external function, and the type to assert of its value if it has sizes.

        Raises:
            UnityError: The function is not named, or belongs to another machine.
        """
        path = path_of(node.func)
        named = [Named(k.arg, k.value, self.source.span(k)) for k in node.keywords]
        bound = _SIGNATURE.bind(node.args, named, self.source.span(node))
        symbol = constant(bound.named["func"])
        if not isinstance(symbol, str):
            raise self.source.error(node, f"{path} takes a function's name", "a text in quotes")
        check_here(self.source, node, symbol)
        said = bound.named.get("ty_args", bound.named.get("sinfo_args"))
        kind = _result(said)
        declared = _erased(kind)
        result = dotted("R.Object") if declared is None else declared
        pure = path == "R.call_pure_packed"
        name = self._name(symbol, len(bound.rest), result, pure, node)
        call = at_place(
            ast.Call(ast.Name(name, ast.Load()), [_operand(a) for a in bound.rest], []), node
        )
        same = kind is None or ast.dump(result) == ast.dump(kind)
        return call, None if same else kind

    def _name(self, symbol: str, count: int, result: ast.expr, pure: bool, node: ast.Call) -> str:
        params = ast.List([dotted("R.Object") for _ in range(count)], ast.Load())
        kind = ast.Call(dotted("R.Func"), [params, result, ast.Constant(pure)], [])
        key = (symbol, ast.unparse(kind))
        if key not in self._names:
            base = extern_name(symbol)
            name, k = base, 0
            while name in self.definitions or name in self.taken:
                k += 1
                name = f"{base}_extern" if k == 1 else f"{base}_extern_{k}"
            self._names[key] = name
            made = ast.Call(dotted("script.extern"), [ast.Constant(symbol), kind], [])
            self.definitions[name] = at_place(made, node)
        return self._names[key]


def _result(said: ast.expr | None) -> ast.expr | None:
    """The type that a call's ``ty_args`` say: one of them itself, several as a tuple."""
    match said:
        case ast.List([one]) | ast.Tuple([one]):
            return one
        case ast.List(kinds) | ast.Tuple(kinds) if kinds:
            return at_place(ast.Call(dotted("R.Tuple"), list(kinds), []), said)
        case ast.List() | ast.Tuple() | None:
            return None
        case _:
            return said


def _erased(kind: ast.expr | None) -> ast.expr | None:
    """A type without the sizes that only the caller knows; None if that is any object."""
    if kind is None:
        return None
    if not isinstance(kind, ast.Call):
        return kind
    path, args = path_of(kind.func), kind.args
    if path in ("R.Tensor", "R.Shape"):
        shape = args[0] if args else _named(kind, "shape")
        if shape is None or _is_static(shape):
            return kind
        if not isinstance(shape, ast.Tuple | ast.List):
            return None
        rank = ast.keyword("ndim", ast.Constant(len(shape.elts)))
        element = args[1] if len(args) > 1 else _named(kind, "dtype")
        kept = [rank] if element is None else [rank, ast.keyword("dtype", element)]
        return at_place(ast.Call(kind.func, [], kept), kind)
    if path == "R.Tuple":
        fields: Sequence[ast.expr] = args
        if len(args) == 1 and isinstance(args[0], ast.List | ast.Tuple):
            fields = args[0].elts
        parts = [_erased(f) for f in fields]
        whole = [dotted("R.Object") if p is None else p for p in parts]
        return at_place(ast.Call(kind.func, whole, []), kind)
    return kind


def _named(call: ast.Call, name: str) -> ast.expr | None:
    return next((k.value for k in call.keywords if k.arg == name), None)


def _is_static(shape: ast.expr) -> bool:
    found = constant(shape)
    return isinstance(found, int | str) or (
        isinstance(found, tuple | list) and all(isinstance(d, int) for d in found)
    )


def _operand(value: ast.expr) -> ast.expr:
    """An argument: a number is a scalar, as it is to TVM."""
    if isinstance(value, ast.Constant) and isinstance(value.value, bool | int | float):
        return at_place(ast.Call(dotted("R.prim_value"), [value], []), value)
    return value
