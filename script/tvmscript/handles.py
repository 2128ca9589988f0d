"""Pointers of TVMScript's kernels as what they point to: here a buffer is its own memory.

Comes in: a prim func in plain words (`plain`). Comes out, in the same words: one where memory is
named only as the memory of a buffer, ``data=B.data``, which `views` knows. A parameter
``p: T.handle("float32")`` becomes a buffer of the shape that ``T.decl_buffer(shape, data=p)`` says;
``p = T.allocate([64], "float32")`` an allocated buffer; ``p = T.allocate_const([1, 2], ...)`` one
that is filled first; a name given to a pointer is the pointer itself.
"""

from __future__ import annotations

import ast
import builtins
import copy
import math
from collections.abc import Mapping, Sequence

from unity.arguments import Named, Signature
from unity.ir.dtype import dtype

from ..parser.source import Source
from .spellings import SHORT
from .syntax import at_place, constant, keyword, path_of, said, statements, written

_DECLARES = ("T.decl_buffer", "T.Buffer")
_MAKES = ("T.alloc_buffer", "T.sblock_alloc_buffer")
_POINTERS = ("T.handle", "T.ptr")
_BUFFER = Signature.parse(
    'T.decl_buffer(shape, dtype="float32", data=None, strides=None, elem_offset=None,'
    ' scope="global", align=-1, offset_factor=0, buffer_type="", axis_separators=None,'
    " layout=None)"
)
_ALLOCATE = Signature.parse(
    'T.allocate(extents, dtype, scope="", condition=None, annotations=None)'
)
_FILLED = Signature.parse("T.allocate_const(data, dtype, extents, annotations=None)")
_MOST = 4096
"""Numbers of a constant at most: each is a store of its own."""


def without_handles(source: Source, node: ast.FunctionDef) -> None:
    """Rewrite a prim func, in place.

    Raises:
        UnityError: Memory is declared with two dtypes, or the shape of a pointer's is not known.
    """
    params = {a.arg: a for a in node.args.args if _is_pointer(a.annotation)}
    for call in _calls(node):
        if path_of(call.func) == "T.match_buffer" and call.args:
            params.pop(path_of(call.args[0]), None)
        if path_of(call.func) in _DECLARES and len(call.args) > 2:
            call.keywords += _named(source, call, _BUFFER, after=2)
            del call.args[2:]
    _without_offsets(node)
    memory = _Memory(source, params)
    node.body = memory.suite(node.body)
    ast.fix_missing_locations(node)
    lets = {
        n.targets[0].id: n.value
        for n in node.body
        if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)
    }
    scalars = {a.arg for a in node.args.args} - set(params)
    for arg in params.values():
        arg.annotation = _buffer_of(source, arg, _declarations(node, arg.arg), lets, scalars)
    _hold_what_is_declared(source, node)
    ast.fix_missing_locations(node)


def _without_offsets(node: ast.FunctionDef) -> None:
    """Let variables be zero that stand for where in its array a given buffer begins.

    The address that a kernel is given here is that of the first element.
    """
    given = [a.annotation for a in node.args.args if isinstance(a.annotation, ast.Call)]
    given += [c for c in _calls(node) if path_of(c.func) == "T.match_buffer" and _of_param(c)]
    zeros: dict[str, ast.expr] = {}
    for call in given:
        for k in call.keywords:
            named = isinstance(k.value, ast.Name) and not hasattr(builtins, k.value.id)
            if k.arg == "elem_offset" and named:
                zeros[ast.unparse(k.value)] = ast.Constant(0)
    if zeros:
        node.body = [_Let(zeros).visit(n) for n in node.body]
        for call in given:
            call.keywords = [k for k in call.keywords if path_of(k.value) not in zeros]


def _of_param(call: ast.Call) -> bool:
    return bool(call.args) and isinstance(call.args[0], ast.Name)


def _is_pointer(annotation: ast.expr | None) -> bool:
    if isinstance(annotation, ast.Call):
        return path_of(annotation.func) in _POINTERS
    return path_of(annotation) in _POINTERS


def _calls(node: ast.AST) -> list[ast.Call]:
    return [n for n in ast.walk(node) if isinstance(n, ast.Call)]


def _given(source: Source, call: ast.Call, signature: Signature) -> Mapping[str, ast.expr]:
    named = [Named(k.arg, k.value, source.span(k)) for k in call.keywords]
    return signature.bind(call.args, named, source.span(call)).named


def _named(source: Source, call: ast.Call, signature: Signature, after: int) -> list[ast.keyword]:
    """What is given by position from some parameter on, by name."""
    extra = signature.params[after : len(call.args)]
    if len(call.args) > len(signature.params):
        raise source.error(call, f"{signature.name} takes {len(signature.params)} arguments")
    return [keyword(p.name, v) for p, v in zip(extra, call.args[after:], strict=True)]


def _declarations(node: ast.FunctionDef, pointer: str) -> list[ast.Call]:
    """The buffers that lie at a pointer."""
    return [
        call
        for call in _calls(node)
        if path_of(call.func) in _DECLARES
        and any(k.arg == "data" and path_of(k.value) == f"{pointer}.data" for k in call.keywords)
    ]


class _Memory(ast.NodeTransformer):
    """Pointers by other names, and what they point to allocated."""

    def __init__(self, source: Source, pointers: Mapping[str, ast.arg]) -> None:
        self.source = source
        self.pointers = {name: name for name in pointers}

    def suite(self, nodes: Sequence[ast.stmt]) -> list[ast.stmt]:
        return [made for node in nodes for made in self._statement(node)]

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(name), value=ast.expr() as value):
                pass
            case ast.For() | ast.If() | ast.While() | ast.With():
                return [self._compound(node)]
            case _:
                return [self.visit(node)]
        if isinstance(value, ast.Name) and value.id in self.pointers:
            self.pointers[name] = self.pointers[value.id]
            return []
        if isinstance(value, ast.Attribute) and value.attr == "data":
            self.pointers[name] = path_of(value.value)
            return []
        made: list[ast.stmt] | None = None
        if isinstance(value, ast.Call) and path_of(value.func) == "T.allocate":
            made = self._allocated(node, name, value)
        elif isinstance(value, ast.Call) and path_of(value.func) == "T.allocate_const":
            made = self._filled(node, name, value)
        if made is None:
            self.pointers.pop(name, None)
            return [self.visit(node)]
        self.pointers[name] = name
        return made

    def _compound(self, node: ast.For | ast.If | ast.While | ast.With) -> ast.stmt:
        match node:
            case ast.For():
                node.iter = self.visit(node.iter)
            case ast.With():
                node.items = [self.visit(i) for i in node.items]
            case _:
                node.test = self.visit(node.test)
        outer = dict(self.pointers)
        node.body = self.suite(node.body)
        if not isinstance(node, ast.With):
            node.orelse = self.suite(node.orelse)
        self.pointers = outer
        return node

    def _allocated(self, node: ast.stmt, name: str, call: ast.Call) -> list[ast.stmt]:
        given = _given(self.source, call, _ALLOCATE)
        condition = given.get("condition")
        if said(condition) and constant(condition) is not True:
            raise self.source.error(condition, "Unity has no condition for T.allocate")
        made = written(
            "T.alloc_buffer(shape, dtype)", call, shape=given["extents"], dtype=given["dtype"]
        )
        assert isinstance(made, ast.Call)
        if constant(given.get("scope", ast.Constant(""))) not in ("", "global"):
            made.keywords.append(keyword("scope", given["scope"]))
        return [at_place(ast.Assign([ast.Name(name, ast.Store())], made), node)]

    def _filled(self, node: ast.stmt, name: str, call: ast.Call) -> list[ast.stmt]:
        """A constant in a kernel: memory that is written before anything else is done."""
        given = _given(self.source, call, _FILLED)
        extents, data = constant(given["extents"]), _numbers(given["data"])
        kind = constant(given["dtype"])
        if not isinstance(extents, list | tuple) or not isinstance(data, list | tuple):
            raise self.source.error(call, "T.allocate_const takes numbers and extents known here")
        count = math.prod(int(e) for e in extents)
        if kind not in SHORT or len(data) != count or count > _MOST:
            raise self.source.error(
                call,
                f"T.allocate_const of {len(data)} numbers of {kind!r} with {count} elements",
                f"give as many numbers as elements, {_MOST} at most, or a parameter for more",
            )
        made = statements(f"name = T.alloc_buffer({list(extents)}, {kind!r})", node)
        for i, value in enumerate(data):
            at, rest = [], i
            for extent in reversed([int(e) for e in extents]):
                at.append(rest % extent)
                rest //= extent
            made += statements(f"name[{', '.join(map(str, at[::-1]))}] = T.{kind}({value!r})", node)
        return [_Renamed("name", name).visit(n) for n in made]

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if node.attr == "data" and isinstance(node.value, ast.Name):
            return node
        self.generic_visit(node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        node.slice = self.visit(node.slice)
        if not isinstance(node.value, ast.Name):
            node.value = self.visit(node.value)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if not isinstance(node.ctx, ast.Load) or node.id not in self.pointers:
            return node
        return written("whole.data", node, whole=ast.Name(self.pointers[node.id], ast.Load()))


def _numbers(node: ast.expr) -> object:
    """The numbers of a constant: a literal, or one repeated, ``[1.0, 2.0] * 8``."""
    match node:
        case ast.BinOp(left, ast.Mult(), right):
            whole, times = constant(left), constant(right)
            if isinstance(whole, list | tuple) and isinstance(times, int):
                return [*whole] * min(times, _MOST)
            return node
        case _:
            return constant(node)


class _Renamed(ast.NodeTransformer):
    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = old, new

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id == self.old:
            node.id = self.new
        return node


def _buffer_of(
    source: Source,
    arg: ast.arg,
    declared: Sequence[ast.Call],
    lets: Mapping[str, ast.expr],
    scalars: set[str],
) -> ast.expr:
    """The buffer that a parameter points to: the largest of those declared there."""
    if not declared:
        raise source.error(
            arg,
            f"the shape of what {arg.arg!r} points to is said nowhere",
            "declare it: A = T.decl_buffer(shape, dtype, data=...), or make it a T.Buffer",
        )
    found: list[tuple[int, ast.expr, ast.expr]] = []
    for call in declared:
        given = _given(source, call, _BUFFER)
        shape = _reached(given, lets)
        size = _size_of(constant(shape))
        names = {n.id for n in ast.walk(shape) if isinstance(n, ast.Name)}
        if names <= scalars | {"T"}:
            found.append((size, shape, given.get("dtype", ast.Constant("float32"))))
    if not found:
        raise source.error(
            declared[0], f"the shape of what {arg.arg!r} points to is not known where it is given"
        )
    _, shape, kind = max(found, key=lambda entry: entry[0])
    return written("T.Buffer(shape, dtype)", arg, shape=shape, dtype=kind)


def _size_of(shape: object) -> int:
    """How many elements a shape has; 0 if that is not known."""
    dims = shape if isinstance(shape, tuple | list) else (shape,)
    known = [d for d in dims if isinstance(d, int)]
    return math.prod(known) if len(known) == len(dims) else 0


def _reached(given: Mapping[str, ast.expr], lets: Mapping[str, ast.expr]) -> ast.expr:
    """The shape of the memory that a declared buffer reaches."""
    shape = _Let(lets).visit(copy.deepcopy(given["shape"]))
    strides, offset = given.get("strides"), given.get("elem_offset")
    dims = list(shape.elts) if isinstance(shape, ast.Tuple | ast.List) else [shape]
    steps = list(strides.elts) if isinstance(strides, ast.Tuple | ast.List) else []
    if not steps and (not said(offset) or constant(offset) == 0):
        found: ast.expr = shape
        return found
    if not steps:
        steps.append(ast.Constant(1))
        for extent in reversed(dims[1:]):
            steps.insert(0, ast.BinOp(copy.deepcopy(steps[0]), ast.Mult(), copy.deepcopy(extent)))
    last: ast.expr = ast.Constant(1)
    for extent, step in zip(dims, steps, strict=True):
        if constant(extent) == 1:
            continue
        reach = written("(n - 1) * s", shape, n=extent, s=step)
        last = ast.BinOp(last, ast.Add(), reach)
    if said(offset):
        last = ast.BinOp(last, ast.Add(), copy.deepcopy(offset))
    reached: ast.expr = _Let(lets).visit(last)
    return at_place(ast.Tuple([reached], ast.Load()), shape)


class _Let(ast.NodeTransformer):
    """Puts values in place of the names that they are given."""

    def __init__(self, lets: Mapping[str, ast.expr]) -> None:
        self.lets = lets

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self.lets.get(node.id) if isinstance(node.ctx, ast.Load) else None
        return copy.deepcopy(value) if isinstance(value, ast.Name | ast.Constant) else node


def _hold_what_is_declared(source: Source, node: ast.FunctionDef) -> None:
    """Let memory that is allocated in one dtype, and only read in another, hold the other."""
    for n in ast.walk(node):
        match n:
            case ast.Assign(targets=[ast.Name(name)], value=ast.Call() as call) if (
                path_of(call.func) in _MAKES
            ):
                pass
            case _:
                continue
        declared = [_given(source, c, _BUFFER) for c in _declarations(node, name)]
        kinds = {str(constant(d.get("dtype", ast.Constant("float32")))) for d in declared}
        given = dict(zip(("shape", "dtype"), call.args, strict=False))
        given |= {str(k.arg): k.value for k in call.keywords}
        own, extents = (
            constant(given.get("dtype", ast.Constant("float32"))),
            constant(given["shape"]),
        )
        if len(kinds) != 1 or own in kinds or not {str(own), *kinds} <= set(SHORT):
            continue
        if not isinstance(extents, list | tuple) or _is_accessed(node, name):
            continue
        (kind,) = kinds
        size = math.prod(int(e) for e in extents) * dtype(str(own)).bits
        if size % dtype(kind).bits:
            continue
        rest = [k for k in call.keywords if k.arg not in ("shape", "dtype")]
        shape = written(f"({size // dtype(kind).bits},)", call)
        call.args, call.keywords = [shape, at_place(ast.Constant(kind), call)], rest


def _is_accessed(node: ast.AST, name: str) -> bool:
    return any(isinstance(n, ast.Subscript) and path_of(n.value) == name for n in ast.walk(node))
