"""Loops of TVMScript as they are written here: in steps of one, over int64, a name a variable."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..parser.source import Source
from .spellings import SHORT
from .syntax import at_place, constant, path_of, statements, written

_SINGLE = ("T.serial", "T.parallel", "T.vectorized", "T.unroll", "range")
_AS_INT64 = ("", "int32", "int64")


def plain_loop(
    source: Source, node: ast.For, function: ast.FunctionDef
) -> tuple[ast.For, list[ast.stmt]]:
    """A loop without a step, a dtype, or one name for several variables.

    Args:
        source: For errors.
        node: The loop; changed in place.
        function: The function that it stands in.

    Returns:
        The loop, and what its body begins with.

    Raises:
        UnityError: The step is no positive number, or the variables can't be told.
    """
    call = node.iter
    if not isinstance(call, ast.Call):
        return node, []
    path = path_of(call.func)
    if path == "range" and any(k.arg == "annotations" for k in call.keywords):
        call.func = written("T.serial", call.func)
    if path == "T.grid":
        return _grid(source, node, call, function)
    if path not in _SINGLE or not isinstance(node.target, ast.Name):
        return node, []
    return _single(source, node, call, node.target.id)


def _single(
    source: Source, node: ast.For, call: ast.Call, name: str
) -> tuple[ast.For, list[ast.stmt]]:
    named = {k.arg: k.value for k in call.keywords}
    step, kind = named.get("step"), constant(named.get("dtype", ast.Constant("")))
    if path_of(call.func) == "range" and len(call.args) == 3:
        step = call.args.pop()
    by = 1 if step is None or constant(step) is None else constant(step)
    if not isinstance(by, int) or by < 1:
        raise source.error(call, "a loop's step is a positive number known here", "step=2")
    unsigned = kind in SHORT and kind not in _AS_INT64
    if by == 1 and not unsigned:
        call.keywords = [k for k in call.keywords if k.arg != "step"]
        return node, []
    call.keywords = [k for k in call.keywords if k.arg not in ("step", "dtype")]
    bounds = [*call.args, *(named[k] for k in ("start", "stop") if k in named)]
    call.keywords = [k for k in call.keywords if k.arg not in ("start", "stop")]
    counted = f"{name}_step" if by > 1 else f"{name}_count"
    begin = bounds[0] if len(bounds) == 2 else ast.Constant(0)
    node.target = ast.copy_location(ast.Name(counted, ast.Store()), node.target)
    value = ast.Name(counted, ast.Load())
    if by > 1:
        count = written(f"(last - first + {by - 1}) // {by}", call, first=begin, last=bounds[-1])
        call.args = [at_place(ast.Constant(0), call), count]
        at = written(f"first + at * {by}", call, first=begin, at=value)
    else:
        call.args = bounds
        at = value
    if unsigned:
        at = written(f"T.{kind}(at)", call, at=at)
    return node, statements("name = at", node, at=at, name=ast.Name(name, ast.Store()))


def _grid(
    source: Source, node: ast.For, call: ast.Call, function: ast.FunctionDef
) -> tuple[ast.For, list[ast.stmt]]:
    """``for ijk in T.grid(4, 4, 4)``: the one name is a tuple of the variables."""
    kind = constant(next((k.value for k in call.keywords if k.arg == "dtype"), ast.Constant("")))
    made: list[ast.stmt] = []
    count = _axes_of(call, function) if isinstance(node.target, ast.Name) else 1
    if count is None:
        raise source.error(call, "how many variables T.grid gives is not known here")
    if isinstance(node.target, ast.Name) and count > 1:
        whole = node.target.id
        names = [f"{whole}_{i}" for i in range(count)]
        node.target = ast.copy_location(
            ast.Tuple([ast.Name(n, ast.Store()) for n in names], ast.Store()), node.target
        )
        for part in node.target.elts:
            ast.copy_location(part, node.target)
        node.body = [_Spread(whole, names).visit(n) for n in node.body]
    if kind in SHORT and kind not in _AS_INT64 and isinstance(node.target, ast.Tuple):
        call.keywords = [k for k in call.keywords if k.arg != "dtype"]
        for part in node.target.elts:
            if isinstance(part, ast.Name):
                name = part.id
                part.id = f"{name}_count"
                made += statements(
                    f"name = T.{kind}({part.id})", node, name=ast.Name(name, ast.Store())
                )
    return node, made


def _axes_of(call: ast.Call, function: ast.FunctionDef) -> int | None:
    """How many variables a grid gives: those written, and the dims of buffers whose shape is."""
    count = 0
    for arg in call.args:
        if not isinstance(arg, ast.Starred):
            count += 1
            continue
        rank = None
        match arg.value:
            case ast.Attribute(ast.Name(name), "shape"):
                rank = next((_rank(c) for n, c in _buffers(function) if n == name), None)
            case ast.Tuple(elts) | ast.List(elts):
                rank = len(elts)
            case _:
                pass
        if rank is None:
            return None
        count += rank
    return count


def _buffers(function: ast.FunctionDef) -> Iterator[tuple[str, ast.Call]]:
    for arg in function.args.args:
        if isinstance(arg.annotation, ast.Call):
            yield arg.arg, arg.annotation
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=ast.Call() as call):
                yield name, call
            case _:
                pass


def _rank(call: ast.Call) -> int | None:
    at = 1 if path_of(call.func) == "T.match_buffer" else 0
    named = {k.arg: k.value for k in call.keywords}
    shape = call.args[at] if len(call.args) > at else named.get("shape")
    if isinstance(shape, ast.Tuple | ast.List):
        return len(shape.elts)
    return 1 if isinstance(constant(shape), int) else None


class _Spread(ast.NodeTransformer):
    """Puts the variables where their one name stood."""

    def __init__(self, name: str, parts: list[str]) -> None:
        self.name, self.parts = name, parts

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id != self.name or not isinstance(node.ctx, ast.Load):
            return node
        whole = ast.Tuple([ast.Name(p, ast.Load()) for p in self.parts], ast.Load())
        for part in ast.walk(whole):
            if isinstance(part, ast.expr):
                ast.copy_location(part, node)
        return whole
