"""A module from a text, as `print_module` makes it: symbols, then decorated functions.

Nothing in the text is run: only the parser reads it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from unity.arguments import Signature, public
from unity.errors import UnityError
from unity.ir.attrs import NO_ATTRS
from unity.ir.dims import Symbol
from unity.ir.dtype import SHORT_NAMES, Array
from unity.ir.graph import Function
from unity.ir.lattice import function_type
from unity.ir.module import Definition, ExternFunc, IRModule
from unity.ir.stmt import PrimFunc
from unity.ir.types import FuncType, ObjectType, Type
from unity.op.builder import GraphBuilder

from .. import annotations as words
from .. import graph_names, prim_names
from ..macros.macro import SCRIPT, ScriptMacro, decorated, of_definition
from ..marker import Marker
from ..program import ScriptExtern, ScriptFunction
from .evaluate import Evaluator
from .graph_closures import decorator_options
from .graph_expr import Surroundings
from .graph_func import parse_function, signature_of, verified
from .graph_stmt import GraphStatements
from .prim_func import attrs_of, parse_prim_func
from .scope import Named, Scope
from .source import Source, of_text

_MODULE_ATTRS = Signature.parse("script.module_attrs(attrs)")
_EXTERN = Signature.parse("script.extern(symbol, type)")
_BUILTINS = (
    *(abs, bool, enumerate, float, int, len, list, max, min, print),
    *(range, reversed, round, str, sum, tuple, zip),
)
LANGUAGE: Mapping[str, object] = {
    "R": graph_names,
    "T": prim_names,
    "script": Marker("script"),
    "Tensor": words.Tensor,
    "Buffer": words.Buffer,
    "dim": words.dim,
    **{short: getattr(words, short) for short in SHORT_NAMES},
    **{function.__name__: function for function in _BUILTINS},
}
"""The names that every text sees."""


@public
def parse(
    text: str,
    constants: Mapping[str, Array] | None = None,
    names: Mapping[str, object] | None = None,
    file: str = "",
) -> IRModule:
    """The module that a text says: all decorated functions in it.

    ``parse(print_module(m), constants_of(m))`` is structurally equal to `m`.

    Args:
        text: Symbols (``n = dim("n")``) and decorated functions; imports are skipped.
        constants: What ``R.const("name")`` stands for.
        names: Further names the text may use, such as functions for ``R.call_python``.
        file: The file that the text is from, which errors name.

    Raises:
        UnityError: A mistake in the text, at its place.
    """
    source, tree = of_text(text, file)
    module = TextModule(source, names or {}, constants or {})
    for node in tree.body:
        module.read(node)
    return module.finish()


@dataclass(frozen=True, slots=True)
class _Graph:
    node: ast.FunctionDef
    pure: bool | None
    attrs: dict[str, object]


class TextModule:
    """The definitions of a text while it is read; graph functions are parsed last."""

    def __init__(
        self,
        source: Source,
        names: Mapping[str, object],
        constants: Mapping[str, Array],
        promotes: bool = False,
    ) -> None:
        self.promotes = promotes
        self.source = source
        self.names: dict[str, object] = {**LANGUAGE, **names}
        self.constants = constants
        self.attrs = NO_ATTRS
        self.definitions: dict[str, Definition | _Graph] = {}

    def read(self, node: ast.stmt) -> None:
        """One statement of the text."""
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Expr(ast.Constant()):
                pass
            case ast.Assign(targets=[ast.Name(name)], value=value):
                self._assign(name, value)
            case ast.FunctionDef():
                self.function(node)
            case ast.Expr(ast.Call() as call) if _path(call.func) == "script.module_attrs":
                self.read_attrs(call)
            case _:
                raise self.source.error(
                    node,
                    "a module's text holds symbols and decorated functions",
                    'write n = dim("n"), @script.function or @script.prim_func',
                )

    def _assign(self, name: str, value: ast.expr) -> None:
        if isinstance(value, ast.Call) and _path(value.func) == "script.module":
            said = next((k.value for k in value.keywords if k.arg == "attrs"), None)
            if said is not None:
                self._read_attrs(value, said)
            return
        if isinstance(value, ast.Call) and _path(value.func) == "script.extern":
            self._extern(name, value)
            return
        found = self._evaluate(value)
        if isinstance(found, Symbol):
            self._check_facts(found, value)
        self.names[name] = found

    def _evaluate(self, node: ast.expr) -> object:
        return Evaluator(self.source, Scope([self.names])).value(node)

    def _check_facts(self, symbol: Symbol, node: ast.expr) -> None:
        for known in self.names.values():
            same = isinstance(known, Symbol) and known.name == symbol.name
            if same and known != symbol:
                raise self.source.error(
                    node,
                    f"the symbol {symbol.name!r} is declared twice, with other facts",
                    "one name is one size in a module",
                )

    def read_attrs(self, call: ast.Call) -> None:
        """``script.module_attrs({...})``."""
        reader = Evaluator(self.source, Scope([self.names]))
        self._read_attrs(call, reader.given(call, _MODULE_ATTRS).named["attrs"])

    def _read_attrs(self, call: ast.Call, said: ast.expr) -> None:
        found = self._evaluate(said)
        if not isinstance(found, dict):
            raise self.source.error(call, "module_attrs takes a dict")
        try:
            self.attrs = attrs_of({str(k): v for k, v in found.items()})
        except UnityError as error:
            raise self.source.error(call, error.message, error.hint) from None

    def _extern(self, name: str, call: ast.Call) -> None:
        reader = Evaluator(self.source, Scope([self.names]))
        given = reader.given(call, _EXTERN).named
        symbol, kind = self._evaluate(given["symbol"]), self._evaluate(given["type"])
        if not isinstance(symbol, str) or not isinstance(kind, FuncType):
            raise self.source.error(call, 'extern takes a symbol and a type: ("f", R.Func(...))')
        self._define(call, name, ExternFunc(symbol, kind))

    def _define(self, node: ast.AST, name: str, definition: Definition | _Graph) -> None:
        self._new(node, name)
        self.definitions[name] = definition
        self.names[name] = Named(name)

    def _new(self, node: ast.AST, name: str) -> None:
        if name in self.definitions or isinstance(self.names.get(name), ScriptMacro):
            raise self.source.error(node, f"{name!r} is defined twice")

    def function(self, node: ast.FunctionDef) -> None:
        """A decorated function, or a macro."""
        spelling = decorated(self.source, node, [SCRIPT])
        if spelling is not None:
            self._new(node, node.name)
            seen = [dict(self.names), self.names]
            self.names[node.name] = of_definition(self.source, node, spelling, seen)
            return
        if len(node.decorator_list) != 1:
            raise self.source.error(
                node, f"{node.name!r} needs one decorator", "@script.function or @script.prim_func"
            )
        decorator = node.decorator_list[0]
        path = _path(decorator.func if isinstance(decorator, ast.Call) else decorator)
        pure, attrs = decorator_options(self._reader(), node)
        match path.rpartition(".")[2]:
            case "function":
                self._define(node, node.name, _Graph(node, pure, attrs))
            case "prim_func":
                above = {n: d for n, d in self.definitions.items() if isinstance(d, PrimFunc)}
                func = parse_prim_func(
                    self.source, node, [self.names], attrs_of(attrs), self.promotes, above
                )
                self._define(node, node.name, func)
            case _:
                raise self.source.error(
                    decorator,
                    f"unknown decorator {path!r}",
                    "script.function, script.prim_func, script.macro",
                )

    def finish(self) -> IRModule:
        """The module, its graph functions parsed now that all names are known.

        Those that don't say whether they are pure are taken to be, until one turns out not to be:
        what calls it is parsed once more then.
        """
        graphs = {n: d for n, d in self.definitions.items() if isinstance(d, _Graph)}
        impure = {name for name, graph in graphs.items() if graph.pure is False}
        while True:
            parsed = self._parsed(impure)
            found = {n for n, f in parsed.items() if isinstance(f, Function) and not f.pure}
            if found <= impure:
                break
            impure |= found
        module = IRModule(parsed, self.attrs)
        for name, graph in graphs.items():
            function = parsed[name]
            assert isinstance(function, Function)
            verified(name, function, graph.node, self.source, parsed)
        return module

    def _parsed(self, impure: Collection[str]) -> dict[str, Definition]:
        """What the module holds, if calls of these functions have effects."""
        kernels = {k: v for k, v in self.definitions.items() if isinstance(v, PrimFunc)}
        signatures = {n: self._signature(d, n not in impure) for n, d in self.definitions.items()}
        graphs = {n: d.node for n, d in self.definitions.items() if isinstance(d, _Graph)}
        names = {n: tuple(a.arg for a in node.args.args) for n, node in graphs.items()}
        done: dict[str, Definition] = {}
        externs: dict[str, ScriptExtern] = {}  # that `R.call_packed` names
        lifted: dict[str, Function] = {}  # that were closures
        for name in self._order():
            definition = self.definitions[name]
            if not isinstance(definition, _Graph):
                done[name] = definition
                continue
            builder = GraphBuilder(signatures, dataflow=False)
            builder.reserve_symbols(*(s.name for s in self._symbols()))
            builder.signatures.update({n: e.func.type for n, e in externs.items()})
            around = Surroundings(
                builder, kernels, dict(externs), self.constants, dict(names), text=True,
                tvmscript=self.promotes,
            )  # fmt: skip
            function = parse_function(
                self.source, definition.node, [self.names], around, definition.pure,
                definition.attrs,
            )  # fmt: skip
            called = around.refers.items()
            externs.update({n: e for n, e in called if isinstance(e, ScriptExtern)})
            inner = {n: f.func for n, f in called if isinstance(f, ScriptFunction)}
            signatures.update({n: function_type(f) for n, f in inner.items()})
            lifted.update(inner)
            done[name] = function
            if definition.node.returns is None:
                params = tuple(p.type for p in function.params)
                signatures[name] = FuncType(params, function.result, function.pure)
        ordered = {name: done[name] for name in self.definitions}
        return {**{n: e.func for n, e in externs.items()}, **lifted, **ordered}

    def _order(self) -> list[str]:
        """The definitions, functions that leave out their result before those that name them."""
        found: dict[str, None] = {}
        begun: set[str] = set()

        def take(name: str) -> None:
            definition = self.definitions[name]
            if name in begun:
                return
            begun.add(name)
            if isinstance(definition, _Graph):
                for part in ast.walk(definition.node):
                    if not isinstance(part, ast.Name):
                        continue
                    named = self.definitions.get(part.id)
                    if isinstance(named, _Graph) and named.node.returns is None:
                        take(part.id)
            found[name] = None

        for name in self.definitions:
            take(name)
        return list(found)

    def _reader(self) -> GraphStatements:
        """What reads decorators and annotations."""
        around = Surroundings(GraphBuilder(dataflow=False), text=True, tvmscript=self.promotes)
        return GraphStatements(self.source, Scope([self.names]), around)

    def _symbols(self) -> list[Symbol]:
        return [v for v in self.names.values() if isinstance(v, Symbol)]

    def _signature(self, definition: Definition | _Graph, pure: bool) -> Type:
        match definition:
            case _Graph():
                found = signature_of(self._reader(), definition.node, pure)
                return ObjectType() if found is None else found
            case ExternFunc():
                return definition.type
            case _:
                return ObjectType()


def _path(node: ast.expr) -> str:
    return ast.unparse(node)
