"""Kernels that TVMScript's kernels call, written out where they are called: ours call none.

Comes in: a prim func in TVM's words. Comes out: one without ``cls.add(A.data, B.data)``: the body
of ``add`` stands there, with what is given in place of its parameters, its buffers declared over
the caller's memory, and its own names made other than the caller's.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping, Sequence

from ..parser.source import Source
from .syntax import at_place, path_of

_POINTERS = ("T.handle", "T.ptr")
_SYMBOLS = ("T.int32", "T.int64", "T.var", "T.Var", "T.SizeVar")


class KernelCalls:
    """Writes out calls in the kernels of one module.

    Args:
        source: The module's text, for errors.
        body: Its statements.
    """

    def __init__(self, source: Source, body: Sequence[ast.stmt]) -> None:
        self.source = source
        self.kernels = {
            n.name: copy.deepcopy(n)
            for n in body
            if isinstance(n, ast.FunctionDef) and _is_kernel(n)
        }

    def write_out(self, node: ast.FunctionDef, modules: Sequence[str]) -> None:
        """Write out what a kernel calls, in place.

        Args:
            node: The kernel.
            modules: The names of the module in it.

        Raises:
            UnityError: A call does not fit, calls itself, or is of a kernel with sizes of its own.
        """
        if any(isinstance(n, ast.Call) and _kernel_of(n, modules) for n in ast.walk(node)):
            caller = _Caller(self, node, modules)
            node.body = caller.suite(node.body, (node.name,))
            ast.fix_missing_locations(node)


class _Caller:
    def __init__(self, calls: KernelCalls, node: ast.FunctionDef, modules: Sequence[str]) -> None:
        self.source, self.kernels, self.modules = calls.source, calls.kernels, modules
        self.taken = {a.arg for a in node.args.args} | set(_names(node, ast.Store, ast.Load))

    def suite(self, nodes: Sequence[ast.stmt], within: tuple[str, ...]) -> list[ast.stmt]:
        """Statements without calls of kernels; those of `within` are written out already."""
        found: list[ast.stmt] = []
        for node in nodes:
            call = _called(node)
            name = "" if call is None else _kernel_of(call, self.modules)
            if call is not None and name in self.kernels:
                found += self._written(call, name, within)
                continue
            match node:
                case ast.For() | ast.If() | ast.While():
                    node.body = self.suite(node.body, within)
                    node.orelse = self.suite(node.orelse, within)
                case ast.With():
                    node.body = self.suite(node.body, within)
                case _:
                    pass
            found.append(node)
        return found

    def _written(self, call: ast.Call, name: str, within: tuple[str, ...]) -> list[ast.stmt]:
        if name in within:
            raise self.source.error(call, f"the kernel {name!r} calls itself", "let it loop")
        node = self.kernels[name]
        given = self._bound(call, name, node)
        made: list[ast.stmt] = []
        for arg in node.args.args:
            kind = arg.annotation
            path = path_of(kind.func if isinstance(kind, ast.Call) else kind)
            if path == "T.Buffer" and isinstance(kind, ast.Call):
                pointer = f"{arg.arg}.data"  # as no name can be
                given[pointer] = _memory(given.pop(arg.arg))
                made.append(_over(arg.arg, kind.args[:2], kind.keywords, pointer, call))
            elif path in _POINTERS:
                given[arg.arg] = _memory(given[arg.arg])
        for statement in node.body:
            made += self._kept(call, name, copy.deepcopy(statement), given)
        own = sorted({n for s in made for n in _names(s, ast.Store)})
        assigned = [n for n in own if n in given]
        if assigned:
            raise self.source.error(
                call, f"the kernel {name!r} gives its parameter {assigned[0]!r} another value"
            )
        put = _Put(given, {n: self._fresh(n) for n in own})
        return self.suite([put.visit(n) for n in made], (*within, name))

    def _bound(self, call: ast.Call, name: str, node: ast.FunctionDef) -> dict[str, ast.expr]:
        """The arguments by parameter."""
        params = [a.arg for a in node.args.args]
        said = f"{name}({', '.join(params)})"
        if call.keywords:
            raise self.source.error(
                call.keywords[0], "kernels are called with arguments in order", said
            )
        if len(call.args) != len(params) or any(isinstance(a, ast.Starred) for a in call.args):
            raise self.source.error(
                call, f"{name!r} takes {len(params)} arguments, got {len(call.args)}", said
            )
        return dict(zip(params, call.args, strict=True))

    def _kept(
        self, call: ast.Call, name: str, node: ast.stmt, given: Mapping[str, ast.expr]
    ) -> list[ast.stmt]:
        """A statement of a called kernel, as it is in the caller; none where it is its head's."""
        match node:
            case ast.Expr(ast.Constant()) | ast.Return(value=None | ast.Constant(value=None)):
                return []
            case ast.Expr(ast.Call() as inner) if path_of(inner.func) == "T.func_attr":
                return []
            case ast.Assign(targets=[ast.Name(to)], value=ast.Call() as inner) if (
                path_of(inner.func) == "T.match_buffer"
                and inner.args
                and path_of(inner.args[0]) in given
            ):
                return [_over(to, inner.args[1:3], inner.keywords, path_of(inner.args[0]), call)]
            case ast.Assign(value=ast.Call() as inner) if (
                path_of(inner.func) in _SYMBOLS and not inner.args
            ):
                raise self.source.error(
                    call,
                    f"the kernel {name!r} has a size of its own: {ast.unparse(node)}",
                    "a kernel calls those whose sizes are known; write its loops here",
                )
            case _:
                pass
        if any(isinstance(n, ast.Return) for n in ast.walk(node)):
            raise self.source.error(call, f"the kernel {name!r} returns a value")
        return [node]

    def _fresh(self, name: str) -> str:
        found, k = name, 0
        while found in self.taken:
            k += 1
            found = f"{name}_{k}"
        self.taken.add(found)
        return found


class _Put(ast.NodeTransformer):
    """Puts what is given in place of parameters, and other names in place of a body's own."""

    def __init__(self, given: Mapping[str, ast.expr], renamed: Mapping[str, str]) -> None:
        self.given, self.renamed = given, renamed

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.given:
            return copy.deepcopy(self.given[node.id])
        node.id = self.renamed.get(node.id, node.id)
        return node


def _kernel_of(call: ast.Call, modules: Sequence[str]) -> str:
    """The name of what ``cls.add(...)`` or ``add(...)`` calls; empty for another module's."""
    module, _, name = path_of(call.func).rpartition(".")
    return name if not module or module in modules else ""


def _over(
    name: str, args: Sequence[ast.expr], named: Sequence[ast.keyword], pointer: str, at: ast.AST
) -> ast.stmt:
    """``name = T.decl_buffer(shape, dtype, data=pointer)``."""
    func = ast.Attribute(ast.Name("T", ast.Load()), "decl_buffer", ast.Load())
    data = ast.keyword("data", ast.Name(pointer, ast.Load()))
    call = ast.Call(func, copy.deepcopy(list(args)), [*copy.deepcopy(list(named)), data])
    return at_place(ast.Assign([ast.Name(name, ast.Store())], call), at)


def _memory(node: ast.expr) -> ast.expr:
    """The memory of a buffer that is given by its name."""
    if isinstance(node, ast.Name):
        return at_place(ast.Attribute(node, "data", ast.Load()), node)
    return node


def _called(node: ast.stmt) -> ast.Call | None:
    """The call that a statement is, by itself or in ``T.evaluate``."""
    match node:
        case ast.Expr(ast.Call(args=[ast.Call() as inner]) as call) if (
            path_of(call.func) == "T.evaluate"
        ):
            return inner
        case ast.Expr(ast.Call() as call):
            return call
        case _:
            return None


def _is_kernel(node: ast.FunctionDef) -> bool:
    called = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
    return [path_of(d) for d in called] == ["T.prim_func"]


def _names(node: ast.AST, *kinds: type[ast.expr_context]) -> Iterator[str]:
    return (n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, kinds))
