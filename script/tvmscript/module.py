"""TVMScript modules and functions, from their text."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import FunctionType
from typing import Any, TypeVar

from unity.arguments import public
from unity.errors import UnityError
from unity.ir.dims import Symbol, dim
from unity.ir.dtype import Array
from unity.ir.graph import CallTir
from unity.ir.module import Definition, IRModule
from unity.ir.stmt import PrimFunc
from unity.ir.visit import walk_bindings

from ..macros.expand import Expander
from ..macros.macro import TVMSCRIPT, ScriptMacro, decorated
from ..macros.macro import of_definition as macro_of
from ..macros.macro import of_python as macro_of_python
from ..parser.scope import captured_by
from ..parser.source import Source, of_class, of_function, of_text
from ..parser.text import LANGUAGE, TextModule
from .graph.devices import INFOS, virtual_devices
from .kernel_calls import callees_first
from .options import options_of
from .rewrite import Rewriter
from .syntax import at_place, dotted, path_of


@public
def parse(text: str, constants: Mapping[str, Array] | None = None, file: str = "") -> IRModule:
    """The module that a TVMScript text says.

    Args:
        text: A class decorated with ``@I.ir_module``, or functions decorated with ``@T.prim_func``
            and ``@R.function``.
        constants: What ``R.const("name")`` stands for.
        file: The file that the text is from, which errors name.

    Raises:
        UnityError: A mistake in the text, or a part of TVMScript that Unity lacks, at its place.
    """
    source, tree = of_text(text, file)
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    if len(classes) > 1:
        raise source.error(classes[1], "a text holds one module")
    for node in classes:
        _check_class(source, node)
    name = classes[0].name if classes else ""
    sizes = [size for node in tree.body if (size := _size(node)) is not None]
    body = classes[0].body if classes else [n for n in tree.body if _size(n) is None]
    return _read(source, name, body, {size: dim(size) for size in sizes}, constants or {})


def _size(node: ast.stmt) -> str | None:
    """The name of a size of the whole module: ``n = TypeVar("n")``, as TVM 0.27 prints them."""
    match node:
        case ast.Assign(targets=[ast.Name(name)], value=ast.Call() as call) if (
            path_of(call.func).rpartition(".")[2] == "TypeVar"
        ):
            return name
        case _:
            return None


def of_definition(definition: type) -> IRModule:
    """The module of a class whose functions are TVMScript.

    Raises:
        UnityError: As `parse`; or the class has no functions.
    """
    functions = [v for v in vars(definition).values() if isinstance(v, FunctionType)]
    if not functions:
        raise UnityError(
            f"{definition.__name__!r} has no functions",
            hint="decorate them with @T.prim_func or @R.function",
        )
    source, node = of_class(definition, functions[0])
    return _read(source, node.name, node.body, _names(functions[0]), {})


def of_python(function: FunctionType) -> IRModule:
    """The module of one function that stands alone.

    Raises:
        UnityError: As `parse`.
    """
    source, node = of_function(function)
    return _read(source, "", [node], _names(function), {})


def _is_kernel(node: ast.FunctionDef) -> bool:
    """Whether a definition is a prim func."""
    decorator = node.decorator_list[0]
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return path_of(called).startswith("T.")


def macro(definition: FunctionType, spelling: str, hygienic: bool) -> ScriptMacro[..., Any]:
    """The macro of a Python function written in TVMScript.

    Raises:
        UnityError: Its text is not known.
    """
    return macro_of_python(definition, spelling, hygienic, [_names(definition)])


def _names(function: FunctionType) -> dict[str, object]:
    """What the function sees, less the words that mean something else in TVMScript."""
    found: dict[str, object] = {}
    for names in reversed(captured_by(function)):
        found.update(names)
    return {
        k: dim(k) if isinstance(v, TypeVar) else v
        for k, v in found.items()
        if k not in LANGUAGE and k != "I"
    }


def _read(
    source: Source,
    name: str,
    body: Sequence[ast.stmt],
    names: Mapping[str, object],
    constants: Mapping[str, Array],
) -> IRModule:
    modules = [m for m in (name, "cls", "Module") if m]
    macros: dict[str, object] = {}
    expander = Expander(source, [macros, names], [*TVMSCRIPT], modules)
    functions: list[ast.FunctionDef] = []
    for function in _definitions(body):
        spelling = decorated(source, function, [*TVMSCRIPT])
        if spelling is None:
            functions.append(function)
        elif function.name in macros:
            raise source.error(function, f"{function.name!r} is defined twice")
        else:
            macros[function.name] = macro_of(source, function, spelling, [macros, names])
    expanded = [expander.function(f, _is_kernel(f)) for f in functions]
    source = expander.source
    rewriter = Rewriter(source, modules)
    rewriter.symbols.update({k: None for k, v in names.items() if isinstance(v, Symbol)})
    rewriter.devices = virtual_devices(source, body)
    for node in body:
        rewriter.externs.note(node)
    ours = [rewriter.function(copy.deepcopy(f)) for f in expanded]
    for node in body:
        _check(source, node)
    symbols = {symbol: dim(symbol) for symbol in rewriter.symbols}
    module = TextModule(source, {**names, **symbols, **expander.names}, constants, promotes=True)
    attrs = _attributes(source, body, rewriter.devices)
    if attrs is not None:
        module.read_attrs(attrs)
    for defined, extern in rewriter.externs.definitions.items():
        kind = rewriter.visit(extern)
        module.read(at_place(ast.Assign([ast.Name(defined, ast.Store())], kind), extern))
    for made in callees_first(source, ours):
        module.function(made)
    return _with_output_counts(module.finish())


def _definitions(body: Sequence[ast.stmt]) -> list[ast.FunctionDef]:
    """The decorated functions of a module."""
    return [n for n in body if isinstance(n, ast.FunctionDef) and n.decorator_list]


def _attributes(
    source: Source, body: Sequence[ast.stmt], devices: Sequence[str]
) -> ast.Call | None:
    """What ``I.module_attrs`` says, with the module's virtual devices."""
    found: ast.Call | None = None
    for node in body:
        match node:
            case ast.Expr(ast.Call() as call) if path_of(call.func) == "I.module_attrs":
                found = call
            case _:
                pass
    if not devices:
        return found
    call = found or at_place(ast.Call(dotted("I.module_attrs"), [ast.Dict([], [])], []), body[0])
    given = call.args[0] if call.args else None
    if not isinstance(given, ast.Dict):
        raise source.error(call, "I.module_attrs takes a dict")
    listed = ast.List([ast.Constant(name) for name in devices], ast.Load())
    keys, values = [*given.keys, ast.Constant("vdevice")], [*given.values, listed]
    return at_place(ast.Call(call.func, [ast.Dict(keys, values)], []), call)


def _check_class(source: Source, node: ast.ClassDef) -> None:
    """Refuse options of ``@I.ir_module`` that it does not take."""
    for decorator in node.decorator_list:
        called = path_of(decorator.func if isinstance(decorator, ast.Call) else decorator)
        if called.rpartition(".")[2] == "ir_module":
            options_of(source, decorator, "I.ir_module")


def _check(source: Source, node: ast.stmt) -> None:
    """Refuse statements of a module that mean nothing to us."""
    match node:
        case ast.FunctionDef() | ast.Import() | ast.ImportFrom() | ast.Pass():
            return
        case ast.Expr(ast.Constant()):
            return
        case ast.Expr(ast.Call() as call) if path_of(call.func) in ("I.module_attrs", INFOS):
            return
        case _:
            raise source.error(node, "a module holds functions", "see unity.script.tvmscript")


def _with_output_counts(module: IRModule) -> IRModule:
    """The module whose prim funcs say how many outputs they have; in TVMScript only calls do."""
    counts: dict[str, int] = {}
    for function in module.graph_functions().values():
        for binding in walk_bindings(function):
            value = binding.value
            if isinstance(value, CallTir) and len(value.out) > 1:
                counts[value.callee.name] = len(value.out)
    changed: dict[str, Definition] = {}
    for name, count in counts.items():
        func = module[name]
        assert isinstance(func, PrimFunc)
        changed[name] = replace(func, attrs=func.attrs.with_(num_outputs=count))
    return module.with_(changed)
